/** All workflows: what each does, who may write to it, the refused steps, and the dead letters. */
import { useMemo, useRef } from 'preact/hooks';
import type { ApiWorkflow } from '../../../src/client/operating-messages.ts';
import { client } from '../data/access.ts';
import { useArrivals } from '../data/arrivals.ts';
import { useAsked } from '../data/asked.ts';
import { claimantOf } from '../data/lease-names.ts';
import { nameOf } from '../data/palette.ts';
import { CODES, type Code, codeName } from '../data/refusal-codes.ts';
import { RUN_STATE_NAMES, RUN_STATES, type RunState } from '../data/run-words.ts';
import { latestFirst } from '../data/time-order.ts';
import { moment } from '../data/words.ts';
import { AsCli } from '../parts/as-cli.tsx';
import { Empty, Owner, Panel, Stat } from '../parts/basics.tsx';
import { Icon } from '../parts/icon.tsx';
import { ScrollX } from '../parts/scroll-x.tsx';
import { hrefOf, place, setQuery } from '../router.ts';
import { Age, Answered } from './answered.tsx';
import { LongList, shareText } from './long-list.tsx';
import { Choice, Search } from './query-fields.tsx';
import { short } from './short.ts';
import { DeadLetters } from './workflows/dead-letters.tsx';
import { countsOf, type Refusals, wrongOf } from './workflows/refusals.ts';
import { RunBadge, RunNow } from './workflows/run-state.tsx';
import { stateText } from './workflows/step-words.ts';
import { Tenure } from './workflows/tenure.tsx';
import { useRefusals } from './workflows/use-refusals.ts';
import {
  acceptedOf,
  type Filter,
  filtered,
  functionOptions,
  listOf,
  runCounts,
  SHOWN,
  serverFilter,
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
  const filter = filterOf(place.value.query);
  const all = useAsked<WorkflowList>({
    ask: (signal) => listOf((query) => client.workflows(query, { signal }), most.current),
    everyMs: paceOf,
  });
  // Where not all are here, the server looks for those that the filter wants.
  const wanted = all.value?.hasMore ? serverFilter(filter) : null;
  const some = useAsked<WorkflowList | null>({
    key: JSON.stringify(wanted),
    ask: async (signal) =>
      wanted && listOf((query) => client.workflows(query, { signal }), most.current, wanted),
    ...(wanted !== null && { everyMs: paceOf }),
  });
  const asked = wanted === null ? all : some;
  useArrivals(['workflow', 'step'], () => asked.again(1_000));
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
      {all.value !== null && <States list={all.value} />}
      <Panel title="All workflows" aside={<Filters workflows={all.value?.workflows ?? []} />}>
        <Answered asked={asked}>
          {(list) => (
            <List
              list={list ?? NONE}
              isEmpty={all.value?.workflows.length === 0}
              seenAtMs={asked.seenAtMs ?? 0}
              onMore={more}
            />
          )}
        </Answered>
      </Panel>
      <Counters list={all.value} refusals={refusals.value} onFurther={refusals.lookFurther} />
      <Panel title="Recent refusals" aside="of all workflows, live">
        <Answered asked={refusals}>{(found) => <LastRefusals {...found} />}</Answered>
      </Panel>
      <DeadLetters />
    </>
  );
}

const NONE: WorkflowList = { workflows: [], hasMore: false };

function paceOf(list: WorkflowList | null): number {
  return (list?.workflows.length ?? 0) <= ONE_PAGE ? OFTEN_MS : SELDOM_MS;
}

function filterOf(query: URLSearchParams): Filter {
  const of = (name: string) => query.get(name) ?? '';
  return { text: of('q'), name: of('function'), state: of('state') };
}

