/**
 * Accepts the intents of clients to start and stop sessions. It holds no leases: workers do.
 *
 * A start is one step of the store: it finds the session that the same request started before, or
 * creates it and puts it into the stream of starts. So an accepted start is durable, and a client
 * without an answer may send it again: no second session is started. The second client of a session
 * is accepted, too.
 */
import {
  ConfigError,
  LeaseHeldError,
  OutcomeUnknownError,
  StoreQuarantinedError,
} from '../core/errors.ts';
import { isTargetId, randomUuid } from '../core/ids.ts';
import { checkKnown, checkSwitch } from '../core/options.ts';
import { TurnQueue } from '../core/turn-queue.ts';
import { SessionNotFoundError } from '../fleet/targets/errors.ts';
import { SESSIONS_PAGE, type SessionState } from '../store/port/intent-store.ts';
import type { Runtime } from '../store/runtime.ts';
import { acquireApiLease, releaseApiLease } from './api-lease.ts';
import { type PreparedStart, prepareStart } from './declared-start.ts';
import { KindFailedError, SecretMissingError, SessionCrowdedError } from './errors.ts';
import { idempotencyKey, identityOf } from './idempotency.ts';
import {
  checkIntent,
  checkRequester,
  checkStopKey,
  DEFAULT_TENANT,
  type Intent,
  type Requester,
  type Start,
  type Stop,
  type StopKey,
  type StreamStart,
  type StreamStop,
  type VodStart,
  wantedBy,
} from './intent.ts';
import {
  type IntentSession,
  NO_STATUS,
  type SessionBody,
  type SessionStatus,
  sessionOf,
} from './intent-session.ts';
import { DEFAULT_PRIORITY, isKindName, KIND_NAME_RULE, type Kind } from './kind.ts';
import { type SecretOptions, SecretSet } from './secret-set.ts';
import { readable, readSessions, reportForeign } from './session-reading.ts';
import { StartRecoveryLoop } from './start-recovery-loop.ts';

export interface IntentOptions extends SecretOptions {
  /**
   * `on`: a start first acquires the lease of its channel, and throws `LEASE_HELD` if another
   * session has it, even one that the same request started. For users of an API that did so;
   * default `off`: only workers acquire leases.
   */
  apiLeases?: 'on' | 'off';
}

export interface Accepted {
  readonly session: IntentSession;
  /** A start that found its session; a stop that changed nothing. */
  readonly isReplay: boolean;
}

export interface SubmitOptions {
  /**
   * Fires when the client has gone. Another instance may have served it since, so an intent that
   * was not sent to the store yet is dropped, and `submit` rejects with the signal's reason.
   */
  readonly signal?: AbortSignal;
}

export interface SessionQuery {
  /** Null: all tenants. */
  readonly tenant: string | null;
  readonly kind?: string | undefined;
  /** The key of a declared kind, the channel or the recording. Needs `kind`. */
  readonly key?: string | undefined;
  readonly states?: readonly SessionState[] | undefined;
  readonly cursor?: string | undefined;
  /** Default 100, at most 1,000. */
  readonly most?: number | undefined;
}

export interface SessionPage {
  /** The newest first. */
  readonly sessions: readonly IntentSession[];
  /** Absent on the last page. A short or empty page need not be the last. */
  readonly cursor?: string;
}

/** The answer to one of several intents. */
export type Submitted =
  | ({ readonly ok: true } & Accepted)
  | { readonly ok: false; readonly error: unknown };

/** Throws if the client has gone. */
type CheckClient = () => Promise<void>;

const KNOWN = new Set(['secret', 'previousSecret', 'apiLeases']);
/** Short, because a client waits, and may send its intent again. */
const CALL = { timeoutMs: 2_000 };
const DEFAULT_PAGE = 100;
/** Requests for one page, if most sessions do not match the query. */
const MAX_REQUESTS = 10;
/**
 * A process that was frozen reads a request before it reads that the client has hung up. Node takes
 * three turns of its event loop for that: the request, the end of the connection, its close.
 */
