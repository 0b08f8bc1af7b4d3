/** One workflow: what its function does, who may write to it, its steps, and its history with the refused steps. */
import { useMemo } from 'preact/hooks';
import type { WorkflowDetail } from '../../../src/client/operating-messages.ts';
import { client } from '../data/access.ts';
import { useArrivals } from '../data/arrivals.ts';
import { useAsked } from '../data/asked.ts';
import { claimantOf } from '../data/lease-names.ts';
import { nameOf } from '../data/palette.ts';
import { runStateOf } from '../data/run-words.ts';
import { serverWallOf } from '../data/server-time.ts';
import { counted, moment, shellWord } from '../data/words.ts';
import { Action } from '../parts/action.tsx';
import { AsCli } from '../parts/as-cli.tsx';
import { Empty, Left, Owner, Panel } from '../parts/basics.tsx';
import { hrefOf } from '../router.ts';
import { Age, Answered } from './answered.tsx';
import { LongList } from './long-list.tsx';
import { short } from './short.ts';
import { RunBadge, RunNow } from './workflows/run-state.tsx';
import { listedSteps, STEP_FAILED } from './workflows/run-steps.ts';
import { RunSteps } from './workflows/run-steps.tsx';
import { SendSignal } from './workflows/send-signal.tsx';
import { stateText, type Told, toldOf } from './workflows/step-words.ts';
import { Tenure } from './workflows/tenure.tsx';
import { useRefusals } from './workflows/use-refusals.ts';
import { Value } from './workflows/value.tsx';
import '../style/work.css';

const EVERY_MS = 3_000;
/** A workflow that an instance holds changes all the time. */
const HELD_MS = 1_000;
/** The last failed tries of its steps. */
const MOST_FAILURES = 100;

export function WorkflowView({ id }: { id: string }) {
  const asked = useAsked({
    key: id,
    ask: (signal) => client.workflow(id, { signal }),
    everyMs: (workflow) => (workflow?.isHeld ? HELD_MS : EVERY_MS),
  });
  const failures = useAsked({
    key: id,
    ask: async (signal) =>
      (await client.history({ workflow: id, event: STEP_FAILED, limit: MOST_FAILURES }, { signal }))
        .events,
  });
  useArrivals(['workflow', 'step'], (come) => {
    const ours = come.filter(({ workflow }) => workflow === id);
    if (ours.length > 0) asked.again(100);
    if (ours.some(({ event }) => event === STEP_FAILED)) failures.again(100);
  });
  const refusals = useRefusals();
  const ours = useMemo(
    () => (refusals.value?.events ?? []).filter(({ workflow }) => workflow === id),
    [refusals.value, id],
  );
  const missing = (
    <Empty title={`Workflow ${id} does not exist.`}>
      <span>
        An operator removed it, or no process started it. <a href="#/workflows">All workflows</a>
      </span>
      <AsCli command={`holdfast workflows start FUNCTION ${shellWord(id)}`} />
    </Empty>
  );
  return (
    <>
      <div class="view-head">
        <h1 class="cut" title={id}>
          <span class="quiet">Workflow</span> {id}
        </h1>
        {asked.value !== null && <RunBadge of={asked.value} />}
        <span class="push quiet small">
          <Age asked={asked} />
        </span>
      </div>
      <Answered asked={asked} missing={missing}>
        {(workflow) => (
          <>
            <Now
              workflow={workflow}
              seenAtMs={asked.seenAtMs ?? 0}
              refused={ours.length}
              onChanged={() => asked.again()}
            />
            {workflow.run !== null && (
              <RunSteps steps={listedSteps(workflow, failures.value ?? [])} />
            )}
            <Steps workflow={workflow} refusals={ours} />
          </>
        )}
      </Answered>
    </>
  );
}

function Now({
  workflow,
  seenAtMs,
  refused,
  onChanged,
}: {
  workflow: WorkflowDetail;
  seenAtMs: number;
  refused: number;
  onChanged(): void;
}) {
  const { epoch, leaseId, unresolved, run, createdAt, changedAt } = workflow;
  return (
    <div class="work-columns">
      <Panel title="Status">
        {run?.error !== undefined && run.error !== null && (
          <p class={run.phase === 'failed' ? 'notice bad' : 'notice warn'}>
            {run.error} <span class="quiet">(failed tries in a row: {run.tries})</span>
          </p>
        )}
        <dl class="facts">
          {run !== null && <RunFacts workflow={workflow} seenAtMs={seenAtMs} />}
          <dt>Lease</dt>
          <dd>
            <Tenure of={workflow} seenAtMs={seenAtMs} />
          </dd>
          <dt>Lease id</dt>
          <dd>
            <code class="small">{leaseId ?? 'none'}</code>
          </dd>
          <dt>Epoch</dt>
          <dd>
            {epoch}
            {run === null && `: ${counted(epoch, 'step')} accepted`}
            {refused > 0 && `, ${counted(refused, 'step')} refused`}
          </dd>
          <dt>In progress</dt>
          <dd>{unresolved === 0 ? 'no actions' : counted(unresolved, 'action')}</dd>
          <dt>Created</dt>
          <dd>{moment(createdAt)}</dd>
          <dt>Changed</dt>
          <dd>{moment(changedAt)}</dd>
        </dl>
        <Actions workflow={workflow} onChanged={onChanged} />
      </Panel>
      <Kept workflow={workflow} />
    </div>
  );
}

