/** The steps of a workflow's function, in order, each with its failed tries. */
import { useState } from 'preact/hooks';
import { counted, moment, sizeText, spanOf } from '../../data/words.ts';
import { Panel } from '../../parts/basics.tsx';
import { ScrollX } from '../../parts/scroll-x.tsx';
import { KINDS, type ListedStep, STEP_STATES } from './run-steps.ts';
import { Value } from './value.tsx';

/** The last ones: an operator looks for what happens now. */
const FIRST_SHOWN = 50;

export function RunSteps({ steps }: { steps: readonly ListedStep[] }) {
  const [isAll, setAll] = useState(false);
  const first = isAll ? 0 : Math.max(0, steps.length - FIRST_SHOWN);
  return (
    <Panel title="Steps" aside={`${counted(steps.length, 'step')}, in order`}>
      {steps.length === 0 && (
        <p class="quiet">The store has no step yet: it keeps a step when the step has ended.</p>
      )}
      {first > 0 && (
        <p>
          <button type="button" onClick={() => setAll(true)}>
            Show the first {counted(first, 'step')}
          </button>
        </p>
      )}
      {steps.length > 0 && (
        <ScrollX label="Steps">
          <table class="rows stacked run-steps">
            <thead>
              <tr>
                <th>#</th>
                <th>Name</th>
                <th>Kind</th>
                <th>State</th>
                <th>Began</th>
                <th>Took</th>
                <th>Attempts</th>
                <th>Value</th>
              </tr>
            </thead>
            <tbody>
              {steps.slice(first).map((step, i) => (
                <StepRows key={step.name} step={step} number={first + i + 1} />
              ))}
            </tbody>
          </table>
        </ScrollX>
      )}
    </Panel>
  );
}

function StepRows({ step, number }: { step: ListedStep; number: number }) {
  const { name, kind, state, at, tookMs, tries, failed, error, value, result } = step;
  const { word, tone } = STEP_STATES[state];
  return (
    <>
      <tr data-step-name={name} data-step-state={state}>
        <td class="quiet">{number}</td>
        <td class="cut mono" title={name}>
          {name}
        </td>
        <td>{KINDS[kind]}</td>
        <td>
          <span class={`badge ${tone}`}>{word}</span>
        </td>
        <td class="quiet">{at === null ? '–' : moment(at)}</td>
        <td>{tookMs === null ? '–' : spanOf(tookMs)}</td>
        <td>
          {tries}
          <span class="row-label"> {tries === 1 ? 'attempt' : 'attempts'}</span>
        </td>
        <td class="why">
          {about(step)}
          {value !== null && <Value name={kind === 'call' ? 'payload' : 'value'} of={value} />}
          {result !== null && <Value name="result" of={result} />}
        </td>
      </tr>
      {(failed.length > 0 || error !== null) && (
        <tr class="step-errors">
          <td colSpan={8}>
            <ul>
              {failed.map((one) => (
                <li key={one.tries}>
                  Attempt {one.tries} failed at {moment(one.at)}: {one.error}
                </li>
              ))}
              {error !== null && (
                <li>
                  Attempt {tries} failed, the last: {error}
                </li>
              )}
            </ul>
          </td>
        </tr>
      )}
    </>
  );
}

/** What else there is to say of it. */
function about({ kind, state, action, signal, until, name }: ListedStep): string {
  if (action !== null) return `${action.type} to ${action.target}, ${sizeText(action.bytes)}`;
  const parts = [
    kind === 'signal' && signal !== null && signal !== name ? `signal ${signal}` : '',
    until === null ? '' : `${state === 'retrying' ? 'again at' : 'until'} ${moment(until)}`,
  ];
  return parts.filter((part) => part !== '').join(', ');
}
