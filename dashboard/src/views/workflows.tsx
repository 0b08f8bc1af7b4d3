/** All workflows: their states, who may write to each, the refused steps, and the dead letters. */
import { useMemo, useRef } from 'preact/hooks';
import type { ApiWorkflow } from '../../../src/client/operating-messages.ts';
import { client } from '../data/access.ts';
import { useArrivals } from '../data/arrivals.ts';
import { useAsked } from '../data/asked.ts';
import { claimantOf } from '../data/lease-names.ts';
import { nameOf } from '../data/palette.ts';
import { CODES, type Code, codeName } from '../data/refusal-codes.ts';
import { latestFirst } from '../data/time-order.ts';
import { moment } from '../data/words.ts';
import { AsCli } from '../parts/as-cli.tsx';
import { Empty, Owner, Panel, Stat } from '../parts/basics.tsx';
import { ScrollX } from '../parts/scroll-x.tsx';
import { hrefOf, place } from '../router.ts';
import { Age, Answered } from './answered.tsx';
import { LongList, shareText } from './long-list.tsx';
import { Choice, Search } from './query-fields.tsx';
import { short } from './short.ts';
import { DeadLetters } from './workflows/dead-letters.tsx';
import { countsOf, type Refusals, wrongOf } from './workflows/refusals.ts';
import { stateText } from './workflows/step-words.ts';
import { Tenure } from './workflows/tenure.tsx';
import { useRefusals } from './workflows/use-refusals.ts';
import {
  acceptedOf,
  filtered,
  listOf,
  SHOWN,
  type WorkflowList,
} from './workflows/workflow-list.ts';
import '../style/work.css';

/** Epochs and states are not in the log, so the server is asked: often if one page has all, else seldom. */
const OFTEN_MS = 3_000;
const SELDOM_MS = 30_000;
const ONE_PAGE = 500;
const FIRST_MOST = 2_000;
const LAST_REFUSALS = 20;

export function WorkflowsView() {
  const most = useRef(FIRST_MOST);
  const asked = useAsked<WorkflowList>({
    ask: (signal) => listOf((query) => client.workflows(query, { signal }), most.current),
    everyMs: (list) => ((list?.workflows.length ?? 0) <= ONE_PAGE ? OFTEN_MS : SELDOM_MS),
  });
  useArrivals(['workflow'], () => asked.again(1_000));
  const refusals = useRefusals();
  const more = () => {
    most.current += FIRST_MOST;
    asked.again();
  };
  return (
    <>
      <div class="view-head">
        <h1>Workflows</h1>
        <span class="push quiet small">
          <Age asked={asked} />
        </span>
      </div>
      <Counters list={asked.value} refusals={refusals.value} onFurther={refusals.lookFurther} />
      <Panel title="All workflows" aside={<Filters />}>
        <Answered asked={asked}>
          {(list) => <List list={list} seenAtMs={asked.seenAtMs ?? 0} onMore={more} />}
        </Answered>
      </Panel>
      <Panel title="Recent refusals" aside="of all workflows, live">
        <Answered asked={refusals}>{(found) => <LastRefusals {...found} />}</Answered>
      </Panel>
      <DeadLetters />
    </>
  );
}

function Counters({
  list,
  refusals,
  onFurther,
}: {
  list: WorkflowList | null;
  refusals: Refusals | null;
  onFurther(): void;
}) {
  const counts = useMemo(() => (refusals === null ? null : countsOf(refusals.events)), [refusals]);
  const oldest = refusals?.events.at(-1);
  if (list?.workflows.length === 0 && refusals?.events.length === 0) return null;
  return (
    <section aria-label="Steps accepted and refused" class="work-section">
      <div class="stats wide">
        <Stat
          name="Steps accepted"
          value={list === null ? '…' : acceptedOf(list.workflows).toLocaleString('en')}
          note="Actions, states and handovers that the store accepted, of all workflows below."
        />
        {counts !== null &&
          Object.entries(CODES).map(([code, { name, means }]) =>
            counts[code as Code] === 0 ? null : (
              <Stat
                key={code}
                name={`Refused: ${name}`}
                value={counts[code as Code].toLocaleString('en')}
                note={
                  <>
                    {means} <code>{code}</code>
                  </>
                }
              />
            ),
          )}
        {counts !== null && refusals?.events.length === 0 && (
          <Stat
            name="Steps refused"
            value="0"
            tone="quiet"
            note="The store refuses the steps of a process that has lost its lease."
          />
        )}
      </div>
      {refusals !== null && refusals.events.length > 0 && (
        <p class="quiet small">
          Refusals show that fencing works: none of these steps changed anything. The figures cover{' '}
          {refusals.hasMore
            ? `the log since ${oldest === undefined ? 'a short while' : moment(oldest.at)}.`
            : 'the whole log, which keeps one day by default.'}{' '}
          {refusals.hasMore && (
            <button type="button" class="plain" onClick={onFurther}>
              Count older ones
            </button>
          )}
        </p>
      )}
    </section>
  );
}

