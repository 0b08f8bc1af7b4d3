/** One workflow: who may write to it, how far it is, and everything that has happened to it, what was refused too. */
import { useMemo } from 'preact/hooks';
import type { WorkflowDetail } from '../../../src/client/operating-messages.ts';
import { client } from '../data/access.ts';
import { useArrivals } from '../data/arrivals.ts';
import { useAsked } from '../data/asked.ts';
import { counted, moment, shellWord } from '../data/words.ts';
import { Action } from '../parts/action.tsx';
import { Empty, Panel } from '../parts/basics.tsx';
import { Age, Answered } from './answered.tsx';
import { LongList } from './long-list.tsx';
import { short } from './short.ts';
import { stateText, type Told, toldOf } from './workflows/step-words.ts';
import { Tenure } from './workflows/tenure.tsx';
import { useRefusals } from './workflows/use-refusals.ts';
import '../style/work.css';

const EVERY_MS = 3_000;

export function WorkflowView({ id }: { id: string }) {
  const asked = useAsked({
    key: id,
    ask: (signal) => client.workflow(id, { signal }),
    everyMs: EVERY_MS,
  });
  useArrivals(['workflow'], (come) => {
    if (come.some(({ workflow }) => workflow === id)) asked.again(100);
  });
  const refusals = useRefusals();
  const ours = useMemo(
    () => (refusals.value?.events ?? []).filter(({ workflow }) => workflow === id),
    [refusals.value, id],
  );
  const missing = (
    <Empty title={`There is no workflow ${id}.`}>
      It was removed, or never claimed. <a href="#/workflows">All workflows</a>
    </Empty>
  );
  return (
    <>
      <div class="view-head">
        <h1 class="cut" title={id}>
          <span class="quiet">Workflow</span> {id}
        </h1>
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
              onRevoked={() => asked.again()}
            />
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
  onRevoked,
}: {
  workflow: WorkflowDetail;
  seenAtMs: number;
  refused: number;
  onRevoked(): void;
}) {
  const { id, state, epoch, leaseId, isHeld, unresolved } = workflow;
  return (
    <div class="work-columns">
      <Panel title="As it is">
        <dl class="facts">
          <dt>Tenure</dt>
          <dd>
            <Tenure of={workflow} seenAtMs={seenAtMs} />
          </dd>
          <dt>Lease</dt>
          <dd>
            <code>{leaseId ?? 'none'}</code>
          </dd>
          <dt>Epoch</dt>
          <dd>
            {epoch}, so many steps were accepted{refused > 0 && `; ${refused} refused`}
          </dd>
          <dt>Under way</dt>
          <dd>{counted(unresolved, 'action')} without a result</dd>
        </dl>
        <div class="buttons work-actions">
          <Action
            name="Revoke the tenure"
            danger
            reason="required"
            scope="v3:admin"
            disabled={leaseId === null}
            effect={`Ends ${isHeld ? 'the tenure' : 'the last tenure'} of ${id} (lease ${short(leaseId)}). Whatever its orchestrator still sends is refused from that moment on, and another may claim the workflow at once. What it emitted and has no result is dropped by the next claim, unless that says resume.`}
            cli={`holdfast workflows revoke ${shellWord(id)} --reason '…'`}
            run={(reason) => client.revokeWorkflow(id, { reason }).then(onRevoked)}
          />
        </div>
      </Panel>
      <Panel title="State">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
        <pre class="work-text" tabIndex={0}>
          {typeof state === 'string' ? stateText(state) : JSON.stringify(state, null, 2)}
        </pre>
      </Panel>
    </div>
  );
}

function Steps({
  workflow: { steps },
  refusals,
}: {
  workflow: WorkflowDetail;
  refusals: Parameters<typeof toldOf>[1];
}) {
  const all = useMemo(() => toldOf(steps, refusals), [steps, refusals]);
  return (
    <Panel title="What has happened" aside="the latest first; the last thousand things are kept">
      <LongList
        of="step"
        items={all}
        label="Steps"
        head={['When', 'Epoch', 'What', '', 'By lease']}
        heights={[36, 76]}
        keyOf={({ position, mark }) => `${mark} ${position}`}
        row={(told) => <StepRow told={told} />}
      />
    </Panel>
  );
}

function StepRow({ told: { at, epoch, leaseId, mark, tone, words } }: { told: Told }) {
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
      <code class="quiet" title={leaseId ?? undefined}>
        {short(leaseId) ?? '–'}
      </code>
    </div>
  );
}
