/** One session: the state it is in, who runs it with what, why it is as it is, and what has happened to it. */
import type { ComponentChildren } from 'preact';
import type {
  ApiEvent,
  ApiSession,
  RunSession,
  SessionState,
} from '../../../src/client/messages.ts';
import { sentenceOf } from '../../../src/telemetry/sentences.ts';
import { client } from '../data/access.ts';
import { useArrivals } from '../data/arrivals.ts';
import { useAsked } from '../data/asked.ts';
import { counted, moment, spanOf } from '../data/words.ts';
import { Empty, Owner, Panel } from '../parts/basics.tsx';
import { hrefOf } from '../router.ts';
import { Age, Answered } from './answered.tsx';
import { REASON_MEANS, refOf, STATE_MEANS, STATES, signOf, toneOf } from './sessions/reasons.ts';
import { Stop } from './sessions/stop.tsx';
import { short } from './short.ts';
import '../style/work.css';

/** Progress is not in the log; what has ended, or is not there, does not change. */
const RUNNING_MS = 2_000;
const ENDED_MS = 60_000;

export function SessionView({ id }: { id: string }) {
  const asked = useAsked({
    key: id,
    ask: async (signal) => ({ session: await client.session(id, { signal }) }),
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
          <span class="quiet">Session</span> {id}
        </h1>
        <span class="push quiet small">
          <Age asked={asked} />
        </span>
      </div>
      <Answered asked={asked}>
        {({ session }) => {
          if (session === null) return <Gone id={id} />;
          if (session.kind === 'poll') return <Polled id={id} />;
          return (
            <>
              <Machine session={session} events={past.value ?? []} />
              <Facts session={session} onStopped={() => asked.again()} />
            </>
          );
        }}
      </Answered>
      <Panel title="What has happened" aside="from the shared log, the latest first">
        <Answered asked={past}>{(events) => <Past events={events} />}</Answered>
      </Panel>
    </>
  );
}

function mayChange(session: ApiSession | null): boolean {
  return session !== null && session.kind !== 'poll' && session.state !== 'ENDED';
}

function Gone({ id }: { id: string }) {
  return (
    <Empty title={`There is no session ${id}.`}>
      Sessions that have ended are forgotten after a while. <a href="#/sessions">All sessions</a>
    </Empty>
  );
}

function Polled({ id }: { id: string }) {
  return (
    <Empty title="This one is polled.">
      No intent has started it: it is a target, which one instance polls while it owns it.
      <a href={hrefOf('targets', id)}>To the target</a>
      <a href="#/">To the map</a>
    </Empty>
  );
}

/** All states there are, the one it is in lit, and when it came to each. */
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
              <span aria-hidden="true">{signOf(state)}</span> {state}
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
  const { kind, profile, tenant, reason, outcome, worker, slot, clients, losses } = session;
  return (
    <div class="work-columns">
      <Panel title="As it is">
        {reason !== null && (
          <p class={toneOf(session) === 'bad' ? 'notice bad' : 'notice plain'}>
            <strong>{reason}</strong> {REASON_MEANS[reason] ?? ''}
          </p>
        )}
        <dl class="facts">
          <Fact name={kind === 'live' ? 'Channel' : 'Recording'}>
            <code>{refOf(session)}</code>
            {session.kind === 'vod' && ` from ${spanOf(session.startMs)} on`}
          </Fact>
          <Fact name="Profile">{profile}</Fact>
          <Fact name="Tenant">{tenant}</Fact>
          <Fact name="Clients">{counted(clients, 'client')}</Fact>
          <Fact name="Worker">{worker === null ? 'nobody' : <Owner id={worker} />}</Fact>
          <Fact name="Slot">
            {slot === null ? 'none' : <a href={hrefOf('leases', slot)}>{slot}</a>}
          </Fact>
          <Fact name="Losses">{lossWords(losses)}</Fact>
          {outcome !== null && <Fact name="Outcome">{outcome}</Fact>}
          <Fact name="Made">{moment(Date.parse(session.createdAt))}</Fact>
          <Fact name="Changed">
            {moment(Date.parse(session.changedAt))}, revision {session.revision}
          </Fact>
        </dl>
        <Stop session={session} onStopped={onStopped} />
      </Panel>
      <Panel title={session.detail === undefined ? 'Progress' : 'How it ended'}>
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

function lossWords(losses: number): string {
  return losses === 0
    ? 'no worker was lost with it'
    : `${counted(losses, 'worker')} lost with it; with the fourth it is given up`;
}

const DETAIL_NAMES: Readonly<Record<string, string>> = {
  tookMs: 'Ran for',
  code: 'Exit code',
  signal: 'Ended by',
  error: 'Error',
  why: 'Why',
};

/** What its pipeline says, while it runs and at its end. */
function Said({ session: { progress, detail } }: { session: RunSession }) {
  if (detail === undefined)
    return progress === undefined ? (
      <p class="quiet">Its pipeline has said nothing yet.</p>
    ) : (
      <pre class="work-text">
        {typeof progress === 'string' ? progress : JSON.stringify(progress, null, 2)}
      </pre>
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
          <h3>Its last lines</h3>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
          <pre class="work-text" tabIndex={0}>
            {output.map(plain).join('\n')}
          </pre>
        </>
      )}
    </>
  );
}

function Past({ events }: { events: readonly ApiEvent[] }) {
  if (events.length === 0) return <p class="quiet">The log knows nothing of it.</p>;
  return (
    <ul class="session-past">
      {events.map(({ position, at, instance, event, ...facts }) => (
        <li key={position}>
          <span class="quiet">{moment(at)}</span>
          <Owner id={instance} />
          <span title={event}>
            {sentenceOf(event, { ...facts, session: short(facts.session) }, instance)}
          </span>
        </li>
      ))}
    </ul>
  );
}

function plain(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}