function Filters() {
  return (
    <div class="work-filters">
      <Choice name="show" label="Which" options={SHOWN} />
      <Search name="q" label="Search by id or lease" hint="Search  /" />
    </div>
  );
}

function List({
  list: { workflows, hasMore },
  seenAtMs,
  onMore,
}: {
  list: WorkflowList;
  seenAtMs: number;
  onMore(): void;
}) {
  const { query } = place.value;
  const text = query.get('q') ?? '';
  const shown = query.get('show') ?? '';
  const found = useMemo(() => filtered(workflows, { text, shown }), [workflows, text, shown]);
  if (workflows.length === 0)
    return (
      <Empty title="No process has claimed a workflow yet.">
        <span>
          Claim one in your program with <code>holdfast.workflows.claim('order-7')</code>. The demo
          shows one, with refused steps:
        </span>
        <AsCli command="holdfast demo" />
      </Empty>
    );
  return (
    <>
      <LongList
        of="workflow"
        items={found}
        label="Workflows"
        head={['Workflow', 'State', 'Epoch', 'Lease', 'Actions in progress']}
        heights={[40, 96]}
        keyOf={({ id }) => id}
        row={(workflow) => <Row workflow={workflow} seenAtMs={seenAtMs} />}
      />
      <p class="quiet small">
        {shareText(found.length, workflows.length, 'workflow')}, sorted by id.{' '}
        {hasMore && (
          <button type="button" onClick={onMore}>
            Load more
          </button>
        )}
      </p>
    </>
  );
}

function Row({ workflow, seenAtMs }: { workflow: ApiWorkflow; seenAtMs: number }) {
  const { id, state, epoch, unresolved } = workflow;
  return (
    <div class="workflow-row list-row" data-workflow={id}>
      <a class="cut mono" href={hrefOf('workflows', id)} title={id}>
        {id}
      </a>
      <code class="cut quiet" title={stateText(state)}>
        {stateText(state)}
      </code>
      <span>
        <span class="row-label">epoch </span>
        {epoch}
      </span>
      <span>
        <Tenure of={workflow} seenAtMs={seenAtMs} />
      </span>
      <span class={unresolved === 0 ? 'quiet none' : ''}>
        {unresolved === 0 ? 'none' : unresolved}
        <span class="row-label"> in progress</span>
      </span>
    </div>
  );
}

function LastRefusals({ events }: Refusals) {
  if (events.length === 0)
    return (
      <Empty title="The store has refused no step.">
        Freeze a process that holds a workflow for longer than its lease lasts, or revoke its lease.
        The steps that it sends afterwards show up here.
      </Empty>
    );
  return (
    <ScrollX label="Recent refusals">
      <table class="rows stacked">
        <thead>
          <tr>
            <th>Time</th>
            <th>Reason</th>
            <th>Workflow</th>
            <th>What was wrong</th>
            <th>Reported by</th>
          </tr>
        </thead>
        <tbody>
          {latestFirst(events)
            .slice(0, LAST_REFUSALS)
            .map((event) => (
              <tr key={event.position}>
                <td>{moment(event.at)}</td>
                <td>
                  <span class="badge bad" title={String(event.code)}>
                    {codeName(event.code)}
                  </span>
                </td>
                <td class="cut">
                  <a
                    href={hrefOf('workflows', String(event.workflow))}
                    title={String(event.workflow)}
                  >
                    {String(event.workflow)}
                  </a>
                </td>
                <td class="why" title={leasesOf(event)}>
                  {event.action === null ? 'a step' : `action ${short(event.action)}`} with{' '}
                  {wrongOf(event, leaseLabel)}
                </td>
                <td>
                  <Owner id={event.instance} />
                </td>
              </tr>
            ))}
        </tbody>
      </table>
    </ScrollX>
  );
}

/** The instance that claimed with this lease, or the start of its id. */
function leaseLabel(leaseId: unknown): string | null {
  const claimant = claimantOf(leaseId);
  return claimant === undefined ? short(leaseId) : `of ${nameOf(claimant)}`;
}

function leasesOf({ expectedLease, receivedLease }: Readonly<Record<string, unknown>>): string {
  return expectedLease === null && receivedLease === null
    ? ''
    : `expected ${String(expectedLease)}, received ${String(receivedLease)}`;
}
