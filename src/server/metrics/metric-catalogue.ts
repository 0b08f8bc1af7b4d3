/**
 * Every metric there is, once: its name, what it means, its labels with the values that they may have, and where it comes from. Nearly
 * all come from events, and nothing is counted that the event catalogue does not tell. `docs/metrics.md` has a line for each; `metrics.ts`
 * makes of this what Prometheus reads.
 *
 * No label has the id of a target, a session, a workflow or a client: a series once made stays for as long as the process lives.
 */
import type { BusyReason, LossReason } from '../../core/errors.ts';
import type { EventName, Events, Listener, Violation } from '../../core/events.ts';
import type { Holdfast } from '../../holdfast.ts';
import type { Intent } from '../../intents/intent.ts';
import { REASONS } from '../../intents/intent-session.ts';
import { LEASE_CLASSES } from '../../lease/timings.ts';
import { SESSION_STATES } from '../../store/port/intent-store.ts';
import { KEYSPACE_NAMES } from '../../store/port/keyspaces.ts';
import { LEVELS } from '../../telemetry/levels.ts';

/** What stands before every name. */
export const PREFIX = 'holdfast_';

/** Counts, sets or observes a value; the values of its labels come in the order in which the entry names them. */
export type Note = (value: number, ...labels: readonly string[]) => void;

interface EventSource {
  on<N extends EventName>(name: N, listener: Listener<N>): () => void;
}

/** An event, and what it says to a metric. */
interface Feed {
  readonly event: EventName;
  subscribe(source: EventSource, note: Note): () => void;
}

/** What can be asked of an instance at any time. */
export interface Asked extends Pick<Holdfast, 'census' | 'running'> {
  /** How many watch events through its server. */
  readonly watching: number;
}

export interface MetricEntry {
  /** Without the prefix. */
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** The values that a label may have, anything else becoming `other`; null where there is a limit to them elsewhere. */
  readonly labels: { readonly [label: string]: readonly string[] | null };
  readonly feeds: readonly Feed[];
  /** Asked when somebody looks. */
  readonly ask?: (asked: Asked, note: Note) => void;
  /** Of a histogram, in seconds. */
  readonly buckets?: readonly number[];
  /** What was set is less by every second that passes, down to 0. */
  readonly countsDown?: true;
  /** Of a gauge: what is noted is added to what it has, which never is below 0. */
  readonly addsUp?: true;
  /** Fed by the server, and there only where there is one. */
  readonly isServers?: true;
}

/** Keys that have to be all of a type, so that whoever adds to it is told here. */
function all<T extends string>(values: { readonly [V in T]: true }): readonly string[] {
  return Object.keys(values);
}

function from<N extends EventName>(event: N, read: (facts: Events[N], note: Note) => void): Feed {
  const subscribe = (source: EventSource, note: Note) =>
    source.on(event, (facts) => read(facts, note));
  return { event, subscribe };
}

const once = <N extends EventName>(event: N, ...labels: readonly string[]): Feed =>
  from(event, (_, note) => note(1, ...labels));

const CLASSES = Object.keys(LEASE_CLASSES);
const BUSY = all<BusyReason>({ held: true, quarantine: true, revoked: true, unsettled: true });
const LOSSES = all<LossReason>({
  expired: true,
  taken_over: true,
  revoked: true,
  unsuitable: true,
});
/** `FENCE_STALE`: the result of a poll; the others: steps of workflows, and actions. */
const REFUSALS = all<Violation['code'] | 'FENCE_STALE'>({
  FENCE_STALE: true,
  LEASE_VIOLATION: true,
  STALE_EPOCH: true,
  FUTURE_EPOCH: true,
  LEASE_EXPIRED: true,
});
const INTENTS = all<Intent['type']>({
  'stream.start': true,
  'vod.start': true,
  'stream.stop': true,
});
const ENDS = all<Events['pipeline.ended']['how']>({ completed: true, failed: true, stopped: true });

