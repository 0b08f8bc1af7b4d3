/** Requests and responses of the operators' part of the API. See `messages.ts`. */
import type { ApiEvent, Target } from './messages.ts';

/** The token and the server. */
export interface About {
  /** What the token may do. */
  readonly scope: 'v3:read' | 'v3:write' | 'v3:admin';
  /** The name of the token in logs and in the audit log. */
  readonly tokenId: string;
  readonly tenant: string | null;
  /** The instance that answers. */
  readonly instance: string;
  readonly version: string;
  /** The store, without credentials. */
  readonly store: string;
  /** Milliseconds since 1970, by the instance's clock. */
  readonly now: number;
  /** Present in the demo, where instances can be killed and frozen. */
  readonly stage?: true | undefined;
}

/** The health of an instance, as its heartbeat reports it. */
export interface Vitals {
  /** The TTL of a target's lease, and how often it is renewed. */
  readonly ttlMs: number;
  readonly renewEveryMs: number;
  /** How long its renewals took in the last few minutes; null if there were none. */
  readonly renewP50Ms: number | null;
  readonly renewP99Ms: number | null;
  /** The longest delay of its event loop in the last minute. */
  readonly loopDelayMs: number;
}

export interface ApiMember {
  readonly id: string;
  readonly name: string;
  readonly weight: number;
  readonly isDraining: boolean;
  readonly isForeign: boolean;
  readonly owned: number;
  readonly quota: number;
  /** When its heartbeat expires, and how long a heartbeat lasts. */
  readonly expiresInMs: number;
  readonly beatTtlMs: number | null;
  readonly version: string | null;
  /** Milliseconds since 1970; null if its id does not say. */
  readonly startedAt: number | null;
  readonly vitals: Vitals | null;
}

/**
 * Why a target is where it is. `kept`: it is where it should be. `moving`: it changes its owner.
 * `late`: its owner is alive, but has missed a renewal. `expiring`: its owner sends no heartbeat.
 * `foreign`: a non-Holdfast instance owns it. `free`: it has no owner yet. `unplaced`: no instance
 * may own it. `quarantine`, `revoked`, `garbage`, `unsettled`: no instance can own it for a while.
 * `paused`: it is not polled.
 */
export type TargetReason =
  | 'kept'
  | 'moving'
  | 'late'
  | 'expiring'
  | 'foreign'
  | 'free'
  | 'unplaced'
  | 'quarantine'
  | 'revoked'
  | 'garbage'
  | 'unsettled'
  | 'paused';

/** A target and its owner. */
export interface ApiTarget {
  readonly id: string;
  /** Its owner according to the store; null for none. */
  readonly owner: string | null;
  /** The instance that should own it. */
  readonly planned: string | null;
  /** The instance that hashing prefers. */
  readonly preferred: string | null;
  /** The instance that an operator moved it to; null: the plan places it. */
  readonly pinned: string | null;
  readonly reason: TargetReason;
  /** Of its lease; null: it has none, or it never expires. */
  readonly expiresInMs: number | null;
}

/** `GET /api/v3/fleet`, and the first event of `GET /api/v3/fleet/live`. */
export interface FleetPicture {
  /** Milliseconds since 1970: when the store was read. */
  readonly at: number;
  /** The recent round trip to the store. */
  readonly roundTripMs: number;
  readonly members: readonly ApiMember[];
  /** In order of id. */
  readonly targets: readonly ApiTarget[];
}

/** The further events of `GET /api/v3/fleet/live`, at least every two seconds. */
export interface FleetChange {
  readonly at: number;
  readonly roundTripMs: number;
  /** Absent: unchanged, apart from the time that has passed. */
  readonly members?: readonly ApiMember[] | undefined;
  /** New and changed targets. In small fleets also targets that were only renewed. */
  readonly targets?: readonly ApiTarget[] | undefined;
  readonly removed?: readonly string[] | undefined;
}

/** A target as a row. Owners are indexes in `names`, -1 for null: names would be half the bytes. */
export type TargetRow = readonly [
  id: string,
  owner: number,
  planned: number,
  preferred: number,
  pinned: number,
  reason: TargetReason,
  expiresInMs: number | null,
];

/** One poll. */
export interface PollSample {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly tookMs: number;
  readonly ok: boolean;
}

/** `GET /api/v3/targets/{id}` */
export interface TargetDetail extends ApiTarget {
  /** The reason as a sentence. */
  readonly why: string;
  readonly isPaused: boolean;
  readonly url: string | null;
  readonly everyMs: number | null;
  readonly timeoutMs: number | null;
  /** The name of its command. */
  readonly command: string | null;
  /** "0": never held. */
  readonly fence: string;
  readonly lastResult: {
    readonly at: number;
    readonly by: string;
    readonly ok: boolean;
    readonly tookMs: number;
    readonly error?: string | undefined;
    readonly value?: unknown;
    /** How its task is doing; absent for a target that is polled. */
    readonly state?: 'running' | 'waiting' | 'silent' | 'stuck' | undefined;
    /** Failed polls, or ends of its task, in a row. */
    readonly failures?: number | undefined;
    /** When it is polled or started again after a failure, in milliseconds since 1970. */
    readonly nextAt?: number | undefined;
  } | null;
  /** The last polls of its present owner, the oldest first. */
  readonly recent: readonly PollSample[];
}

