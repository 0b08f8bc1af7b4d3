/** One workflow: who may write to it, its state, and its history with the refused steps. */
import { useMemo } from 'preact/hooks';
import type { WorkflowDetail } from '../../../src/client/operating-messages.ts';
import { client } from '../data/access.ts';
import { useArrivals } from '../data/arrivals.ts';
import { useAsked } from '../data/asked.ts';
import { claimantOf } from '../data/lease-names.ts';
import { nameOf } from '../data/palette.ts';
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
    <Empty title={`Workflow ${id} does not exist.`}>
      An operator removed it, or no process claimed it. <a href="#/workflows">All workflows</a>
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
      <Panel title="Status">
        <dl class="facts">
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
            {epoch}: {counted(epoch, 'step')} accepted{refused > 0 && `, ${refused} refused`}
          </dd>
          <dt>In progress</dt>
          <dd>{unresolved === 0 ? 'no actions' : counted(unresolved, 'action')}</dd>
        </dl>
        <div class="buttons work-actions">
          <Action
            name="Revoke the lease"
            danger
            reason="required"
            scope="v3:admin"
            disabled={leaseId === null}
            effect={`Revokes ${isHeld ? 'the lease' : 'the last lease'} of ${id}. The store refuses all further steps of its holder, and another process may claim the workflow at once. The next claim drops actions without a result, unless it says resume.`}
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
    <Panel title="History" aside="latest first; the store keeps the last 1,000 steps">
      <LongList
        of="step"
        items={all}
        label="Steps"
        head={['Time', 'Epoch', 'Step', '', 'Lease of']}
        heights={[36, 76]}
        keyOf={({ position, mark }) => `${mark} ${position}`}
        row={(told) => <StepRow told={told} />}
      />
    </Panel>
  );
}

function StepRow({ told: { at, epoch, leaseId, mark, tone, words } }: { told: Told }) {
  const claimant = claimantOf(leaseId);
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
