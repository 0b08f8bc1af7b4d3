/** The sessions that intents have started: their states and reasons, the slots, and how long starts take. */
import { useMemo, useRef } from 'preact/hooks';
import type { RunSession } from '../../../src/client/messages.ts';
import { client } from '../data/access.ts';
import { useArrivals } from '../data/arrivals.ts';
import { type Asked, useAsked } from '../data/asked.ts';
import { rememberSessions } from '../data/session-names.ts';
import {
  attemptOf,
  paramsOf,
  progressLine,
  reasonText,
  refOf,
  STATE_MEANS,
  STATES,
  stateWord,
  toneOf,
} from '../data/session-words.ts';
import { moment, spanOf } from '../data/words.ts';
import { AsCli } from '../parts/as-cli.tsx';
import { Empty, Owner, Panel } from '../parts/basics.tsx';
import { Icon } from '../parts/icon.tsx';
import { hrefOf, place, setQuery } from '../router.ts';
import { Age, Answered } from './answered.tsx';
import { LongList, shareText } from './long-list.tsx';
import { Choice, Search } from './query-fields.tsx';
import {
  changedBy,
  countsByState,
  type Filter,
  filtered,
  latest,
  type SessionList,
  withSession,
} from './sessions/session-list.ts';
import { Slots } from './sessions/slots.tsx';
import { StartForm } from './sessions/start.tsx';
import { StartLatency } from './sessions/start-latency.tsx';
import { STATE_ICONS } from './sessions/state-icons.ts';
import '../style/work.css';

const FIRST_MOST = 2_000;
/** Progress is not in the log, so all sessions are requested this often. */
const EVERY_MS = 30_000;
/** Sessions that change within this time are requested together. If there are more than `MOST_ALONE`, all are. */
const GATHER_MS = 300;
const MOST_ALONE = 5;
const ALL_MS = 2_000;

export function SessionsView() {
  const most = useRef(FIRST_MOST);
  const asked = useAsked<SessionList>({
    // Naming the states leaves out polled targets, which have none.
    ask: async (signal) => {
      const list = await latest(
        client.sessions({ state: STATES, limit: 500, signal }),
        most.current,
      );
      rememberSessions(list.sessions);
      return list;
    },
    everyMs: EVERY_MS,
  });
  useArrivals(
    ['session', 'intent', 'pipeline'],
    (come) => refresh(asked, changedBy(come)),
    GATHER_MS,
  );
  const more = () => {
    most.current += FIRST_MOST;
    asked.again();
  };
  return (
    <>
      <div class="view-head">
        <h1>Sessions</h1>
        <span class="quiet small">
          started by intents; polled targets are in <a href="#/targets">Targets</a>
        </span>
        <span class="push quiet small">
          <Age asked={asked} />
        </span>
      </div>
      <Answered asked={asked}>
        {(list) => (
          <>
            {list.sessions.length > 0 && <States sessions={list.sessions} />}
            <Panel title="All sessions" aside={<Filters sessions={list.sessions} />}>
              <List list={list} onMore={more} />
            </Panel>
          </>
        )}
      </Answered>
      <Slots />
      <div class="work-columns">
        <StartForm />
        <StartLatency />
      </div>
    </>
  );
}

/** Asks only for the sessions that have changed. */
function refresh(asked: Asked<SessionList>, ids: ReadonlySet<string>): void {
  if (ids.size > MOST_ALONE) asked.again(ALL_MS);
  for (const id of ids.size > MOST_ALONE ? [] : ids)
    client.session(id).then(
      (session) => asked.patch((list) => withSession(list, id, session)),
      // The next request for all sessions shows it.
      () => {},
    );
}

function filterOf(query: URLSearchParams): Filter {
  const of = (name: string) => query.get(name) ?? '';
  return { state: of('state'), kind: of('kind'), text: of('q') };
}

