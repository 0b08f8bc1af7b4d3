/**
 * What the store must know of one session that an intent has started, told from the commands that
 * it has carried out.
 */
import {
  type Start,
  type StreamStart,
  type VodStart,
  type Wanted,
  wantedBy,
} from '../../src/intents/intent.ts';
import type { SessionBody } from '../../src/intents/intent-session.ts';
import type { SessionState } from '../../src/store/port/intent-store.ts';

/** What a session can be compared by, as the store shows it. */
export interface SessionFacts {
  readonly state: SessionState;
  readonly revision: number;
  /** How many. */
  readonly clients: number;
  /** As JSON. */
  readonly status: string;
}

export class IntentRecord {
  readonly id: string;
  readonly tenant: string;
  /**
   * What was asked for, and by which tenant: of the same there is one session that has not ended.
   */
  readonly wanted: string;
  readonly createdMs: number;
  /** Those that it was made with. */
  readonly keys: readonly string[];
  state: SessionState = 'NEW';
  revision = 1;
  readonly clients = new Set<string>();
  endedMs: number | null = null;
  /** Since when the store does not know it any more: it was lost, or forgotten as it should be. */
  goneMs: number | null = null;
  /** Some of what the store knew of it was deleted by hand: what is left need not fit together. */
  isDamaged = false;
  /** The index of open sessions was deleted: no worker finds it until a client asks again. */
  isUnlisted = false;
  /** The store has lost what it knew of it last. */
  isSetBack = false;
  /** Since when a client wants it to stop. */
  stoppingMs: number | null = null;
  /** Who has it, as its status says. */
  worker: string | null = null;
  /** The last pipeline that was begun for it does not stop as fast as it should. */
  isDeaf = false;
  /** How often a pipeline of it has failed by itself. */
  failed = 0;
  /** How often a pipeline was begun for it. */
  runs = 0;

  constructor(facts: Pick<IntentRecord, 'id' | 'tenant' | 'wanted' | 'createdMs' | 'keys'>) {
    this.id = facts.id;
    this.tenant = facts.tenant;
    this.wanted = facts.wanted;
    this.createdMs = facts.createdMs;
    this.keys = facts.keys;
  }

  get isOpen(): boolean {
    return this.endedMs === null && this.goneMs === null;
  }

  /** It is in another state from now on, or says something else of itself. */
  change(state: SessionState, nowMs: number): void {
    this.state = state;
    this.revision++;
    this.stoppingMs = state === 'STOPPING' ? (this.stoppingMs ?? nowMs) : null;
    this.endedMs = state === 'ENDED' ? nowMs : null;
  }
}

export function wantedIn(tenant: string, body: string): string {
  return wantedText(tenant, JSON.parse(body) as SessionBody);
}

/** The same, of what was asked for. */
export function wantedOf(tenant: string, intent: StreamStart | VodStart | Start): string {
  if (intent.type !== 'start') return wantedText(tenant, wantedBy(intent));
  const { type, kind, key: target = '', params = {} } = intent;
  return wantedText(tenant, { kind, type, target, profile: '', bucket: '', params });
}

function wantedText(tenant: string, wanted: Wanted): string {
  const { type, kind, target, profile, bucket, params } = wanted;
  const facts = type === 'start' ? [kind, target, params] : [target, profile, bucket];
  return JSON.stringify([tenant, type, ...facts]);
}

/** As scripts give them: tenant, state, revision, body, status, clients … */
export function factsIn(facts: readonly unknown[]): SessionFacts {
  const [, state, revision, , status, clients] = facts;
  return {
    status: String(status),
    state: state as SessionState,
    revision: Number(revision),
    clients: Number(clients),
  };
}