const READ_TURNS = 4;
const CLIENT_GONE = 'the client has hung up';
const STOPPED: SessionStatus = { ...NO_STATUS, reason: 'R_STOPPED', outcome: 'STOPPED' };
const CHANNEL_TAKEN = 'another session has the lease of the channel';
const QUARANTINED = 'the store is in quarantine after data loss, and makes no new grants yet';
const NEW_STATUS = JSON.stringify(NO_STATUS);
const STOPPED_STATUS = JSON.stringify(STOPPED);

export class Intents {
  readonly #rt: Runtime;
  readonly #kinds: ReadonlyMap<string, Kind>;
  readonly #secrets: SecretSet;
  readonly #hasApiLeases: boolean;
  readonly #recovery: StartRecoveryLoop;
  /** A request waits these turns, because its client may have hung up. */
  readonly #turns: TurnQueue;

  constructor(
    rt: Runtime,
    options: IntentOptions = {},
    kinds: ReadonlyMap<string, Kind> = new Map(),
  ) {
    checkKnown(options, KNOWN);
    const { apiLeases = 'off', ...secrets } = options;
    checkSwitch(apiLeases, 'apiLeases');
    this.#rt = rt;
    this.#turns = new TurnQueue(rt.clock, READ_TURNS);
    this.#kinds = kinds;
    this.#secrets = new SecretSet(rt, secrets);
    this.#hasApiLeases = apiLeases === 'on';
    this.#recovery = new StartRecoveryLoop(rt, this.#secrets);
  }