/** How many sessions are in each state; a button per state filters by it. States without sessions step back. */
function States({ sessions }: { sessions: readonly RunSession[] }) {
  const counts = useMemo(() => countsByState(sessions), [sessions]);
  const chosen = place.value.query.get('state') ?? '';
  return (
    <section class="state-counts" aria-label="By state">
      {STATES.map((state) => (
        <button
          key={state}
          type="button"
          class={counts.get(state) === 0 ? 'zero' : ''}
          aria-pressed={chosen === state}
          title={`${state}: ${STATE_MEANS[state]}`}
          onClick={() => setQuery({ state: chosen === state ? '' : state })}
        >
          <span class="quiet small">
            <Icon name={STATE_ICONS[state]} /> {stateWord(state)}
          </span>
          <strong>{counts.get(state)?.toLocaleString('en')}</strong>
        </button>
      ))}
    </section>
  );
}

const STATE_OPTIONS = {
  '': 'all states',
  ...Object.fromEntries(STATES.map((state) => [state, stateWord(state).toLowerCase()])),
};

/** The kinds there are, and the chosen one. */
function kindOptions(sessions: readonly RunSession[]): Record<string, string> {
  const chosen = place.value.query.get('kind') ?? '';
  const kinds = new Set([...sessions.map(({ kind }) => kind), ...(chosen === '' ? [] : [chosen])]);
  const options = [...kinds].sort().map((kind) => [kind, `${kind} only`]);
  return { '': 'all kinds', ...Object.fromEntries(options) };
}

function Filters({ sessions }: { sessions: readonly RunSession[] }) {
  return (
    <div class="work-filters">
      <Choice name="state" label="State" options={STATE_OPTIONS} />
      <Choice name="kind" label="Kind" options={kindOptions(sessions)} />
      <Search name="q" label="Search by id, key, params, reason or worker" hint="Search  /" />
    </div>
  );
}

function List({ list: { sessions, hasMore }, onMore }: { list: SessionList; onMore(): void }) {
  const { state, kind, text } = filterOf(place.value.query);
  const found = useMemo(
    () => filtered(sessions, { state, kind, text }),
    [sessions, state, kind, text],
  );
  if (sessions.length === 0)
    return (
      <Empty title="No intent has started a session yet.">
        Start one below, or from a terminal:
        <AsCli command="holdfast intents start --wait channel-7" />
      </Empty>
    );
  return (
    <>
      <LongList
        of="session"
        items={found}
        label="Sessions"
        head={[
          'State',
          'Kind and key',
          'Reason or progress',
          'Worker',
          'Slot',
          'Clients',
          'Changed',
        ]}
        heights={[40, 96]}
        keyOf={({ id }) => id}
        row={(session) => <Row session={session} />}
      />
      <p class="quiet small">
        {shareText(found.length, sessions.length, 'session')}, latest first.{' '}
        {hasMore && (
          <button type="button" onClick={onMore}>
            Load more
          </button>
        )}
      </p>
    </>
  );
}

function Row({ session }: { session: RunSession }) {
  const { id, kind, state, reason, worker, slot, clients, changedAt, progress } = session;
  const params = progressLine(paramsOf(session), spanOf);
  const waits = state === 'NEW' ? `waits for a worker that takes ${kind}` : '';
  const attempt = attemptOf(session);
  const again = attempt > 1 ? `attempt ${attempt} · ` : '';
  const now = reason === null ? waits || progressLine(progress, spanOf) : reasonText(reason);
  const said = again + now;
  return (
    <div class="session-row list-row" data-session={id}>
      <span>
        <span class={`badge ${toneOf(session)}`} title={`${state}: ${STATE_MEANS[state]}`}>
          <Icon name={STATE_ICONS[state]} /> {stateWord(state)}
        </span>
      </span>
      <a
        class="cut"
        href={hrefOf('sessions', id)}
        title={`${kind} ${refOf(session)} ${params}, session ${id}`}
      >
        <span class="quiet small">{kind}</span> {refOf(session)}{' '}
        {params !== '' && <span class="quiet small">{params}</span>}
      </a>
      <span class={reason === null ? 'cut quiet' : 'cut'} title={`${said} ${reason ?? ''}`.trim()}>
        {said}
      </span>
      <span class="cut">{worker !== null && <Owner id={worker} />}</span>
      <code class="cut" title={slot ?? undefined}>
        {slot}
      </code>
      <span>
        {clients}
        <span class="row-label"> {clients === 1 ? 'client' : 'clients'}</span>
      </span>
      <span class="quiet">{moment(Date.parse(changedAt))}</span>
    </div>
  );
}
