/** What is kept of a workflow's function, in words. */
import type { LoadedRun, RunSnapshot } from '../../../store/port/run-store.ts';
import type { HistoryEntry } from '../../../store/port/workflow-store.ts';
import {
  type CallResults,
  derivedUuid,
  failureText,
  type StepView,
  stepViews,
  waitFacts,
} from '../../../workflow/kept-step.ts';
import { cut, spanOf, toJson } from '../../ui/text.ts';

/** A list shows this much of a value. */
const VALUE_COLUMNS = 60;

/** Lines about the run; none for a workflow that no function runs. */
export function runLines(run: RunSnapshot | null): string[][] {
  if (run === null) return [];
  const lines = [['function', `${run.function}, ${phaseText(run)}`]];
  if (run.phase === 'done') lines.push(['result', cut(toJson(run.value), VALUE_COLUMNS)]);
  if (run.phase === 'failed' || run.phase === 'retrying')
    lines.push(['error', `${failureText(run.value)} (failed tries: ${run.tries})`]);
  return lines;
}

/** A line for each step and each signal that waits to be received. */
export function stepLines(
  id: string,
  loaded: LoadedRun | null,
  history: readonly HistoryEntry[],
  results: CallResults,
): string[][] {
  if (loaded === null) return [];
  const { signals, nowMs } = loaded;
  return [
    ...stepViews(id, loaded, history, results).flatMap((step) => [
      ['step', stepText(step, nowMs)],
      ...step.failed.map(({ tries, error }) => ['', `try ${tries} failed: ${error}`]),
      ...resultLines(step),
    ]),
    ...signals.map(({ name, value }) => [
      'signal',
      `${name}, not received yet: ${cut(toJson(value), VALUE_COLUMNS)}`,
    ]),
  ];
}

function resultLines({ result }: StepView): string[][] {
  return result === null ? [] : [['', `returned ${cut(toJson(result.value), VALUE_COLUMNS)}`]];
}

export function stepFacts(
  id: string,
  loaded: LoadedRun | null,
  results: CallResults,
): Record<string, unknown> {
  if (loaded === null) return {};
  const { input, steps, signals } = loaded;
  const at = (atMs: number) => new Date(atMs).toISOString();
  return {
    input,
    steps: steps.map(({ atMs, ...step }) => {
      const ended = step.kind === 'call' ? results.get(derivedUuid(id, step.name)) : undefined;
      const { outcome, value } = ended ?? {};
      return { ...step, at: at(atMs), ...(ended && { result: { outcome, value } }) };
    }),
    signals: signals.map(({ atMs, ...signal }) => ({ ...signal, at: at(atMs) })),
  };
}

function phaseText({ phase, waits, dueInMs }: RunSnapshot): string {
  if (phase === 'suspended') return `waits for ${waitsText(waits, dueInMs)}`;
  if (phase === 'retrying') return `tried again in ${spanOf(dueInMs ?? 0)}`;
  return phase;
}

function waitsText(waits: unknown, dueInMs: number | null): string {
  const names = waitFacts(waits).map((fact) =>
    'sleep' in fact ? `sleep ${fact.sleep}` : `signal ${fact.signal}`,
  );
  const until = dueInMs === null ? '' : `, at most ${spanOf(dueInMs)} more`;
  return `${names.join(' and ') || 'another instance'}${until}`;
}

function stepText(step: StepView, nowMs: number): string {
  const { name, kind, state, atMs, tookMs, untilMs, value, error } = step;
  const parts = [
    STATES[state],
    tookMs === null ? '' : `in ${spanOf(tookMs)}`,
    untilMs === null ? '' : `for ${spanOf(Math.max(0, untilMs - nowMs))} more`,
    atMs === null ? '' : `began ${spanOf(Math.max(0, nowMs - atMs))} ago`,
  ];
  const said = error ?? (typeof value === 'string' ? value : toJson(value));
  const facts = parts.filter((part) => part !== '').join(', ');
  return `${name}: ${kind}, ${facts}: ${cut(said, VALUE_COLUMNS)}`;
}

const STATES = {
  done: 'done',
  failed: 'failed',
  dead: 'failed, a dead letter now',
  running: 'under way',
  sleeping: 'sleeps',
  waiting: 'waits',
  timeout: 'no signal came in time',
} as const;
