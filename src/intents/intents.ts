/**
 * Accepts what clients want to have started and stopped, and never holds what a worker should hold.
 *
 * A start is one step of the store: it finds the session that the same request has started before, or makes it and puts it into the
 * stream that workers take from. So who was told that it is accepted can rely on it, and who was not may ask again: it will not be
 * started twice. What is needed is decided by workers; here nobody is turned away for being second.
 */
import type { Clock } from '../core/clock.ts';
import { LeaseHeldError, OutcomeUnknownError, StoreQuarantinedError } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { isTargetId, randomUuid } from '../core/ids.ts';
import { checkKnown, checkSwitch } from '../core/options.ts';
import type { Random } from '../core/random.ts';
import { SessionNotFoundError } from '../fleet/targets/errors.ts';
import { SESSIONS_PAGE, type SessionState } from '../store/port/intent-store.ts';
import type { Store } from '../store/port/store.ts';
import { ApiLease } from './api-lease.ts';
import { SecretMissingError, SessionCrowdedError } from './errors.ts';
import { idempotencyKey } from './idempotency.ts';
import {
  checkIntent,
  checkRequester,
  DEFAULT_TENANT,
  type Intent,
  type Requester,
  type StreamStop,
  type Wanted,
  wantedBy,
} from './intent.ts';
import {
  type IntentSession,
  NO_STATUS,
  type SessionBody,
  type SessionStatus,
  sessionOf,
} from './intent-session.ts';
import { StartRecovery } from './recovery.ts';
import { type SecretOptions, Secrets } from './secrets.ts';
import { readable, readSessions, tellForeign } from './session-reading.ts';

export interface IntentOptions extends SecretOptions {
  /**
   * `on`: a start takes the lease of its channel first, before it looks whether the same was started already, and throws `LEASE_HELD` if
   * another has it. For those who move from an interface that did so; default `off`: only workers take leases.
   */
  apiLeases?: 'on' | 'off';
}

export interface Accepted {
  readonly session: IntentSession;
  /** A start that found the session there already; a stop after which it is in the state it was in. */
  readonly isReplay: boolean;
}

export interface SubmitOptions {
  /**
   * Fires when the client has gone. It may have been served by another instance since: an intent that has not been sent to the store by
   * then is dropped, and `submit` rejects with the signal's reason.
   */
  readonly signal?: AbortSignal;
}

export interface SessionQuery {
  /** Null: of all tenants. */
  readonly tenant: string | null;
  readonly kind?: 'live' | 'vod' | undefined;
  readonly states?: readonly SessionState[] | undefined;
  readonly cursor?: string | undefined;
  /** Default 100, at most 1,000. */
  readonly most?: number | undefined;
}

export interface SessionPage {
  /** The latest made first. */
  readonly sessions: readonly IntentSession[];
  /** Absent on the last page. A page may be short, or empty, and yet not the last. */
  readonly cursor?: string;
}

export interface IntentParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  readonly instanceId: string;
}

/** Throws if the client has gone. */
type CheckThere = () => Promise<void>;

const KNOWN = new Set(['secret', 'previousSecret', 'apiLeases']);
/** A client waits for it; and whoever gets no answer may ask again. */
const CALL = { timeoutMs: 2_000 };
const PRIORITY = 5;
const DEFAULT_PAGE = 100;
/** What is looked through for one page at most, where most of it is not what was asked for. */
const MOST_REQUESTS = 10;
/**
 * A process that was frozen reads a request before it reads that the client has hung up. Node takes three turns of its event loop for that:
 * the request, the end of the connection, its close.
 */
const READ_TURNS = 4;
const CLIENT_GONE = 'its client has gone';
const STOPPED: SessionStatus = { ...NO_STATUS, reason: 'R_STOPPED', outcome: 'STOPPED' };
const CHANNEL_TAKEN = 'another session has the channel, or has just had it';
const QUARANTINED = 'the store is in quarantine, and grants no leases yet';
const NEW_STATUS = JSON.stringify(NO_STATUS);
const STOPPED_STATUS = JSON.stringify(STOPPED);