/** `POST /api/v3/targets/{id}/transfer`: the order. The target shows when it is done. */
export interface TransferOrder {
  readonly target: string;
  readonly from: string | null;
  readonly to: string;
}

/** `GET /api/v3/history`: past events, the latest first. */
export interface HistoryPage {
  readonly events: readonly ApiEvent[];
  /** Continues on the next page; absent on the last. Other pages may be short or empty. */
  readonly before?: string | undefined;
}

/**
 * What a workflow's function does. `running`: an instance runs it, or is about to. `suspended`: it
 * sleeps, or waits for a signal. `retrying`: it failed, and is tried again.
 */
export type RunPhase = 'running' | 'suspended' | 'retrying' | 'done' | 'failed';

/** The function of a workflow, and what it does now. */
export interface ApiRun {
  readonly function: string;
  readonly phase: RunPhase;
  /** How many tries in a row have failed. */
  readonly tries: number;
  /** Until it is due; null: no time is set. */
  readonly dueInMs: number | null;
  /** What a suspended run waits for, at most ten. */
  readonly waits: readonly {
    readonly kind: 'sleep' | 'signal';
    readonly name: string;
    /** Milliseconds since 1970; null: without a limit. */
    readonly until: number | null;
  }[];
  /** Of the last failed try, if it is retrying or has failed. */
  readonly error: string | null;
}

/** A value as JSON, cut off if it is long. */
export interface Excerpt {
  /** Of the whole value. */
  readonly bytes: number;
  readonly text: string;
  readonly isCut: boolean;
}

/** A named step of a workflow's function. */
export interface ApiRunStep {
  readonly name: string;
  readonly kind: 'step' | 'call' | 'sleep' | 'signal';
  /** `dead`: its action is a dead letter. `timeout`: no signal came in time. */
  readonly state: 'done' | 'failed' | 'dead' | 'running' | 'sleeping' | 'waiting' | 'timeout';
  /** When it began, in milliseconds since 1970; null if the store does not know. */
  readonly at: number | null;
  readonly tookMs: number | null;
  /** When a sleep or a wait ends at the latest. */
  readonly until: number | null;
  readonly tries: number;
  /** Tries that failed, and that another followed. */
  readonly failed: readonly {
    readonly tries: number;
    readonly at: number;
    readonly error: string;
  }[];
  readonly error: string | null;
  /** A result, the payload of a call, or the value of a signal. */
  readonly value: Excerpt | null;
  /** Of a call: its type, its processor, and the size of its payload. */
  readonly action: {
    readonly type: string;
    readonly target: string;
    readonly bytes: number;
  } | null;
  /** What the processor of a call returned; null while there is none, or none kept. */
  readonly result: Excerpt | null;
  readonly signal: string | null;
}

/** The function of one workflow, with everything that is kept of it. */
export interface RunDetail extends ApiRun {
  readonly input: Excerpt;
  /** Null until it is done. */
  readonly result: Excerpt | null;
  /** In the order in which they were kept. */
  readonly steps: readonly ApiRunStep[];
  /** Signals that no line of the function has received. */
  readonly signals: readonly {
    readonly name: string;
    readonly at: number;
    readonly value: Excerpt;
  }[];
}

export interface ApiWorkflow {
  readonly id: string;
  readonly state: unknown;
  readonly epoch: number;
  readonly leaseId: string | null;
  readonly isHeld: boolean;
  readonly expiresInMs: number | null;
  /** The instance of its orchestrator: who holds it, or held it last. */
  readonly instance: string | null;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly changedAt: number;
  /** Actions without a result yet. */
  readonly unresolved: number;
  /** Null for a workflow that no function runs. */
  readonly run: ApiRun | null;
}

/** `GET /api/v3/workflows` */
export interface WorkflowsQuery {
  readonly function?: string | undefined;
  readonly phase?: RunPhase | readonly RunPhase[] | undefined;
  readonly cursor?: string | undefined;
  /** From 1 to 1,000; default 100. */
  readonly limit?: number | string | undefined;
}

export interface WorkflowsPage {
  readonly workflows: readonly ApiWorkflow[];
  /** Absent on the last page. Other pages may be short or empty. */
  readonly cursor?: string | undefined;
}

/** One step in the history of a workflow. */
export interface WorkflowStep {
  readonly position: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly epoch: number;
  readonly leaseId: string | null;
  readonly kind: string;
  /** Further facts of the step. */
  readonly facts: Readonly<Record<string, unknown>>;
}

/** `GET /api/v3/workflows/{id}` */
export interface WorkflowDetail extends ApiWorkflow {
  readonly run: RunDetail | null;
  /** The latest first, at most a thousand. */
  readonly steps: readonly WorkflowStep[];
}

export interface ApiDeadLetter {
  readonly id: string;
  readonly workflow: string;
  readonly type: string | null;
  readonly tries: number;
  readonly reason: string;
  readonly diedAt: string;
}