/** From an answer out of memory to the longest that a store may take. */
const LATENCY = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Work of somebody else's, which may take its time. */
const WORK = [...LATENCY, 30, 60, 300];
const WAITS = [0.001, 0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800];
/** Up to what runs for a day. */
const RUNS = [1, 5, 15, 60, 300, 900, 3_600, 14_400, 43_200, 86_400];

const EVENTS: MetricEntry = {
  name: 'events_total',
  type: 'counter',
  help: 'What has happened to this instance.',
  labels: { event: Object.keys(LEVELS) },
  // Told of each renewal of each lease only where somebody listens, and the batches say how many they were.
  feeds: (Object.keys(LEVELS) as EventName[]).map((name) =>
    name === 'lease.extended'
      ? from('lease.renewed', ({ count }, note) => note(count, name))
      : once(name, name),
  ),
};

const LEASES: readonly MetricEntry[] = [
  {
    name: 'leases_held',
    type: 'gauge',
    labels: { class: CLASSES },
    feeds: [],
    help: 'Leases that this instance holds.',
    ask(asked, note) {
      const census = asked.census();
      for (const name of CLASSES) note(census.get(name)?.held ?? 0, name);
    },
  },
  {
    name: 'lease_deadline_seconds',
    type: 'gauge',
    labels: { class: CLASSES },
    feeds: [],
    help: 'How long until the first lease of this instance would be lost, should no renewal be confirmed from now on.',
    ask(asked, note) {
      for (const [name, { remainingMs }] of asked.census()) note(remainingMs / 1_000, name);
    },
  },
  {
    name: 'lease_ttl_seconds',
    type: 'gauge',
    labels: { class: CLASSES },
    feeds: [],
    help: 'The shortest TTL of the leases that this instance holds.',
    ask(asked, note) {
      for (const [name, { ttlMs }] of asked.census()) note(ttlMs / 1_000, name);
    },
  },
  {
    name: 'leases_acquired_total',
    type: 'counter',
    labels: { class: CLASSES },
    help: 'Leases that were granted.',
    feeds: [from('lease.acquired', ({ leaseClass }, note) => note(1, leaseClass))],
  },
  {
    name: 'lease_wait_duration_seconds',
    type: 'histogram',
    buckets: WAITS,
    help: 'How long those waited who were granted a lease.',
    labels: { class: CLASSES },
    feeds: [
      from('lease.acquired', ({ leaseClass, waitedMs }, note) =>
        note(waitedMs / 1_000, leaseClass),
      ),
    ],
  },
  {
    name: 'leases_refused_total',
    type: 'counter',
    help: 'Leases that were not to be had, at once or within the wait. Contention is no fault.',
    labels: { class: CLASSES, reason: BUSY },
    feeds: [from('lease.refused', ({ leaseClass, reason }, note) => note(1, leaseClass, reason))],
  },
  {
    name: 'lease_renew_duration_seconds',
    type: 'histogram',
    buckets: LATENCY,
    help: 'How long a batch of renewals took until all of it was answered.',
    labels: { class: CLASSES },
    feeds: [
      from('lease.renewed', ({ leaseClass, tookMs }, note) => note(tookMs / 1_000, leaseClass)),
    ],
  },
  {
    name: 'leases_lost_total',
    type: 'counter',
    labels: { class: CLASSES, reason: LOSSES },
    help: "Leases that ended against their holder's will.",
    feeds: [from('lease.lost', ({ leaseClass, reason }, note) => note(1, leaseClass, reason))],
  },
  {
    name: 'handovers_total',
    type: 'counter',
    labels: { class: CLASSES },
    help: 'Leases that this instance handed to a successor.',
    feeds: [from('lease.transferred', ({ leaseClass }, note) => note(1, leaseClass))],
  },
];

