/**
 * The catalogue of metrics: name, meaning, labels with their values, and the events that feed each.
 * `docs/reference/metrics.md` is made of it; `metrics.ts` turns the catalogue into Prometheus
 * metrics.
 *
 * No label holds the id of a target, session, workflow or client: a series lives as long as the
 * process.
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

/** The prefix of every name. */
export const PREFIX = 'holdfast_';

/** Counts, sets or observes a value. Label values are in the order of the entry's `labels`. */
export type Observe = (value: number, ...labels: readonly string[]) => void;

interface EventSource {
  on<N extends EventName>(name: N, listener: Listener<N>): () => void;
}

/** An event that feeds a metric. */
interface Feed {
  readonly event: EventName;
  subscribe(source: EventSource, observe: Observe): () => void;
}

/** Values that are read at each scrape. */
export interface GaugeSource extends Pick<Holdfast, 'census' | 'running'> {
  /** Clients that watch events through its server. */
  readonly watching: number;
}

export interface MetricEntry {
  /** Without the prefix. */
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** Allowed values by label; others become `other`. Null where values are limited elsewhere. */
  readonly labels: { readonly [label: string]: readonly string[] | null };
  readonly feeds: readonly Feed[];
  /** Reads the value at each scrape. */
  readonly read?: (source: GaugeSource, observe: Observe) => void;
  /** Of a histogram, in seconds. */
  readonly buckets?: readonly number[];
  /** The value decreases by one every second, down to 0. */
  readonly countsDown?: true;
  /** Observed values are added to the gauge, which is never below 0. */
  readonly addsUp?: true;
  /** Fed by the server. Absent without one. */
  readonly isServers?: true;
}

/** All values of a union type: the compiler complains here when one is added. */
function all<T extends string>(values: { readonly [V in T]: true }): readonly string[] {
  return Object.keys(values);
}

function from<N extends EventName>(
  event: N,
  read: (facts: Events[N], observe: Observe) => void,
): Feed {
  const subscribe = (source: EventSource, observe: Observe) =>
    source.on(event, (facts) => read(facts, observe));
  return { event, subscribe };
}

const once = <N extends EventName>(event: N, ...labels: readonly string[]): Feed =>
  from(event, (_, observe) => observe(1, ...labels));

const CLASSES = Object.keys(LEASE_CLASSES);
const BUSY = all<BusyReason>({ held: true, quarantine: true, revoked: true, unsettled: true });
const LOSSES = all<LossReason>({
  expired: true,
  taken_over: true,
  revoked: true,
  max_hold: true,
  unsuitable: true,
});
/** `FENCE_STALE` is for results of polls, the others for steps and actions of workflows. */
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
  start: true,
  stop: true,
});
const ENDS = all<Events['pipeline.ended']['how']>({ completed: true, failed: true, stopped: true });

/** From a response out of memory to the longest that a store may take. */
const LATENCY = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** User code, which may be slow. */
const WORK = [...LATENCY, 30, 60, 300];
const WAITS = [0.001, 0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800];
/** Up to a day. */
const RUNS = [1, 5, 15, 60, 300, 900, 3_600, 14_400, 43_200, 86_400];

const EVENTS: MetricEntry = {
  name: 'events_total',
  type: 'counter',
  help: 'Events of this instance, by name.',
  labels: { event: Object.keys(LEVELS) },
  // `lease.extended` is emitted only if it has listeners, so this counts `lease.renewed`.
  feeds: (Object.keys(LEVELS) as EventName[]).map((name) =>
    name === 'lease.extended'
      ? from('lease.renewed', ({ count }, observe) => observe(count, name))
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
    read(source, observe) {
      const census = source.census();
      for (const name of CLASSES) observe(census.get(name)?.held ?? 0, name);
    },
  },
  {
    name: 'lease_deadline_seconds',
    type: 'gauge',
    labels: { class: CLASSES },
    feeds: [],
    help: 'Time until this instance would lose its first lease if no further renewal succeeded.',
    read(source, observe) {
      for (const [name, { remainingMs }] of source.census()) observe(remainingMs / 1_000, name);
    },
  },
  {
    name: 'lease_ttl_seconds',
    type: 'gauge',
    labels: { class: CLASSES },
    feeds: [],
    help: 'The shortest TTL of the leases that this instance holds.',
    read(source, observe) {
      for (const [name, { ttlMs }] of source.census()) observe(ttlMs / 1_000, name);
    },
  },
  {
    name: 'leases_acquired_total',
    type: 'counter',
    labels: { class: CLASSES },
    help: 'Leases that were granted.',
    feeds: [from('lease.acquired', ({ leaseClass }, observe) => observe(1, leaseClass))],
  },
  {
    name: 'lease_wait_duration_seconds',
    type: 'histogram',
    buckets: WAITS,
    help: 'How long callers waited for a lease that they were granted.',
    labels: { class: CLASSES },
    feeds: [
      from('lease.acquired', ({ leaseClass, waitedMs }, observe) =>
        observe(waitedMs / 1_000, leaseClass),
      ),
    ],
  },
  {
    name: 'leases_refused_total',
    type: 'counter',
    help: 'Requests for a lease that were refused, at once or after the wait. Contention is normal.',
    labels: { class: CLASSES, reason: BUSY },
    feeds: [
      from('lease.refused', ({ leaseClass, reason }, observe) => observe(1, leaseClass, reason)),
    ],
  },
  {
    name: 'lease_renew_duration_seconds',
    type: 'histogram',
    buckets: LATENCY,
    help: 'How long a batch of renewals took.',
    labels: { class: CLASSES },
    feeds: [
      from('lease.renewed', ({ leaseClass, tookMs }, observe) =>
        observe(tookMs / 1_000, leaseClass),
      ),
    ],
  },
  {
    name: 'leases_lost_total',
    type: 'counter',
    labels: { class: CLASSES, reason: LOSSES },
    help: 'Leases that ended before their holder released them.',
    feeds: [
      from('lease.lost', ({ leaseClass, reason }, observe) => observe(1, leaseClass, reason)),
    ],
  },
  {
    name: 'handovers_total',
    type: 'counter',
    labels: { class: CLASSES },
    help: 'Leases that this instance handed to a successor.',
    feeds: [from('lease.transferred', ({ leaseClass }, observe) => observe(1, leaseClass))],
  },
];