/** What its function does, and when it does something next. */
function RunFacts({ workflow, seenAtMs }: { workflow: WorkflowDetail; seenAtMs: number }) {
  const { run, isHeld, instance } = workflow;
  if (run === null) return null;
  const { dueInMs } = run;
  const isOver = run.phase === 'done' || run.phase === 'failed';
  return (
    <>
      <dt>Function</dt>
      <dd>
        <a href={hrefOf('workflows', undefined, { function: run.function })}>{run.function}</a>
      </dd>
      <dt>State</dt>
      <dd>
        <RunBadge of={workflow} />{' '}
        {run.error === null && <RunNow of={workflow} seenAtMs={seenAtMs} />}
      </dd>
      <dt>Run by</dt>
      <dd>
        {isHeld ? (
          <Owner id={instance} none="an instance" />
        ) : (
          <span class="quiet">no instance now</span>
        )}
      </dd>
      {!isHeld && !isOver && (
        <>
          <dt>Next wake-up</dt>
          <dd>
            {dueInMs === null ? (
              'when a signal comes'
            ) : (
              <>
                {moment(serverWallOf(seenAtMs + dueInMs))}, in <Left at={seenAtMs + dueInMs} />
              </>
            )}
          </dd>
        </>
      )}
    </>
  );
}

function Actions({ workflow, onChanged }: { workflow: WorkflowDetail; onChanged(): void }) {
  const { id, leaseId, isHeld, run } = workflow;
  const state = runStateOf(workflow);
  return (
    <>
      {run !== null && state !== 'done' && <SendSignal workflow={workflow} onSent={onChanged} />}
      <div class="buttons work-actions">
        {state === 'failed' && (
          <Action
            name="Restart"
            scope="v3:admin"
            effect={`The function of ${id} runs again, with all its tries. Steps that are kept are not taken again.`}
            cli={`holdfast workflows restart ${shellWord(id)}`}
            run={() => client.restartWorkflow(id).then(onChanged)}
          />
        )}
        <Action
          name="Revoke the lease"
          danger
          reason="required"
          scope="v3:admin"
          disabled={leaseId === null}
          effect={`Revokes ${isHeld ? 'the lease' : 'the last lease'} of ${id}. The store refuses all further steps of its holder, and another process may claim the workflow at once. The next claim drops actions without a result, unless it says resume.`}
          cli={`holdfast workflows revoke ${shellWord(id)} --reason '…'`}
          run={(reason) => client.revokeWorkflow(id, { reason }).then(onChanged)}
        />
      </div>
    </>
  );
}

/** The state that the orchestrator set; of a function its input, its result and the signals that wait. */
function Kept({ workflow: { state, run } }: { workflow: WorkflowDetail }) {
  const text = typeof state === 'string' ? stateText(state) : JSON.stringify(state, null, 2);
  if (run === null)
    return (
      <Panel title="State">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
        <pre class="work-text" tabIndex={0}>
          {text}
        </pre>
      </Panel>
    );
  return (
    <Panel title="Input and result">
      <Value name="Input" of={run.input} />
      {run.result === null ? (
        <p class="quiet">It has no result yet.</p>
      ) : (
        <Value name="Result" of={run.result} />
      )}
      {state !== 'initialized' && (
        <Value name="State" of={{ bytes: text.length, text, isCut: false }} />
      )}
      {run.signals.length > 0 && (
        <>
          <h3>Signals that no line has received</h3>
          {run.signals.map(({ name, at, value }, i) => (
            <div key={`${name} ${at} ${i}`}>
              <Value name={`${name}, ${moment(at)}`} of={value} />
            </div>
          ))}
        </>
      )}
    </Panel>
  );
}

function Steps({
  workflow: { steps, leaseId, instance },
  refusals,
}: {
  workflow: WorkflowDetail;
  refusals: Parameters<typeof toldOf>[1];
}) {
  const all = useMemo(() => toldOf(steps, refusals), [steps, refusals]);
  return (
    <Panel title="History" aside="latest first; the store keeps the last 1,000 steps">
      <LongList
        of="step"
        items={all}
        label="Steps"
        head={['Time', 'Epoch', 'Step', '', 'Lease of']}
        heights={[36, 76]}
        keyOf={({ position, mark }) => `${mark} ${position}`}
        row={(told) => (
          <StepRow
            told={told}
            claimant={(told.leaseId === leaseId ? instance : null) ?? claimantOf(told.leaseId)}
          />
        )}
      />
    </Panel>
  );
}

function StepRow({
  told: { at, epoch, leaseId, mark, tone, words },
  claimant,
}: {
  told: Told;
  claimant: string | undefined;
}) {
  return (
    <div class={`step-row list-row tone-${tone}`} data-step={mark}>
      <span class="quiet">{moment(at)}</span>
      <span>
        {epoch === null ? (
          '–'
        ) : (
          <>
            <span class="row-label">epoch </span>
            {epoch}
          </>
        )}
      </span>
      <span>
        <span class={tone === 'plain' ? 'badge' : `badge ${tone}`}>{mark}</span>
      </span>
      <span class="cut" title={words}>
        {words}
      </span>
      <span class="quiet step-lease" title={leaseId ?? undefined}>
        {claimant === undefined ? <code>{short(leaseId) ?? '–'}</code> : nameOf(claimant)}
      </span>
    </div>
  );
}