export class Intents {
  readonly #parts: IntentParts;
  readonly #secrets: Secrets;
  readonly #apiLease: ApiLease | null;
  readonly #sweep: StartRecovery;

  constructor(parts: IntentParts, options: IntentOptions = {}) {
    checkKnown(options, KNOWN);
    const { apiLeases = 'off', ...secrets } = options;
    checkSwitch(apiLeases, 'apiLeases');
    this.#parts = parts;
    this.#secrets = new Secrets(parts, secrets);
    this.#apiLease = apiLeases === 'on' ? new ApiLease(parts) : null;
    this.#sweep = new StartRecovery({ ...parts, secrets: this.#secrets });
  }

  /**
   * Accepts an intent. Throws `CONFIG_INVALID` where it makes no sense, `SESSION_NOT_FOUND` for a stop of what there is not,
   * `SESSION_CROWDED` where too many share it, `SECRET_MISSING` where others have a secret and this instance has none,
   * `LEASE_HELD` with `apiLeases` where another has it, and what the store throws: after `OUTCOME_UNKNOWN` it may have been
   * accepted, and asking again is safe.
   */
  async submit(intent: Intent, by: Requester, { signal }: SubmitOptions = {}): Promise<Accepted> {
    checkIntent(intent);
    checkRequester(by);
    const checkThere = () => this.#checkThere(intent.type, by, signal);
    return intent.type === 'stream.stop'
      ? this.#stop(intent, by, checkThere)
      : this.#start(wantedBy(intent), by, checkThere);
  }

  /** Null where there is none for this tenant; a tenant of null sees all. Throws `SESSION_UNREADABLE` where it makes no sense. */
  async session(id: string, tenant: string | null): Promise<IntentSession | null> {
    if (!isTargetId(id)) return null;
    const [found = null] = await this.#parts.store.intents.read([id], CALL);
    if (found === null || (tenant !== null && found.tenant !== tenant)) return null;
    return sessionOf(found);
  }

  /** Which of these sessions belong to another tenant. */
  async ofOthers(ids: readonly string[], tenant: string): Promise<ReadonlySet<string>> {
    const found = await readSessions(this.#parts, ids, CALL);
    return new Set(found.flatMap((one) => (one === null || one.tenant === tenant ? [] : [one.id])));
  }

  /** What cannot be read is left out, and told of by `session.unreadable`. */
  async sessions(query: SessionQuery): Promise<SessionPage> {
    const { tenant, kind, states, most = DEFAULT_PAGE } = query;
    const { store, events } = this.#parts;
    const wanted = Math.min(Math.max(1, Math.floor(most)), SESSIONS_PAGE);
    const isOpen = states !== undefined && !states.includes('ENDED');
    const sessions: IntentSession[] = [];
    let { cursor } = query;
    for (let requests = 0; requests < MOST_REQUESTS; requests++) {
      const page = await store.intents.list({
        ...{ ...CALL, isOpen, most: wanted - sessions.length },
        ...(tenant !== null && { tenant }),
        ...(cursor !== undefined && { cursor }),
      });
      tellForeign(events, page.foreign);
      for (const stored of page.sessions) {
        const session = readable(events, stored);
        const isWanted = session !== null && (kind === undefined || session.kind === kind);
        if (isWanted && (states?.includes(session.state) ?? true)) sessions.push(session);
      }
      cursor = page.cursor;
      if (cursor === undefined || sessions.length >= wanted) break;
    }
    return { sessions, ...(cursor !== undefined && { cursor }) };
  }

  /** Why nothing can be accepted here, as far as is known; null where it can. */
  get trouble(): string | null {
    return this.#secrets.isMissing ? new SecretMissingError({}).message : null;
  }

  /** Looks from now on, from time to time, for what the stream of starts has lost. */
  start(): void {
    // So that it is known before the first client asks. What fails now is asked again then.
    this.#secrets.all().catch(() => {});
    this.#sweep.start();
  }

  stop(): Promise<void> {
    return this.#sweep.stop();
  }

  async #start(wanted: Wanted, by: Requester, checkThere: CheckThere): Promise<Accepted> {
    const id = randomUuid(this.#parts.random);
    if (this.#apiLease === null) return this.#accept({ id, body: wanted }, by, checkThere);
    await checkThere();
    const tenure = await this.#apiLease.take(wanted, id).catch((error: unknown) => {
      // Who has it may be of another tenant, and these events are shown to this one.
      if (error instanceof LeaseHeldError) this.#tellRefused(wanted, by, CHANNEL_TAKEN);
      if (error instanceof StoreQuarantinedError) this.#tellRefused(wanted, by, QUARANTINED);
      throw error;
    });
    let isKept = false;
    try {
      const accepted = await this.#accept({ id, body: { ...wanted, tenure } }, by, checkThere);
      isKept = !accepted.isReplay;
      return accepted;
    } catch (error) {
      // It may be the worker's by now; if nobody's, it runs out.
      isKept = error instanceof OutcomeUnknownError;
      throw error;
    } finally {
      if (!isKept) await this.#apiLease.giveBack(tenure);
    }
  }