const FLEET: readonly MetricEntry[] = [
  {
    name: 'fleet_members',
    type: 'gauge',
    labels: {},
    help: 'Instances that share the targets, as seen by this one.',
    feeds: [from('fleet.planned', ({ members }, observe) => observe(members))],
  },
  {
    name: 'fleet_targets',
    type: 'gauge',
    labels: {},
    help: 'Targets that the fleet should poll, as seen by this instance.',
    feeds: [from('fleet.planned', ({ targets }, observe) => observe(targets))],
  },
  {
    name: 'failovers_total',
    type: 'counter',
    labels: {},
    help: 'Targets that this instance took over after the lease of another instance expired.',
    feeds: [
      from('target.taken', ({ how }, observe) => {
        if (how === 'failover') observe(1);
      }),
    ],
  },
  {
    name: 'gap_duration_seconds',
    type: 'histogram',
    buckets: WAITS,
    labels: {},
    help: 'How long a target had no owner after a failure: from the last renewal of its old owner until this instance acquired it.',
    feeds: [
      from('target.taken', ({ how, gapMs }, observe) => {
        if (how === 'failover') observe(gapMs / 1_000);
      }),
    ],
  },
  {
    name: 'handover_duration_seconds',
    type: 'histogram',
    buckets: LATENCY,
    labels: {},
    help: 'From the notice of a handover until this instance acquired the target.',
    feeds: [
      from('target.taken', ({ how, gapMs }, observe) => {
        if (how === 'handover') observe(gapMs / 1_000);
      }),
    ],
  },
  {
    name: 'polls_total',
    type: 'counter',
    labels: { result: ['done', 'failed'] },
    help: 'Polls that ended.',
    feeds: [once('poll.done', 'done'), once('poll.failed', 'failed')],
  },
  {
    name: 'poll_duration_seconds',
    type: 'histogram',
    buckets: WORK,
    help: 'How long polls took.',
    labels: { result: ['done', 'failed'] },
    feeds: [
      from('poll.done', ({ tookMs }, observe) => observe(tookMs / 1_000, 'done')),
      from('poll.failed', ({ tookMs }, observe) => observe(tookMs / 1_000, 'failed')),
    ],
  },
  {
    name: 'run_ends_total',
    type: 'counter',
    labels: { how: ['returned', 'failed', 'stopped'] },
    help: 'Tasks of targets that ended. Those that returned or failed start again.',
    feeds: [
      from('run.exited', ({ why }, observe) => observe(1, why === null ? 'returned' : 'failed')),
      once('run.ended', 'stopped'),
    ],
  },
  {
    name: 'run_stuck_total',
    type: 'counter',
    labels: { how: ['silent', 'unstoppable'] },
    help: 'Tasks of targets that made no progress for stuckAfter, or did not stop when told to.',
    feeds: [once('run.silent', 'silent'), once('run.stuck', 'unstoppable')],
  },
];