const FLEET: readonly MetricEntry[] = [
  {
    name: 'fleet_members',
    type: 'gauge',
    labels: {},
    help: 'Instances that share the targets, as this one sees it.',
    feeds: [from('fleet.planned', ({ members }, note) => note(members))],
  },
  {
    name: 'fleet_targets',
    type: 'gauge',
    labels: {},
    help: 'Targets that are to be polled by somebody, as this instance sees it.',
    feeds: [from('fleet.planned', ({ targets }, note) => note(targets))],
  },
  {
    name: 'failovers_total',
    type: 'counter',
    labels: {},
    help: 'Targets that this instance took after the lease of another had run out.',
    feeds: [
      from('target.taken', ({ how }, note) => {
        if (how === 'failover') note(1);
      }),
    ],
  },
  {
    name: 'gap_duration_seconds',
    type: 'histogram',
    buckets: WAITS,
    labels: {},
    help: 'For how long no owner worked on a target after a failure: from the last renewal of its old owner until it was granted here.',
    feeds: [
      from('target.taken', ({ how, gapMs }, note) => {
        if (how === 'failover') note(gapMs / 1_000);
      }),
    ],
  },
  {
    name: 'handover_duration_seconds',
    type: 'histogram',
    buckets: LATENCY,
    labels: {},
    help: 'From when this instance heard that a target was handed to it until it had it.',
    feeds: [
      from('target.taken', ({ how, gapMs }, note) => {
        if (how === 'handover') note(gapMs / 1_000);
      }),
    ],
  },
  {
    name: 'polls_total',
    type: 'counter',
    labels: { result: ['done', 'failed'] },
    help: 'Polls that have ended.',
    feeds: [once('poll.done', 'done'), once('poll.failed', 'failed')],
  },
  {
    name: 'poll_duration_seconds',
    type: 'histogram',
    buckets: WORK,
    help: 'How long polls took.',
    labels: { result: ['done', 'failed'] },
    feeds: [
      from('poll.done', ({ tookMs }, note) => note(tookMs / 1_000, 'done')),
      from('poll.failed', ({ tookMs }, note) => note(tookMs / 1_000, 'failed')),
    ],
  },
];

const WORKFLOWS: readonly MetricEntry[] = [
  {
    name: 'refusals_total',
    type: 'counter',
    labels: { code: REFUSALS },
    help: 'Steps, actions and results that came under a lease or at an epoch which did not allow them. Each is a write that fencing has kept out.',
    feeds: [
      from('workflow.violation', ({ code }, note) => note(1, code)),
      once('result.refused', 'FENCE_STALE'),
    ],
  },
  {
    name: 'actions_emitted_total',
    type: 'counter',
    labels: {},
    help: 'Actions that orchestrators here have emitted.',
    feeds: [once('action.emitted')],
  },
  {
    name: 'actions_total',
    type: 'counter',
    help: 'Tries of actions here: done; failed, to be tried again or for good; dead, having been tried too often; gone, another has it.',
    labels: { result: ['done', 'failed', 'dead', 'gone'] },
    feeds: [
      once('action.done', 'done'),
      from('action.failed', ({ isDead }, note) => note(1, isDead ? 'dead' : 'failed')),
      once('action.gone', 'gone'),
    ],
  },
  {
    name: 'action_duration_seconds',
    type: 'histogram',
    buckets: WORK,
    labels: {},
    help: 'From when an action was begun until its result was in.',
    feeds: [from('action.done', ({ tookMs }, note) => note(tookMs / 1_000))],
  },
];