/** `GET /api/v3/slots` */
export interface ApiSlot {
  readonly pool: string;
  readonly slot: string;
  readonly state: 'held' | 'revoked' | 'free';
  readonly worker: string | null;
  readonly session: string | null;
  readonly fence: string;
  readonly expiresInMs: number | null;
}

/** `GET /api/v3/doctor` */
export interface Diagnosis {
  readonly store: string;
  readonly at: number;
  readonly findings: readonly {
    readonly level: 'ok' | 'warn' | 'refuse';
    /** `persistence`, `clock`, `renewals`, `event loop` … */
    readonly subject: string;
    readonly fact: string;
    readonly advice?: string | undefined;
  }[];
  /** From this instance to the store. */
  readonly roundTrip: {
    readonly reads: number;
    readonly p50Ms: number;
    readonly p99Ms: number;
  } | null;
  /** Offset of the store's clock from this instance's; null where they are the same. */
  readonly clock: { readonly offsetMs: number; readonly uncertaintyMs: number } | null;
  /** Per instance: what a slow renewal (p99) leaves of the TTL. */
  readonly members: readonly {
    readonly id: string;
    readonly marginMs: number | null;
    readonly renewP99Ms: number | null;
    readonly ttlMs: number | null;
    readonly loopDelayMs: number | null;
  }[];
}

/** `GET /api/v3/stage`: the instances of the demo. */
export interface StagePicture {
  readonly actors: readonly {
    readonly name: string;
    /** Null while it does not run. */
    readonly instance: string | null;
    readonly pid: number | null;
    readonly state: 'running' | 'frozen' | 'dead' | 'starting';
  }[];
}

export type StageAction = 'kill' | 'freeze' | 'thaw' | 'start';

export interface HistoryQuery {
  readonly before?: string | undefined;
  /** The maximum number of events, 1 to 1,000; default 200. */
  readonly limit?: number | undefined;
  readonly event?: string | readonly string[] | undefined;
  readonly session?: string | undefined;
  readonly target?: string | undefined;
  readonly workflow?: string | undefined;
  readonly member?: string | undefined;
}

/** Times with their date and zone: `2026-01-31T03:10:00Z`. */
export interface ReportQuery {
  /** Default: one hour before the end. */
  readonly from?: string | undefined;
  /** Default: now. */
  readonly to?: string | undefined;
  /** Only this key, or this target. */
  readonly key?: string | undefined;
  /** The time zone of the page, such as `Europe/Berlin`; default that of the server. */
  readonly zone?: string | undefined;
}

/** A lease that is held. */
export interface ApiLease {
  readonly key: string;
  readonly holder: string;
  readonly fence: string;
  readonly expiresInMs: number | null;
}

export interface LeasesPage {
  readonly leases: readonly ApiLease[];
  readonly cursor?: string | undefined;
}

export interface LeaseState {
  readonly key: string;
  readonly state: 'held' | 'revoked' | 'free';
  readonly holder?: string | undefined;
  readonly fence: string;
  readonly expiresInMs?: number | null | undefined;
}

export interface RevokeRequest {
  readonly reason: string;
  readonly force?: boolean;
  /** The fence of the lease to revoke: a later holder keeps its lease. */
  readonly fence?: string;
}

export interface LeaseRevocation {
  /** False: the lease had ended already. `holder` is then the present holder, null for none. */
  readonly revoked: boolean;
  readonly holder?: string | null | undefined;
  readonly fence?: string | undefined;
  readonly mayActForMs?: number | undefined;
}

/** `GET /api/v3/targets` */
export interface TargetsPage {
  readonly targets: readonly Target[];
  /** Records of other programs that are not valid targets; on the first page. */
  readonly unreadable?: readonly { readonly id: string; readonly why: string }[] | undefined;
  /** Absent on the last page. */
  readonly cursor?: string | undefined;
}

/** `POST /api/v3/targets`: with `url`, `command` or both. */
export interface NewTarget {
  /** Default: a random one. */
  readonly id?: string | undefined;
  readonly url?: string | undefined;
  /** The polling interval: milliseconds, or text such as `30s`; default the poller's. */
  readonly every?: number | string | undefined;
  /** How long one poll may take: milliseconds, or text such as `5s`; default the poller's. */
  readonly timeout?: number | string | undefined;
  /** The name of a command that instances declare under `runner.commands`. */
  readonly command?: string | undefined;
  /** For the command or the handler, as the field `data` of the target. */
  readonly data?: Readonly<Record<string, unknown>> | undefined;
  readonly isPaused?: boolean | undefined;
}

/** `PATCH /api/v3/targets/{id}`. Fields that are absent stay as they are; `null` removes one. */
export type TargetChange = {
  readonly [Field in 'url' | 'every' | 'timeout' | 'command' | 'data']?: NewTarget[Field] | null;
} & Pick<NewTarget, 'isPaused'>;

/** @deprecated Use `NewTarget`. */
export interface NewPollSession {
  readonly url: string;
  readonly id?: string | undefined;
  readonly every?: number | string | undefined;
}
