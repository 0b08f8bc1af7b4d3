/** One session: its state, its worker and slot, its progress, and its history. */
import type { ComponentChildren } from 'preact';
import type {
  ApiEvent,
  ApiSession,
  RunSession,
  SessionState,
} from '../../../src/client/messages.ts';
import { client } from '../data/access.ts';
import { useArrivals } from '../data/arrivals.ts';
import { useAsked } from '../data/asked.ts';
import { sentenceFor } from '../data/sentence.ts';
import { sessionLabel } from '../data/session-lookup.ts';
import { rememberSessions } from '../data/session-names.ts';
import {
  attemptOf,
  progressFacts,
  reasonText,
  refOf,
  STATE_MEANS,
  STATES,
  stateWord,
  toneOf,
} from '../data/session-words.ts';
import { latestFirst } from '../data/time-order.ts';
import { counted, moment, spanOf } from '../data/words.ts';
import { Empty, Owner, Panel } from '../parts/basics.tsx';
import { Icon } from '../parts/icon.tsx';
import { hrefOf } from '../router.ts';
import { Age, Answered } from './answered.tsx';
import { STATE_ICONS } from './sessions/state-icons.ts';
import { Stop } from './sessions/stop.tsx';
import '../style/work.css';

/** Progress is not in the log, so the server is asked. A session that has ended does not change. */
const RUNNING_MS = 2_000;
const ENDED_MS = 60_000;

export function SessionView({ id }: { id: string }) {
  const asked = useAsked({
    key: id,
    ask: async (signal) => {
      const session = await client.session(id, { signal });
      rememberSessions([session]);
      return { session };
    },
    everyMs: (value) => (value === null || mayChange(value.session) ? RUNNING_MS : ENDED_MS),
  });
  const past = useAsked({
    key: id,
    ask: async (signal) => (await client.history({ session: id, limit: 200 }, { signal })).events,
  });
  useArrivals(['session', 'intent', 'pipeline', 'operator'], (come) => {
    if (!come.some(({ session, subject }) => session === id || subject === id)) return;
    asked.again(50);
    past.again(50);
  });
  return (
    <>
      <div class="view-head">
        <h1 class="cut" title={id}>
          <span class="quiet">Session</span> {sessionLabel(id)}
        </h1>
        <code class="quiet small cut" title="Session id">
          {id}
        </code>
        <span class="push quiet small">
          <Age asked={asked} />
        </span>
      </div>
      <Answered asked={asked}>
        {({ session }) => {
          if (session === null) return <Gone id={id} />;
          if (!('state' in session)) return <Polled id={id} />;
          return (
            <>
              <Machine session={session} events={past.value ?? []} />
              <Facts session={session} onStopped={() => asked.again()} />
            </>
          );
        }}
      </Answered>
      <Panel title="History" aside="from the log, latest first">
        <Answered asked={past}>{(events) => <Past events={events} />}</Answered>
      </Panel>
    </>
  );
}

function mayChange(session: ApiSession | null): boolean {
  return session !== null && 'state' in session && session.state !== 'ENDED';
}

function Gone({ id }: { id: string }) {
  return (
    <Empty title={`Session ${id} does not exist.`}>
      Holdfast forgets sessions a day after they have ended, by default.{' '}
      <a href="#/sessions">All sessions</a>
    </Empty>
  );
}

function Polled({ id }: { id: string }) {
  return (
    <Empty title="This is a polled target.">
      No intent has started it. <a href={hrefOf('targets', id)}>Open the target</a>
    </Empty>
  );
}

/** All states, the current one marked, and when the session reached each. */
function Machine({ session, events }: { session: RunSession; events: readonly ApiEvent[] }) {
  const cameAt = (state: SessionState) =>
    state === 'NEW'
      ? Date.parse(session.createdAt)
      : events.find((one) => one.event === 'session.advanced' && one.state === state)?.at;
  return (
    <ol class="session-machine" aria-label="States">
      {STATES.map((state) => {
        const at = cameAt(state);
        const isNow = session.state === state;
        return (
          <li
            key={state}
            class={isNow ? `lit ${toneOf(session)}` : ''}
            aria-current={isNow ? 'step' : undefined}
            data-state={state}
          >
            <strong>
              <Icon name={STATE_ICONS[state]} /> {stateWord(state)}
              {isNow && <span class="visually-hidden"> (now)</span>}
            </strong>
            <span class="small">{STATE_MEANS[state]}</span>
            <span class="quiet small">{at === undefined ? '–' : moment(at)}</span>
          </li>
        );
      })}
    </ol>
  );
}