  /** The names of the declared kinds. */
  get kinds(): readonly string[] {
    return [...this.#kinds.keys()];
  }

  /**
   * Accepts an intent. Throws `CONFIG_INVALID` for an invalid intent, `PARAMS_INVALID` for params
   * that do not fit their kind, `KIND_FAILED` if the declaration of the kind fails,
   * `SESSION_NOT_FOUND` for a
   * stop of an absent session, `SESSION_CROWDED` if the session has too many clients,
   * `SECRET_MISSING` if other instances have a secret and this one has none, `LEASE_HELD` with
   * `apiLeases` if another session has the channel, and errors of the store. After
   * `OUTCOME_UNKNOWN` the intent may have been accepted, and submitting it again is safe.
   */
  async submit(intent: Intent, by: Requester, { signal }: SubmitOptions = {}): Promise<Accepted> {
    checkIntent(intent);
    checkRequester(by);
    const checkClient = () => this.#checkClient(intent.type, by, signal);
    return intent.type === 'stream.stop' || intent.type === 'stop'
      ? this.#stop(intent, by, checkClient)
      : this.#start(intent, by, checkClient);
  }

  /** Accepts several intents, each for itself: some may be refused. Answers are in their order. */
  submitAll(
    intents: readonly Intent[],
    by: Requester,
    options: SubmitOptions = {},
  ): Promise<Submitted[]> {
    const each = async (intent: Intent): Promise<Submitted> => {
      try {
        return { ok: true, ...(await this.submit(intent, by, options)) };
      } catch (error) {
        return { ok: false, error };
      }
    };
    return Promise.all(intents.map(each));
  }

  /**
   * Stops all open sessions of a kind with this key: the client needs them no more. The kind need
   * not be declared any more. Throws `SESSION_NOT_FOUND` if there is none. A session that starts at
   * the same time may be missed.
   */
  async stopKey(stop: StopKey, by: Requester, { signal }: SubmitOptions = {}): Promise<Accepted[]> {
    checkStopKey(stop);
    checkRequester(by);
    const { kind, key, force = false } = stop;
    const checkClient = () => this.#checkClient('stop', by, signal);
    await checkClient();
    const accepted: Accepted[] = [];
    let cursor: string | undefined;
    do {
      const tenant = by.tenant ?? undefined;
      const call = { ...CALL, kind, label: key, tenant, isOpen: true, cursor };
      const page = await this.#rt.store.intents.list(call);
      for (const { id } of page.sessions) {
        const intent: Stop = { type: 'stop', sessionId: id, force };
        const one = await this.#stop(intent, by, checkClient).catch(nullIfNotFound);
        if (one !== null) accepted.push(one);
      }
      cursor = page.cursor;
    } while (cursor !== undefined);
    if (accepted.length === 0) throw new SessionNotFoundError({ session: `${kind}/${key}` });
    return accepted;
  }

  /**
   * Null if this tenant has no such session; a tenant of null sees all. Throws `SESSION_UNREADABLE`
   * if its record is invalid.
   */
  async session(id: string, tenant: string | null): Promise<IntentSession | null> {
    if (!isTargetId(id)) return null;
    const [found = null] = await this.#rt.store.intents.read([id], CALL);
    if (found === null || (tenant !== null && found.tenant !== tenant)) return null;
    return sessionOf(found);
  }

  /** Which of these sessions belong to another tenant. */
  async ofOthers(ids: readonly string[], tenant: string): Promise<ReadonlySet<string>> {
    const found = await readSessions(this.#rt, ids, CALL);
    return new Set(found.flatMap((one) => (one === null || one.tenant === tenant ? [] : [one.id])));
  }

  /** Leaves out sessions that cannot be read; `session.unreadable` reports them. */
  async sessions(query: SessionQuery): Promise<SessionPage> {
    const { tenant, kind, key, states, most = DEFAULT_PAGE } = query;
    const { store, events } = this.#rt;
    checkQuery(query);
    const wanted = Math.min(Math.max(1, Math.floor(most)), SESSIONS_PAGE);
    const isOpen = states !== undefined && !states.includes('ENDED');
    const sessions: IntentSession[] = [];
    let { cursor } = query;
    for (let requests = 0; requests < MAX_REQUESTS; requests++) {
      const page = await store.intents.list({
        timeoutMs: CALL.timeoutMs,
        isOpen,
        most: wanted - sessions.length,
        tenant: tenant ?? undefined,
        kind,
        label: key,
        cursor,
      });
      reportForeign(events, page.foreign);
      for (const stored of page.sessions) {
        const session = readable(events, stored);
        if (session !== null && (states?.includes(session.state) ?? true)) sessions.push(session);
      }
      cursor = page.cursor;
      if (cursor === undefined || sessions.length >= wanted) break;
    }
    return { sessions, ...(cursor !== undefined && { cursor }) };
  }

  /** Why this instance cannot accept intents, as far as it knows; null if it can. */
  get trouble(): string | null {
    return this.#secrets.isMissing ? new SecretMissingError({}).message : null;
  }

  /** Restores starts that the stream has lost, from now on, every half minute. */
  start(): void {
    // Read before the first client comes. After a failure, the first start reads again.
    this.#secrets.all().catch(() => {});
    this.#recovery.start();
  }

  stop(): Promise<void> {
    return this.#recovery.stop();
  }

  async #start(
    intent: StreamStart | VodStart | Start,
    by: Requester,
    checkClient: CheckClient,
  ): Promise<Accepted> {
    const id = randomUuid(this.#rt.random);
    const start =
      intent.type === 'start' ? await this.#prepare(intent, by, id) : preparedBuiltIn(intent);
    const { wanted } = start;
    if (!this.#hasApiLeases) return this.#accept(id, start, by, checkClient);
    await checkClient();
    const tenure = await acquireApiLease(this.#rt, wanted, id).catch((error: unknown) => {
      // The holder may belong to another tenant, and this tenant sees these events: do not name it.
      if (error instanceof LeaseHeldError) this.#reportRefused(wanted, by, CHANNEL_TAKEN);
      if (error instanceof StoreQuarantinedError) this.#reportRefused(wanted, by, QUARANTINED);
      throw error;
    });
    let isKept = false;
    try {
      const continued = { ...start, wanted: { ...wanted, tenure } };
      const accepted = await this.#accept(id, continued, by, checkClient);
      isKept = !accepted.isReplay;
      return accepted;
    } catch (error) {
      // A worker may have the lease by now; otherwise it expires.
      isKept = error instanceof OutcomeUnknownError;
      throw error;
    } finally {
      if (!isKept) await releaseApiLease(this.#rt, tenure);
    }
  }

  async #prepare(intent: Start, by: Requester, id: string): Promise<PreparedStart> {
    try {
      return await prepareStart(this.#kinds, intent, by.tenant ?? DEFAULT_TENANT, id);
    } catch (error) {
      // Not the fault of the client, who is only told that the declaration failed.
      if (error instanceof KindFailedError) this.#reportRefused(intent, by, error.message);
      throw error;
    }
  }

  async #accept(
    id: string,
    { wanted, identity, priority }: PreparedStart & { readonly wanted: SessionBody },
    { tenant: owner, client }: Requester,
    checkClient: CheckClient,
  ): Promise<Accepted> {
    const tenant = owner ?? DEFAULT_TENANT;
    const secrets = await this.#secrets.all();
    await checkClient();
    const reply = await this.#rt.store.intents.start(
      {
        id,
        tenant,
        kind: wanted.kind,
        label: wanted.target,
        client,
        priority,
        status: NEW_STATUS,
        keys: secrets.map((secret) => idempotencyKey(secret, tenant, identity)),
        body: JSON.stringify(wanted),
      },
      CALL,
    );
    const session = sessionOf(reply.session);
    if (reply.kind === 'crowded') {
      const error = new SessionCrowdedError({ session: session.id, clients: session.clients });
      this.#reportRefused(wanted, { tenant, client }, error.message);
      throw error;
    }
    this.#reportStart(reply.kind, session, client);
    return { session, isReplay: reply.kind === 'replayed' };
  }

  #reportStart(kind: 'created' | 'replayed', session: IntentSession, client: string): void {
    const { id, tenant, type } = session;
    const event = kind === 'created' ? 'intent.accepted' : 'intent.replayed';
    this.#rt.events.emit(event, { session: id, tenant, type, client });
  }