const SESSIONS: readonly MetricEntry[] = [
  {
    name: 'intents_total',
    type: 'counter',
    help: 'Intents that made sense, by what came of them here.',
    labels: { type: INTENTS, result: ['accepted', 'replayed', 'refused'] },
    feeds: (['accepted', 'replayed', 'refused'] as const).map((result) =>
      from(`intent.${result}`, ({ type }, note) => note(1, type, result)),
    ),
  },
  {
    name: 'sessions_running',
    type: 'gauge',
    labels: {},
    feeds: [],
    help: 'Sessions from intents that this instance has in hands.',
    ask: (asked, note) => note(asked.running),
  },
  {
    name: 'session_transitions_total',
    type: 'counter',
    labels: { state: SESSION_STATES },
    help: 'Sessions from intents that this instance has brought into a state.',
    feeds: [from('session.advanced', ({ state }, note) => note(1, state))],
  },
  {
    name: 'sessions_ended_total',
    type: 'counter',
    labels: { reason: REASONS },
    help: 'Sessions from intents that this instance has ended, by the reason.',
    feeds: [
      from('session.advanced', ({ state, reason }, note) => {
        if (state === 'ENDED' && reason !== null) note(1, reason);
      }),
    ],
  },
  {
    name: 'sessions_recovered_total',
    type: 'counter',
    labels: {},
    help: 'Sessions that the worker here went on with after another had lost or left them.',
    feeds: [once('session.recovered')],
  },
  {
    name: 'pipelines_started_total',
    type: 'counter',
    labels: {},
    help: 'Pipelines that were started.',
    feeds: [once('pipeline.started')],
  },
  {
    name: 'pipeline_duration_seconds',
    type: 'histogram',
    buckets: RUNS,
    help: 'How long pipelines ran, by how they ended.',
    labels: { how: ENDS },
    feeds: [from('pipeline.ended', ({ how, tookMs }, note) => note(tookMs / 1_000, how))],
  },
];

const STORE: readonly MetricEntry[] = [
  {
    name: 'stalled',
    type: 'gauge',
    labels: { part: ['fleet', 'worker', 'processor'] },
    addsUp: true,
    help: 'How many parts of this instance can not get on: 0 where all can.',
    feeds: (['fleet', 'worker', 'processor'] as const).flatMap((part) => [
      from(`${part}.stalled`, (_, note) => note(1, part)),
      from(`${part}.resumed`, (_, note) => note(-1, part)),
    ]),
  },
  {
    name: 'store_disconnections_total',
    type: 'counter',
    labels: {},
    help: 'Connections to the store that were given up.',
    feeds: [once('store.disconnected')],
  },
  {
    name: 'store_forgot_total',
    type: 'counter',
    labels: {},
    help: 'How often the store may have forgotten leases that it had granted.',
    feeds: [once('store.forgot')],
  },
  {
    name: 'store_quarantine_seconds',
    type: 'gauge',
    countsDown: true,
    help: 'For how long yet no new lease is granted, because the store may have forgotten some.',
    labels: { keyspace: KEYSPACE_NAMES },
    feeds: [
      from('store.quarantined', ({ keyspace, leftMs }, note) => note(leftMs / 1_000, keyspace)),
    ],
  },
  {
    name: 'log_dropped_total',
    type: 'counter',
    labels: {},
    help: 'Events that could not be written to the shared log, and were too many to keep.',
    feeds: [from('log.dropped', ({ count }, note) => note(count))],
  },
  {
    name: 'loop_blocked_seconds_total',
    type: 'counter',
    labels: {},
    help: 'For how long the event loop was blocked, counting what took over a second while leases were held.',
    feeds: [from('loop.delayed', ({ lateMs }, note) => note(lateMs / 1_000))],
  },
  {
    name: 'build_info',
    type: 'gauge',
    labels: { version: null },
    feeds: [],
    help: 'Always 1; the version is in its label.',
  },
];

const REQUESTS = { route: null, method: ['GET', 'HEAD', 'POST', 'DELETE'] };

const SERVER: readonly MetricEntry[] = [
  {
    name: 'http_requests_total',
    type: 'counter',
    isServers: true,
    feeds: [],
    help: 'Requests answered.',
    labels: { ...REQUESTS, status: null },
  },
  {
    name: 'http_request_duration_seconds',
    type: 'histogram',
    isServers: true,
    feeds: [],
    help: 'From the arrival of a request until its answer was known.',
    labels: REQUESTS,
    buckets: LATENCY,
  },
  {
    name: 'sse_clients',
    type: 'gauge',
    isServers: true,
    labels: {},
    feeds: [],
    help: 'Clients that watch events through this instance.',
    ask: (asked, note) => note(asked.watching),
  },
];

export const METRICS: readonly MetricEntry[] = [
  EVENTS,
  ...LEASES,
  ...FLEET,
  ...WORKFLOWS,
  ...SESSIONS,
  ...STORE,
  ...SERVER,
];