  async #accept(
    { id, body }: { id: string; body: SessionBody },
    { tenant: owner, client }: Requester,
    checkThere: CheckThere,
  ): Promise<Accepted> {
    const tenant = owner ?? DEFAULT_TENANT;
    const secrets = await this.#secrets.all();
    await checkThere();
    const reply = await this.#parts.store.intents.start(
      {
        id,
        tenant,
        client,
        priority: PRIORITY,
        status: NEW_STATUS,
        keys: secrets.map((secret) => idempotencyKey(secret, tenant, body)),
        body: JSON.stringify(body),
      },
      CALL,
    );
    const session = sessionOf(reply.session);
    if (reply.kind === 'crowded') {
      const error = new SessionCrowdedError({ session: session.id, clients: session.clients });
      this.#tellRefused(body, { tenant, client }, error.message);
      throw error;
    }
    this.#tellStart(reply.kind, session, client);
    return { session, isReplay: reply.kind === 'replayed' };
  }

  #tellStart(kind: 'created' | 'replayed', session: IntentSession, client: string): void {
    const { id, tenant, type } = session;
    const event = kind === 'created' ? 'intent.accepted' : 'intent.replayed';
    this.#parts.events.emit(event, { session: id, tenant, type, client });
  }

  /** Right before the store is asked: the client may have gone while this process was frozen, or while it waited for the store. */
  async #checkThere(
    type: Intent['type'],
    by: Requester,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    if (signal === undefined) return;
    const { clock } = this.#parts;
    for (let turns = 0; turns < READ_TURNS && !signal.aborted; turns++)
      await new Promise<void>((resolve) => clock.afterInput(resolve));
    if (!signal.aborted) return;
    this.#tellRefused({ type }, by, CLIENT_GONE);
    throw signal.reason;
  }

  #tellRefused({ type }: Pick<Intent, 'type'>, { tenant, client }: Requester, why: string): void {
    const facts = { tenant: tenant ?? DEFAULT_TENANT, type, client, why };
    this.#parts.events.emit('intent.refused', facts);
  }

  async #stop(
    { sessionId, force = false }: StreamStop,
    by: Requester,
    checkThere: CheckThere,
  ): Promise<Accepted> {
    await checkThere();
    const request = { ...by, id: sessionId, force, ending: STOPPED_STATUS };
    const reply = await this.#parts.store.intents.stop(request, CALL);
    if (reply.kind === 'absent') throw new SessionNotFoundError({ session: sessionId });
    const session = sessionOf(reply.session);
    if (reply.changed) this.#tellStop(session, by.client);
    return { session, isReplay: !reply.changed };
  }

  #tellStop({ id: session, tenant, state, reason }: IntentSession, client: string): void {
    const { events } = this.#parts;
    events.emit('intent.accepted', { session, tenant, type: 'stream.stop', client });
    events.emit('session.advanced', { session, tenant, state, reason });
  }
}