  /**
   * Called right before the store is asked: the client may have gone while this process was frozen
   * or waited.
   */
  async #checkClient(
    type: Intent['type'],
    by: Requester,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    if (signal === undefined) return;
    await this.#turns.wait();
    if (!signal.aborted) return;
    this.#reportRefused({ type }, by, CLIENT_GONE);
    throw signal.reason;
  }

  #reportRefused({ type }: Pick<Intent, 'type'>, { tenant, client }: Requester, why: string): void {
    const facts = { tenant: tenant ?? DEFAULT_TENANT, type, client, why };
    this.#rt.events.emit('intent.refused', facts);
  }

  async #stop(
    { type, sessionId, force = false }: StreamStop | Stop,
    by: Requester,
    checkClient: CheckClient,
  ): Promise<Accepted> {
    await checkClient();
    const request = { ...by, id: sessionId, force, ending: STOPPED_STATUS };
    const reply = await this.#rt.store.intents.stop(request, CALL);
    if (reply.kind === 'absent') throw new SessionNotFoundError({ session: sessionId });
    const session = sessionOf(reply.session);
    if (reply.changed) this.#reportStop(type, session, by.client);
    return { session, isReplay: !reply.changed };
  }

  #reportStop(type: string, session: IntentSession, client: string): void {
    const { events } = this.#rt;
    const { id, tenant, state, reason } = session;
    events.emit('intent.accepted', { session: id, tenant, type, client });
    events.emit('session.advanced', { session: id, tenant, state, reason });
  }
}

function preparedBuiltIn(intent: StreamStart | VodStart): PreparedStart {
  const wanted = wantedBy(intent);
  return { wanted, identity: identityOf(wanted), priority: DEFAULT_PRIORITY };
}

function checkQuery({ kind, key }: SessionQuery): void {
  if (kind !== undefined && !isKindName(kind))
    throw new ConfigError({ field: 'kind', value: kind, rule: KIND_NAME_RULE });
  if (key !== undefined && kind === undefined)
    throw new ConfigError({ field: 'key', value: key, rule: 'it needs a kind beside it' });
}

function nullIfNotFound(error: unknown): null {
  if (error instanceof SessionNotFoundError) return null;
  throw error;
}
