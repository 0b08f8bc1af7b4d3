/**
 * What those see who operate a fleet: people at the page, in a terminal, and programs of their own. As in `messages.ts`, the server's schemas
 * say the same.
 */
import type { ApiEvent } from './messages.ts';

/** Who asks, and whom. */
export interface About {
  /** What the token may do. */
  readonly scope: 'v3:read' | 'v3:write' | 'v3:admin';
  /** Names the token in logs and in what is written down of actions. */
  readonly tokenId: string;
  readonly tenant: string | null;
  /** The instance that answers. */
  readonly instance: string;
  readonly version: string;
  /** The store, without secrets. */
  readonly store: string;
  /** Milliseconds since 1970, by the clock of the instance. */
  readonly now: number;
  /** Present where instances can be killed and frozen for show. */
  readonly stage?: true | undefined;
}

/** How an instance is doing, as it says itself with its heartbeat. Absent: it does not say. */
export interface Vitals {
  /** How long a lease of a target lasts without a renewal, and how often it is renewed. */
  readonly ttlMs: number;
  readonly renewEveryMs: number;
  /** How long its renewals took, over the last few minutes; null while there were none. */
  readonly renewP50Ms: number | null;
  readonly renewP99Ms: number | null;
  /** By how much its event loop was late at most, over the last minute. */
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
  /** When its heartbeat runs out, and how long a heartbeat lasts; so how old it is. */
  readonly expiresInMs: number;
  readonly beatTtlMs: number | null;
  readonly version: string | null;
  /** Milliseconds since 1970; null where its id does not say. */
  readonly startedAt: number | null;
  readonly vitals: Vitals | null;
}

/**
 * Why a target is where it is. `kept`: all is well. `moving`: it changes hands. `late`: its owner lives, but has not renewed it when it
 * should have. `expiring`: its owner shows no sign of life. `foreign`: an instance of another make has it. `free`: nobody has it yet.
 * `unplaced`: nobody may. `quarantine`, `revoked`, `garbage`, `unsettled`: nobody can, for a while. `paused`: nobody should.
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

/** One thing that is polled. */
export interface ApiTarget {
  readonly id: string;
  /** Who owns it according to the store; null for nobody. */
  readonly owner: string | null;
  /** Who should own it. */
  readonly planned: string | null;
  /** Whom it likes best of those who take part. */
  readonly preferred: string | null;
  /** Whom an operator has moved it to, for good; null: it is placed by the plan alone. */
  readonly pinned: string | null;
  readonly reason: TargetReason;
  /** Of the lease; null: there is none, or it never ends. */
  readonly expiresInMs: number | null;
}

/** `GET /api/v3/fleet`, and the first thing that `GET /api/v3/fleet/live` says. */
export interface FleetPicture {
  /** Milliseconds since 1970: when the store was looked at. */
  readonly at: number;
  /** How long the store took to answer, lately. */
  readonly roundTripMs: number;
  readonly members: readonly ApiMember[];
  /** In order of id. */
  readonly targets: readonly ApiTarget[];
}

/** What `GET /api/v3/fleet/live` says from then on, at least every two seconds, also if nothing has changed. */
export interface FleetChange {
  readonly at: number;
  readonly roundTripMs: number;
  /** Absent: as they were, but for the time that has gone by. */
  readonly members?: readonly ApiMember[] | undefined;
  /** Those that are new or otherwise than they were. In small fleets also those that were only renewed. */
  readonly targets?: readonly ApiTarget[] | undefined;
  readonly removed?: readonly string[] | undefined;
}

/** A target goes over the wire as a row; owners are told by their place in `names`, -1 for null. Half of a fleet would be names otherwise. */
export type TargetRow = readonly [
  id: string,
  owner: number,
  planned: number,
  preferred: number,
  pinned: number,
  reason: TargetReason,
  expiresInMs: number | null,
];

/** One poll, as the record of a target's last results has it. */
export interface PollSample {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly tookMs: number;
  readonly ok: boolean;
}

/** `GET /api/v3/targets/{id}` */
export interface TargetDetail extends ApiTarget {
  /** The reason in words. */
  readonly why: string;
  readonly url: string | null;
  readonly everyMs: number | null;
  /** "0": it was never held. */
  readonly fence: string;
  readonly lastResult: {
    readonly at: number;
    readonly by: string;
    readonly ok: boolean;
    readonly tookMs: number;
    readonly error?: string | undefined;
    readonly value?: unknown;
  } | null;
  /** The last polls of its present owner, the oldest first. */
  readonly recent: readonly PollSample[];
}

/** `POST /api/v3/targets/{id}/transfer`: what was ordered. The holder carries it out; the target shows when it has. */
export interface TransferOrder {
  readonly target: string;
  readonly from: string | null;
  readonly to: string;
}

/** `GET /api/v3/history`: what has happened, the latest first. */
export interface HistoryPage {
  readonly events: readonly ApiEvent[];
  /** Where to go on, further into the past. Absent: there is nothing more. A page may be short, or empty, and yet not the last. */
  readonly before?: string | undefined;
}

export interface ApiWorkflow {
  readonly id: string;
  readonly state: unknown;
  readonly epoch: number;
  readonly leaseId: string | null;
  readonly isHeld: boolean;
  readonly expiresInMs: number | null;
  /** Actions whose results are not in. */
  readonly unresolved: number;
}

export interface WorkflowsPage {
  readonly workflows: readonly ApiWorkflow[];
  readonly cursor?: string | undefined;
}

/** One thing that happened to a workflow. */
export interface WorkflowStep {
  readonly position: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly epoch: number;
  readonly leaseId: string | null;
  readonly kind: string;
  /** Whatever else there is to say of it. */
  readonly facts: Readonly<Record<string, unknown>>;
}

/** `GET /api/v3/workflows/{id}` */
export interface WorkflowDetail extends ApiWorkflow {
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
    /** What it is about: `persistence`, `clock`, `renewals`, `event loop` … */
    readonly subject: string;
    readonly fact: string;
    readonly advice?: string | undefined;
  }[];
  /** Of this instance to the store. */
  readonly roundTrip: {
    readonly reads: number;
    readonly p50Ms: number;
    readonly p99Ms: number;
  } | null;
  /** How far the store's clock is from this instance's, and how exactly that is known; null where they are the same. */
  readonly clock: { readonly offsetMs: number; readonly uncertaintyMs: number } | null;
  /** Per member: what is left of the TTL where a renewal takes as long as the slowest of a hundred do. */
  readonly members: readonly {
    readonly id: string;
    readonly marginMs: number | null;
    readonly renewP99Ms: number | null;
    readonly ttlMs: number | null;
    readonly loopDelayMs: number | null;
  }[];
}

/** `GET /api/v3/stage`: instances that are there to be killed. */
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
  /** How many at most, 1 to 1,000; default 200. */
  readonly limit?: number | undefined;
  readonly event?: string | readonly string[] | undefined;
  readonly session?: string | undefined;
  readonly target?: string | undefined;
  readonly member?: string | undefined;
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
  /** The fence of the lease that is meant, as you have seen it: a later holder is left alone. */
  readonly fence?: string;
}

export interface LeaseRevocation {
  /** False: the lease that was meant is over. `holder` is then who has the key now, null: nobody. */
  readonly revoked: boolean;
  readonly holder?: string | null | undefined;
  readonly fence?: string | undefined;
  readonly mayActForMs?: number | undefined;
}

export interface NewPollSession {
  readonly url: string;
  readonly id?: string | undefined;
  readonly every?: number | string | undefined;
}
