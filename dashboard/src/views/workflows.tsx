/** Workflows with one writer: how far each is, who may write to it, and what was refused because its sender might not. */
import { useMemo, useRef } from 'preact/hooks';
import type { ApiWorkflow } from '../../../src/client/operating-messages.ts';
import { client } from '../data/access.ts';
import { useArrivals } from '../data/arrivals.ts';
import { useAsked } from '../data/asked.ts';
import { moment } from '../data/words.ts';
import { AsCli } from '../parts/as-cli.tsx';
import { Empty, Owner, Panel, Stat } from '../parts/basics.tsx';
import { hrefOf, place } from '../router.ts';
import { Age, Answered } from './answered.tsx';
import { LongList, shareText } from './long-list.tsx';
import { Choice, Search } from './query-fields.tsx';
import { short } from './short.ts';
import { DeadLetters } from './workflows/dead-letters.tsx';
import { CODES, countsOf, type Refusals, wrongOf } from './workflows/refusals.ts';
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

/** Epochs and states are not in the log, so they are asked for: often where that is one page, else seldom. */
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
      <Panel title="All of them" aside={<Filters />}>
        <Answered asked={asked}>
          {(list) => <List list={list} seenAtMs={asked.seenAtMs ?? 0} onMore={more} />}
        </Answered>
      </Panel>
      <Panel title="Last refusals" aside="of all workflows, as they happen">
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
  return (
    <section aria-label="Accepted and refused" class="work-section">
      <div class="stats wide">
        <Stat
          name="Steps accepted"
          value={list === null ? '…' : acceptedOf(list.workflows).toLocaleString('en')}
          note="The epochs of the workflows below, added up: each is one action, state or handover that the store has taken."
        />
        {Object.entries(CODES).map(([code, meaning]) => (
          <Stat
            key={code}
            name={`Refused: ${code}`}
            value={counts === null ? '…' : counts[code as keyof typeof CODES].toLocaleString('en')}
            note={meaning}
          />
        ))}
      </div>
      <p class="quiet small">
        The refusals are the proof that fencing works: each was sent by somebody who might not write
        any more, or not yet, and changed nothing. They are counted{' '}
        {refusals?.hasMore === true
          ? `over the latest part of the log${oldest === undefined ? '' : `, since ${moment(oldest.at)}`}, and on as they happen.`
          : 'over all that the log still knows (a day, unless configured otherwise), and on as they happen.'}{' '}
        {refusals?.hasMore === true && (
          <button type="button" class="plain" onClick={onFurther}>
            Look further back
          </button>
        )}
      </p>
    </section>
  );
}

function Filters() {
  return (
    <div class="work-filters">
      <Choice name="show" label="Which" options={SHOWN} />
      <Search name="q" label="Search by id or lease" hint="id or lease" />
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
      <Empty title="There are no workflows yet.">
        <span>
          A program claims one with <code>holdfast.workflows.claim('order-7')</code>. To see one at
          work, with its refusals:
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
        head={['Workflow', 'State', 'Epoch', 'Tenure', 'Actions under way']}
        heights={[40, 96]}
        keyOf={({ id }) => id}
        row={(workflow) => <Row workflow={workflow} seenAtMs={seenAtMs} />}
      />
      <p class="quiet small">
        {shareText(found.length, workflows.length, 'workflow')}, in order of id.{' '}
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
      <span class={unresolved === 0 ? 'quiet' : ''}>
        {unresolved === 0 ? 'none' : unresolved}
        <span class="row-label"> under way</span>
      </span>
    </div>
  );
}

function LastRefusals({ events }: Refusals) {
  if (events.length === 0)
    return (
      <Empty title="Nothing was refused.">
        Nobody has tried to write without being allowed to. Freeze an orchestrator for longer than
        its lease lasts, or revoke its tenure, and what it sends then stands here.
      </Empty>
    );
  return (
    <div class="scroll-x">
      <table class="rows stacked">
        <thead>
          <tr>
            <th>When</th>
            <th>Code</th>
            <th>Workflow</th>
            <th>What was wrong</th>
            <th>Told by</th>
          </tr>
        </thead>
        <tbody>
          {events.slice(0, LAST_REFUSALS).map((event) => (
            <tr key={event.position}>
              <td>{moment(event.at)}</td>
              <td>
                <span class="badge bad">{String(event.code)}</span>
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
                {wrongOf(event)}
              </td>
              <td>
                <Owner id={event.instance} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function leasesOf({ expectedLease, receivedLease }: Readonly<Record<string, unknown>>): string {
  return expectedLease === null && receivedLease === null
    ? ''
    : `expected ${String(expectedLease)}, received ${String(receivedLease)}`;
}