function Facts({ session, onStopped }: { session: RunSession; onStopped(): void }) {
  const { tenant, reason, outcome, worker, slot, clients, losses, failures } = session;
  return (
    <div class="work-columns">
      <Panel title="Status">
        {reason !== null && (
          <p class={toneOf(session) === 'bad' ? 'notice bad' : 'notice plain'}>
            {reasonText(reason)} <code class="small">{reason}</code>
          </p>
        )}
        <dl class="facts">
          <Fact name="Kind">{session.kind}</Fact>
          <Fact name={keyName(session)}>
            <code>{refOf(session)}</code>
            {'startMs' in session && `, starting at ${spanOf(session.startMs)}`}
          </Fact>
          {'profile' in session && <Fact name="Profile">{session.profile}</Fact>}
          {'params' in session && <Params params={session.params} />}
          <Fact name="Tenant">{tenant}</Fact>
          <Fact name="Clients">{counted(clients, 'client')}</Fact>
          <Fact name="Worker">{worker === null ? 'none' : <Owner id={worker} />}</Fact>
          <Fact name="Slot">
            {slot === null ? 'none' : <a href={hrefOf('leases', slot)}>{slot}</a>}
          </Fact>
          <Fact name="Lost workers">{lossWords(losses, 'params' in session)}</Fact>
          {'params' in session && (
            <Fact name="Attempt">
              {attemptOf(session)}
              {failures > 0 && `: ${counted(failures, 'time')} failed and tried again`}
            </Fact>
          )}
          {outcome !== null && <Fact name="Outcome">{outcomeText(outcome)}</Fact>}
          <Fact name="Created">{moment(Date.parse(session.createdAt))}</Fact>
          <Fact name="Changed">
            {moment(Date.parse(session.changedAt))}, revision {session.revision}
          </Fact>
        </dl>
        <Stop session={session} onStopped={onStopped} />
      </Panel>
      <Panel title={session.detail === undefined ? 'Progress' : 'Result'}>
        <Said session={session} />
      </Panel>
    </div>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

function keyName(session: RunSession): string {
  if ('serviceRef' in session) return 'Channel';
  return 'recordingId' in session ? 'Recording' : 'Key';
}

/** One fact for each field of the params. */
function Params({ params }: { params: unknown }) {
  const facts = progressFacts(params, spanOf);
  return (
    <Fact name="Params">
      {facts.length === 0 ? 'none' : null}
      {facts.map(({ name, value }) => (
        <div key={name}>
          {name !== '' && <span class="quiet">{name} </span>}
          <code>{value}</code>
        </div>
      ))}
      {facts.length > 0 && <Raw value={params} />}
    </Fact>
  );
}

function lossWords(losses: number, isDeclared: boolean): string {
  if (losses === 0) return 'none';
  const died = `${counted(losses, 'worker')} died while running it`;
  return isDeclared ? died : `${died}; Holdfast gives up after the fourth`;
}

const DETAIL_NAMES: Readonly<Record<string, string>> = {
  tookMs: 'Ran for',
  code: 'Exit code',
  signal: 'Ended by',
  error: 'Error',
  why: 'Why',
};

/** What its pipeline reports while it runs, and its result at the end. */
function Said({ session: { progress, detail } }: { session: RunSession }) {
  if (detail === undefined)
    return progress === undefined ? (
      <p class="quiet">Its pipeline has reported nothing yet.</p>
    ) : (
      <Progress progress={progress} />
    );
  const { output, ...facts } = detail;
  return (
    <>
      <dl class="facts">
        {Object.entries(facts).map(([name, value]) =>
          value === null ? null : (
            <Fact key={name} name={DETAIL_NAMES[name] ?? name}>
              {name.endsWith('Ms') && typeof value === 'number' ? spanOf(value) : plain(value)}
            </Fact>
          ),
        )}
      </dl>
      {Array.isArray(output) && output.length > 0 && (
        <>
          <h3>Last lines of output</h3>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
          <pre class="work-text" tabIndex={0}>
            {output.map(plain).join('\n')}
          </pre>
        </>
      )}
    </>
  );
}

/** A report of the pipeline as named facts; its JSON on request. */
function Progress({ progress }: { progress: unknown }) {
  const facts = progressFacts(progress, spanOf);
  if (typeof progress !== 'object') return <p class="work-said">{facts[0]?.value}</p>;
  return (
    <>
      <dl class="facts">
        {facts.map(({ name, value }) => (
          <Fact key={name} name={name.replace(/^./, (first) => first.toUpperCase())}>
            {value}
          </Fact>
        ))}
      </dl>
      <Raw value={progress} />
    </>
  );
}

/** Longer JSON is cut off; the API has all of it. */
const MOST_JSON = 16_384;

function Raw({ value }: { value: unknown }) {
  const json = JSON.stringify(value, null, 2) ?? '';
  return (
    <details class="work-raw">
      <summary class="quiet small">Show JSON</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre class="work-text" tabIndex={0}>
        {json.length > MOST_JSON ? `${json.slice(0, MOST_JSON)} …` : json}
      </pre>
    </details>
  );
}

/** `Rejected busy` for REJECTED_BUSY. */
function outcomeText(outcome: string): string {
  const words = outcome.toLowerCase().replaceAll('_', ' ');
  return words.replace(/^./, (first) => first.toUpperCase());
}

function Past({ events }: { events: readonly ApiEvent[] }) {
  if (events.length === 0) return <p class="quiet">The log has no events of this session.</p>;
  return (
    <ul class="session-past">
      {latestFirst(events).map((event) => (
        <li key={event.position}>
          <span class="quiet">{moment(event.at)}</span>
          <Owner id={event.instance} />
          <span title={event.event}>{sentenceFor(event)}</span>
        </li>
      ))}
    </ul>
  );
}

function plain(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}