/** How many runs are in each state; a button per state filters by it. */
function States({ list: { workflows, hasMore } }: { list: WorkflowList }) {
  const counts = useMemo(() => runCounts(workflows), [workflows]);
  const chosen = place.value.query.get('state') ?? '';
  if (counts === null) return null;
  return (
    <section class="state-counts runs" aria-label="By state">
      {RUN_STATE_NAMES.map((state) => (
        <button
          key={state}
          type="button"
          class={counts[state] === 0 ? 'zero' : ''}
          aria-pressed={chosen === state}
          title={RUN_STATES[state].means}
          onClick={() => setQuery({ state: chosen === state ? '' : state })}
        >
          <span class="quiet small">
            <Icon name={RUN_STATES[state].icon} /> {RUN_STATES[state].word}
          </span>
          <strong class={toneOfCount(state, counts[state])}>
            {counts[state].toLocaleString('en')}
          </strong>
        </button>
      ))}
      {hasMore && (
        <p class="quiet small">
          Counted among the first {workflows.length.toLocaleString('en')} workflows by id. Choosing
          a function or one of these states looks through all of them; the search does not.
        </p>
      )}
    </section>
  );
}

function toneOfCount(state: RunState, count: number): string {
  return count > 0 && state === 'failed' ? 'bad' : '';
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
          note="Actions, states and handovers that the store accepted, of all workflows above."
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

function Filters({ workflows }: { workflows: readonly ApiWorkflow[] }) {
  const chosen = place.value.query.get('function') ?? '';
  return (
    <div class="work-filters">
      <Choice name="function" label="Function" options={functionOptions(workflows, chosen)} />
      <Choice name="state" label="State" options={SHOWN} />
      <Search name="q" label="Search by id, lease, signal or error" hint="Search  /" />
    </div>
  );
}

function List({
  list: { workflows, hasMore },
  isEmpty,
  seenAtMs,
  onMore,
}: {
  list: WorkflowList;
  /** There are none at all. */
  isEmpty: boolean;
  seenAtMs: number;
  onMore(): void;
}) {
  const { text, name, state } = filterOf(place.value.query);
  const found = useMemo(
    () => filtered(workflows, { text, name, state }),
    [workflows, text, name, state],
  );
  if (isEmpty) return <FirstRun />;
  return (
    <>
      <LongList
        of="workflow"
        items={found}
        label="Workflows"
        head={['Workflow', 'Function', 'State', 'Held by', 'Epoch', 'Changed']}
        heights={[40, 96]}
        keyOf={({ id }) => id}
        row={(workflow) => <Row workflow={workflow} seenAtMs={seenAtMs} />}
      />
      <p class="quiet small">
        {shareText(found.length, workflows.length, 'workflow')}, sorted by id.{' '}
        {found.length === 0 && 'None fits the filter. '}
        {hasMore && (
          <button type="button" onClick={onMore}>
            Load more
          </button>
        )}
      </p>
    </>
  );
}

/** What to write to get the first run. */
const FIRST_CODE = `const fulfil = holdfast.workflow('fulfil', async (order, input) => {
  await order.step('charge', () => charge(input));
  await order.sleep('cool-off', '1h');
});
await fulfil.run();`;

function FirstRun() {
  return (
    <Empty title="No workflow has been started yet.">
      <span>Write a function, and run it in one or more of your processes:</span>
      <pre class="work-text first-code">{FIRST_CODE}</pre>
      <span>Then start a workflow:</span>
      <AsCli command={`holdfast workflows start fulfil order-7 --input '{"item":"tea"}'`} />
    </Empty>
  );
}

function Row({ workflow, seenAtMs }: { workflow: ApiWorkflow; seenAtMs: number }) {
  const { id, state, epoch, unresolved, run, isHeld, instance, changedAt } = workflow;
  return (
    <div class="workflow-row list-row" data-workflow={id}>
      <a class="cut mono" href={hrefOf('workflows', id)} title={id}>
        {id}
      </a>
      <span class="cut quiet" title={run?.function}>
        {run?.function ?? '–'}
      </span>
      {run === null ? (
        <code class="cut quiet" title={stateText(state)}>
          {stateText(state)}
        </code>
      ) : (
        <span class="cut">
          <RunBadge of={workflow} />{' '}
          <span class="quiet">
            <RunNow of={workflow} seenAtMs={seenAtMs} />
          </span>
        </span>
      )}
      <span class="cut">
        {run === null ? (
          <Tenure of={workflow} seenAtMs={seenAtMs} />
        ) : (
          isHeld && <Owner id={instance} none="an instance" />
        )}
      </span>
      <span>
        <span class="row-label">epoch </span>
        {epoch}
        {unresolved > 0 && `, ${unresolved} in progress`}
      </span>
      <span class="quiet">{moment(changedAt)}</span>
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