const WORKFLOWS: readonly MetricEntry[] = [
  {
    name: 'refusals_total',
    type: 'counter',
    labels: { code: REFUSALS },
    help: 'Steps, actions and results that were refused because of an old lease, epoch or fence. Each is a stale write that fencing stopped.',
    feeds: [
      from('workflow.violation', ({ code }, observe) => observe(1, code)),
      once('result.refused', 'FENCE_STALE'),
    ],
  },
  {
    name: 'actions_emitted_total',
    type: 'counter',
    labels: {},
    help: 'Actions that orchestrators of this instance emitted.',
    feeds: [once('action.emitted')],
  },
  {
    name: 'actions_total',
    type: 'counter',
    help: 'Tries of actions on this instance: done; failed (retried, or final); dead (out of retries); gone (another processor has it).',
    labels: { result: ['done', 'failed', 'dead', 'gone'] },
    feeds: [
      once('action.done', 'done'),
      from('action.failed', ({ isDead }, observe) => observe(1, isDead ? 'dead' : 'failed')),
      once('action.gone', 'gone'),
    ],
  },
  {
    name: 'action_duration_seconds',
    type: 'histogram',
    buckets: WORK,
    labels: {},
    help: 'From the start of an action until its result was stored.',
    feeds: [from('action.done', ({ tookMs }, observe) => observe(tookMs / 1_000))],
  },
];

const SESSIONS: readonly MetricEntry[] = [
  {
    name: 'intents_total',
    type: 'counter',
    help: 'Valid intents, by result.',
    labels: { type: INTENTS, result: ['accepted', 'replayed', 'refused'] },
    feeds: (['accepted', 'replayed', 'refused'] as const).map((result) =>
      from(`intent.${result}`, ({ type }, observe) => observe(1, type, result)),
    ),
  },
  {
    name: 'sessions_running',
    type: 'gauge',
    labels: {},
    feeds: [],
    help: 'Sessions that this instance runs.',
    read: (source, observe) => observe(source.running),
  },
  {
    name: 'session_transitions_total',
    type: 'counter',
    labels: { state: SESSION_STATES },
    help: 'State changes of sessions that this instance made, by new state.',
    feeds: [from('session.advanced', ({ state }, observe) => observe(1, state))],
  },
  {
    name: 'sessions_ended_total',
    type: 'counter',
    labels: { reason: REASONS },
    help: 'Sessions that this instance ended, by reason.',
    feeds: [
      from('session.advanced', ({ state, reason }, observe) => {
        if (state === 'ENDED' && reason !== null) observe(1, reason);
      }),
    ],
  },
  {
    name: 'sessions_recovered_total',
    type: 'counter',
    labels: {},
    help: 'Sessions that this instance’s worker took over from another worker.',
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
    feeds: [from('pipeline.ended', ({ how, tookMs }, observe) => observe(tookMs / 1_000, how))],
  },
];

const STORE: readonly MetricEntry[] = [
  {
    name: 'stalled',
    type: 'gauge',
    labels: { part: ['fleet', 'worker', 'processor'] },
    addsUp: true,
    help: 'Parts of this instance that cannot reach the store; 0 is healthy.',
    feeds: (['fleet', 'worker', 'processor'] as const).flatMap((part) => [
      from(`${part}.stalled`, (_, observe) => observe(1, part)),
      from(`${part}.resumed`, (_, observe) => observe(-1, part)),
    ]),
  },
  {
    name: 'store_disconnections_total',
    type: 'counter',
    labels: {},
    help: 'Connections to the store that were closed after a failure.',
    feeds: [once('store.disconnected')],
  },
  {
    name: 'store_forgot_total',
    type: 'counter',
    labels: {},
    help: 'How often the store may have lost leases that it had granted.',
    feeds: [once('store.forgot')],
  },
  {
    name: 'store_quarantine_seconds',
    type: 'gauge',
    countsDown: true,
    help: 'Time left in quarantine, in which the store grants no new leases because it may have lost some.',
    labels: { keyspace: KEYSPACE_NAMES },
    feeds: [
      from('store.quarantined', ({ keyspace, leftMs }, observe) =>
        observe(leftMs / 1_000, keyspace),
      ),
    ],
  },
  {
    name: 'log_dropped_total',
    type: 'counter',
    labels: {},
    help: 'Events that could not be written to the shared log, and exceeded the buffer.',
    feeds: [from('log.dropped', ({ count }, observe) => observe(count))],
  },
  {
    name: 'loop_blocked_seconds_total',
    type: 'counter',
    labels: {},
    help: 'How long the event loop was blocked, in blocks of over a second while leases were held.',
    feeds: [from('loop.delayed', ({ lateMs }, observe) => observe(lateMs / 1_000))],
  },
  {
    name: 'build_info',
    type: 'gauge',
    labels: { version: null },
    feeds: [],
    help: 'Always 1; the version is in its label.',
  },
];

const REQUESTS = { route: null, method: ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'] };

const SERVER: readonly MetricEntry[] = [
  {
    name: 'http_requests_total',
    type: 'counter',
    isServers: true,
    feeds: [],
    help: 'HTTP requests.',
    labels: { ...REQUESTS, status: null },
  },
  {
    name: 'http_request_duration_seconds',
    type: 'histogram',
    isServers: true,
    feeds: [],
    help: 'From the arrival of a request until its response was known.',
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
    read: (source, observe) => observe(source.watching),
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
