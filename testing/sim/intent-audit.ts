/**
 * Watches intents from outside, by what their store has carried out and what their clients were
 * told, and holds them to what Holdfast promises:
 *
 * - **intents**: who was told that a start is accepted has been given a session that is there, is
 *   what was asked for, and had not ended when it was asked for. Of the same tenant, target,
 *   profile and bucket there is never more than one session that has not ended, whichever secrets
 *   the process had that accepted it. A new one is in the stream of starts from its first moment
 *   on. None is made for a client that had gone before its start was read, because it may have been
 *   served elsewhere since. Each client counts once; the last one that stops it stops the session,
 *   and no other;
 * - **sessions**: states follow each other as they may, revisions grow by one, and what has ended
 *   says why and what came of it, never changes, and has no key that leads to it;
 * - **healing**: once nothing is wrong any more, every session comes to its end, even if the stream
 *   has lost its start or its worker is dead, and soon if it is stopped, even if nobody hears of
 *   that; and intents are accepted.
 *
 * When the store has lost data, what it still knows is looked at there and then, and counts from
 * then on. Where a secret was lost that nobody was given, and no connection broke, instances may go
 * on with a secret each until they have looked for it.
 */
import { mayFollow, type Reason, type SessionStatus } from '../../src/intents/intent-session.ts';
import type { SessionState } from '../../src/store/port/intent-store.ts';
import { type Reply, ReplyError } from '../../src/store/redis/client/wire.ts';
import type { Invariant } from './audit.ts';
import type { Counters } from './counters.ts';
import type { SimProcess } from './host.ts';
import type { IntentSetting } from './intent-crew.ts';
import { factsIn, IntentRecord, type SessionFacts, wantedIn } from './intent-record.ts';
import type { IntentSight } from './intent-sight.ts';
import { DEAF_GRACES, SIM_TRIES } from './pipelines.ts';

export interface IntentAuditParts {
  nowMs(): number;
  readonly counters: Counters;
  readonly sight: IntentSight;
  readonly secrets: IntentSetting['secrets'];
  /** How long what runs may take to end. */
  readonly graceMs: number;
  report(invariant: Invariant, target: string, text: string): void;
  /** A session has, because a worker says so, or by itself. */
  ended(id: string, by: SimProcess | null): void;
}

/** What a client was told of a start, and when it had asked. */
export interface Acceptance {
  readonly session: string;
  /** As `wantedIn` has it. */
  readonly wanted: string;
  readonly askedMs: number;
}

type Served = (argv: readonly string[], reply: Reply, by: SimProcess) => void;

/** What may have come of it, by why it has ended. */
const OUTCOMES: Readonly<Record<Reason, string>> = {
  R_STOPPED: 'STOPPED',
  R_LEASE_BUSY: 'REJECTED_BUSY',
  R_NO_TUNER: 'REJECTED_NO_TUNER',
  R_LEASE_EXPIRED: 'FAILED',
  R_PIPELINE_FAILED: 'FAILED',
  R_WORKER_LOST: 'FAILED',
  R_PIPELINE_ENDED: 'COMPLETED',
  R_NO_SLOT: 'REJECTED_NO_SLOT',
  R_TIME_LIMIT: 'FAILED',
};
/**
 * A worker hears of a stop, or looks for one, within this, and tells the store when nothing of it
 * is left.
 */
const STOP_MOST_MS = 8_000;
/** A loss of data brings nothing back that was forgotten longer ago. */
const GONE_KEPT_MS = 10_000;
/** Instances look for a secret every half minute, unless they are frozen meanwhile. */
const APART_MOST_MS = 300_000;

export class IntentAudit {
  readonly #parts: IntentAuditParts;
  readonly #sight: IntentSight;
  readonly #sessions = new Map<string, IntentRecord>();
  /** Those that have not ended, by what was asked for. */
  readonly #open = new Map<string, IntentRecord>();
  /** By process and client: whether that client still waited when a start of its was read there. */
  readonly #served = new Map<string, boolean>();
  /** All that were ever made. */
  readonly #made = new Set<string>();
  #acceptedMs = 0;
  /** Since when nothing has been wrong; null while something may be. */
  #calmSinceMs: number | null = null;
  /** Until when each instance may have a secret of its own. */
  #apartUntilMs = 0;

  constructor(parts: IntentAuditParts) {
    this.#parts = parts;
    this.#sight = parts.sight;
  }

  /** A client has been told that its start is accepted. */
  accepted({ session: id, wanted, askedMs }: Acceptance): void {
    this.#acceptedMs = this.#parts.nowMs();
    this.#count('intent accepted');
    const session = this.#sessions.get(id);
    if (!this.#made.has(id)) this.#report('intents', id, `${id} was accepted, and never made`);
    if (session === undefined) return;
    if (session.wanted !== wanted)
      this.#report('intents', id, `${wanted} was asked for, and ${id} is ${session.wanted}`);
    if (session.endedMs !== null && session.endedMs < askedMs)
      this.#report('intents', id, `${id} was given out, and had ended before it was asked for`);
  }

  /** A process has read a start. `isGone`: its client had hung up, and the process could know. */
  received({ name }: SimProcess, client: string, isGone: boolean): void {
    const reader = `${name} ${client}`;
    if (isGone) this.#count('start read when its client had gone');
    if (!isGone) this.#served.set(reader, true);
    else if (!this.#served.has(reader)) this.#served.set(reader, false);
  }

  /** A script of this verb was carried out; arguments without its keys. */
  served(verb: string, argv: readonly string[], reply: Reply, by: SimProcess): void {
    if (!(reply instanceof ReplyError)) this.#verbs[verb]?.(argv, reply, by);
  }

  /**
   * The store may have lost data. `isTorn`: some keys, and others not. `isSilent`: no connection
   * broke.
   */
  storeForgot({ isTorn, isSilent }: { isTorn: boolean; isSilent: boolean }): void {
    const nowMs = this.#parts.nowMs();
    if (isSilent && this.#parts.secrets === 'made' && !this.#sight.hasSecret())
      this.#apartUntilMs = nowMs + APART_MOST_MS;
    this.#open.clear();
    for (const session of this.#sessions.values()) {
      const facts = this.#sight.factsOf(session.id);
      if (facts === null) {
        if (session.isOpen) this.#count('session lost with the store');
        session.goneMs ??= nowMs;
        continue;
      }
      this.#lookAt(session, facts, nowMs);
      if (session.endedMs !== null) continue;
      if (isTorn) session.isDamaged = true;
      session.isUnlisted = !this.#sight.isListed(session.id);
      this.#open.set(session.wanted, session);
    }
  }

  /** An operator has deleted these from the stream of starts. */
  startsLost(ids: readonly string[]): void {
    this.#count('start lost', ids.length);
  }

  /** A pipeline has begun. */
  ran(id: string, isDeaf: boolean): void {
    const session = this.#sessions.get(id);
    if (session === undefined) return;
    session.isDeaf = isDeaf;
    if (++session.runs > 1) this.#count('pipeline begun again');
  }

  /** A pipeline of a declared kind has begun, with these params. */
  ranKind(
    id: string,
    {
      kind,
      key,
      params,
      isTaken,
    }: { kind: string; key: string; params: unknown; isTaken: boolean },
  ): void {
    const session = this.#sessions.get(id);
    if (!isTaken)
      this.#report('sessions', id, `${id} of kind ${kind} runs on a worker of other kinds`);
    if (session === undefined || session.isSetBack) return;
    this.#count(`pipeline of kind ${kind}`);
    const wanted = JSON.stringify([session.tenant, 'start', kind, key, params]);
    if (session.wanted !== wanted)
      this.#report('sessions', id, `${id} runs ${wanted}, and ${session.wanted} was asked for`);
    if (session.failed >= SIM_TRIES)
      this.#report('sessions', id, `${id} is tried again after ${session.failed} failures`);
    if (session.failed > 0) this.#count('pipeline tried again after a failure');
  }

  /** A pipeline of a declared kind has failed by itself. */
  failed(id: string): void {
    const session = this.#sessions.get(id);
    if (session !== undefined) session.failed++;
  }

  /** Those that the store takes for running, with who has each. */
  running(): Pick<IntentRecord, 'id' | 'worker'>[] {
    return this.#listed().filter(({ state }) => state === 'RUNNING');
  }

  #listed(): IntentRecord[] {
    return [...this.#open.values()].filter(({ isUnlisted }) => !isUnlisted);
  }

  /**
   * Whether the store says that this process has it, and that it is not over; null where it has
   * lost that.
   */
  isGoingOn(id: string, { name }: SimProcess): boolean | null {
    const session = this.#sessions.get(id);
    if (session === undefined || session.isDamaged || session.isSetBack) return null;
    const { state, worker, goneMs } = session;
    return goneMs === null && worker === name && (state === 'STARTING' || state === 'RUNNING');
  }

  /** Whether the store says that it has not ended. */
  isOpen(id: string): boolean {
    return this.#sessions.get(id)?.isOpen ?? false;
  }

  /** Whether it ever was one. */
  isSession(id: string): boolean {
    return this.#made.has(id);
  }

  calmBegins(): void {
    this.#calmSinceMs = this.#parts.nowMs();
  }

  /** Nothing has been wrong for long: says what should have come of it by now. */
  checkHealed(calmSinceMs: number): void {
    this.#calmSinceMs = null;
    if (this.#acceptedMs < calmSinceMs)
      this.#report('healing', '', 'nobody has had a start accepted for long');
    for (const { id, createdMs, state } of this.#listed())
      if (createdMs < calmSinceMs)
        this.#report('healing', id, `session ${id} is ${state}, and does not come to its end`);
  }

  readonly #verbs: Readonly<Record<string, Served>> = {
    'intent/start': (argv, reply, by) => this.#started(argv, reply, by),
    'intent/stop': (argv, reply) => this.#stopped(argv, reply),
    'intent/advance': (argv, reply, by) => this.#progressed(argv, reply, by),
    'stream/consume': (_, reply) => this.#delivered(reply),
    'intent/republish': (argv, reply) => this.#republished(argv, reply),
    'intent/prune': (_, reply) => this.#pruned(reply),
  };

  /**
   * id, tenant, client, body, status, priority, entry, kind, label, keys → 1, created | 2, facts,
   * id of the one that was there
   */
  #started(argv: readonly string[], reply: Reply, { name }: SimProcess): void {
    const [, id = '', tenant = '', client = '', body = '', , , , , , ...keys] = argv;
    const [kind, facts, found] = reply as [number, unknown[], string];
    const wanted = wantedIn(tenant, body);
    const request = { id, tenant, wanted, keys, createdMs: this.#parts.nowMs() };
    if (kind === 1 && this.#served.get(`${name} ${client}`) === false)
      this.#report(
        'intents',
        id,
        `${id} was made for ${client}, which had gone before it was read`,
      );
    if (kind === 1) this.#created(new IntentRecord(request), client);
    if (kind === 2) this.#replayed(found, client, request, factsIn(facts));
  }

  #created(session: IntentRecord, client: string): void {
    const { id, wanted } = session;
    session.isDamaged = session.createdMs < this.#apartUntilMs;
    const open = this.#open.get(wanted);
    const isKnown = this.#made.has(id);
    this.#made.add(id);
    this.#sessions.set(id, session);
    this.#open.set(wanted, session);
    if (open !== undefined && !open.isDamaged)
      this.#report('intents', id, `${id} was made for ${wanted} while ${open.id} is ${open.state}`);
    if (isKnown) this.#report('intents', id, `${id} was made twice`);
    session.clients.add(client);
    this.#count('session made');
    if (!this.#sight.isToStart(id))
      this.#report('intents', id, `${id} was made, and nobody is told to start it`);
    this.#compare(session);
  }

  #replayed(
    id: string,
    client: string,
    { wanted, keys }: Pick<IntentRecord, 'wanted' | 'keys'>,
    facts: SessionFacts,
  ): void {
    const session = this.#sessions.get(id);
    if (session === undefined) return;
    if (session.wanted !== wanted)
      this.#report('intents', id, `${wanted} was asked for, and ${id} is ${session.wanted}`);
    if (!session.isOpen) this.#report('intents', id, `${id} was replayed after it had ended`);
    session.clients.add(client);
    session.isUnlisted = !this.#sight.isListed(id);
    if (session.isUnlisted) this.#report('intents', id, `${id} was replayed, and is not listed`);
    this.#count('replayed');
    if (keys[0] !== session.keys[0]) this.#count('replayed under another secret');
    this.#compare(session, facts);
  }

  /** id, client, for all of them, ending, tenant → 1 or 2, facts; nothing where there is none */
  #stopped([, id = '', client = '', all, ending = '']: readonly string[], reply: Reply): void {
    const session = this.#sessions.get(id);
    if (session === undefined) return;
    if (reply === null) {
      if (session.goneMs === null) this.#report('sessions', id, `${id} was stopped in vain`);
      return;
    }
    const [kind, facts] = reply as [number, unknown[]];
    const { state, clients } = session;
    const isDone = state === 'STOPPING' || state === 'ENDED';
    if (!isDone && all === '1') clients.clear();
    if (!isDone) clients.delete(client);
    const isLast = !isDone && clients.size === 0;
    if (isLast !== (kind === 2))
      this.#report(
        'intents',
        id,
        `a stop of ${id}, ${state}, with ${clients.size} others: ${kind}`,
      );
    if (!isDone) this.#count(isLast ? `stopped while ${state}` : 'stopped for one of several');
    if (isLast) this.#change(session, state === 'NEW' ? 'ENDED' : 'STOPPING');
    if (isLast && state === 'NEW') this.#end(session, JSON.parse(ending) as SessionStatus, null);
    this.#compare(session, factsIn(facts));
  }

  /**
   * id, revision expected, state, status → 1, facts | 2, facts if it has another revision, or has
   * ended
   */
  #progressed(
    [, id = '', expected, state = '', status = '']: readonly string[],
    reply: Reply,
    by: SimProcess,
  ): void {
    const session = this.#sessions.get(id);
    if (session === undefined || reply === null) return;
    const [kind, facts] = reply as [number, unknown[]];
    if (kind === 2) this.#count('change refused: revision');
    if (kind === 1) {
      if (session.revision !== Number(expected))
        this.#report('sessions', id, `${id} was changed at ${session.revision}, not ${expected}`);
      this.#follow(session, JSON.parse(status) as SessionStatus);
      this.#checkStop(session);
      this.#change(session, state as SessionState);
      if (state === 'ENDED') this.#end(session, JSON.parse(status) as SessionStatus, by);
    }
    this.#compare(session, factsIn(facts));
  }

  /** Per entry: lane … */
  #delivered(reply: Reply): void {
    for (const [lane] of reply as [string][]) {
      const state = this.#sessions.get(lane)?.state ?? 'NEW';
      if (state !== 'NEW') this.#count('delivered again');
    }
  }

  /** From one worker to another, or to nobody. */
  #follow(session: IntentRecord, { worker }: SessionStatus): void {
    const { worker: before, state } = session;
    session.worker = worker;
    if (state === 'NEW' || before === worker) return;
    if (worker === null) this.#count('session handed over');
    else if (before === null) this.#count('session gone on with');
    else this.#count(state === 'STOPPING' ? 'STOPPING session recovered' : 'session recovered');
  }

  /** What runs has its grace; some take more of it, and none more than this. */
  #checkStop({ id, stoppingMs, isDeaf }: IntentRecord): void {
    const sinceMs = stoppingMs ?? Number.POSITIVE_INFINITY;
    const tookMs = this.#parts.nowMs() - sinceMs;
    const isCalm = this.#calmSinceMs !== null && this.#calmSinceMs < sinceMs;
    const graceMs = this.#parts.graceMs * (isDeaf ? DEAF_GRACES : 1);
    if (isCalm && tookMs > STOP_MOST_MS + graceMs)
      this.#report('healing', id, `${id} has taken ${Math.round(tookMs)} ms to stop`);
  }

  #end(
    { id, runs }: IntentRecord,
    { reason, outcome }: SessionStatus,
    by: SimProcess | null,
  ): void {
    const due = reason === null ? undefined : OUTCOMES[reason];
    if (due === undefined || due !== outcome)
      this.#report('sessions', id, `${id} has ended with ${reason} and ${outcome}`);
    this.#count(`ended: ${reason}`);
    if (reason === 'R_STOPPED' && runs === 0) this.#count('stopped before it ran');
    this.#parts.ended(id, by);
  }

  /** Per session: id, entry → 1 if it was lost */
  #republished([, ...pairs]: readonly string[], reply: Reply): void {
    for (const [i, isLost] of (reply as number[]).entries()) {
      if (isLost !== 1) continue;
      this.#count('republished');
      const id = pairs[2 * i] ?? '';
      const { state = 'NEW' } = this.#sessions.get(id) ?? {};
      if (state !== 'NEW')
        this.#report('sessions', id, `${id} is to be started once more, and is ${state}`);
    }
  }

  /** → how many were looked at, how many were forgotten */
  #pruned(reply: Reply): void {
    const [, forgotten] = reply as [number, number];
    if (forgotten === 0) return;
    const nowMs = this.#parts.nowMs();
    this.#count('sessions forgotten', forgotten);
    for (const [id, session] of this.#sessions) {
      if (session.goneMs === null && this.#sight.factsOf(id) === null) {
        if (session.isOpen) this.#report('sessions', id, `${id} was forgotten as ${session.state}`);
        session.goneMs = nowMs;
      }
      if (session.goneMs !== null && nowMs - session.goneMs > GONE_KEPT_MS)
        this.#sessions.delete(id);
    }
  }

  #change(session: IntentRecord, state: SessionState): void {
    const { id, state: before, wanted } = session;
    const nowMs = this.#parts.nowMs();
    if (before !== state && !mayFollow(before, state))
      this.#report('sessions', id, `${id} became ${state} from ${before}`);
    if (before === 'ENDED') this.#report('sessions', id, `${id} was changed after it had ended`);
    session.change(state, nowMs);
    if (state !== 'ENDED') return;
    this.#count('session ended');
    if (this.#open.get(wanted) === session) this.#open.delete(wanted);
    if (this.#sight.leading(id, session.keys).length > 0)
      this.#report('sessions', id, `${id} has ended, and a key leads to it`);
  }

  /** What was told of it, and what the store shows, is what must have come of it. */
  #compare(session: IntentRecord, ...told: readonly SessionFacts[]): void {
    const { id, state, revision, clients } = session;
    const due = `${state}, revision ${revision}, ${clients.size} clients`;
    const shown = this.#sight.factsOf(id);
    for (const facts of [...told, ...(shown === null ? [] : [shown])]) {
      const found = `${facts.state}, revision ${facts.revision}, ${facts.clients} clients`;
      if (found !== due) this.#report('sessions', id, `${id} should be ${due}, and is ${found}`);
    }
  }

  /** As the store knows it now. */
  #lookAt(session: IntentRecord, facts: SessionFacts, nowMs: number): void {
    const { state, revision } = facts;
    if (revision !== session.revision) session.isSetBack = true;
    const { id, clients, endedMs } = session;
    session.worker = (JSON.parse(facts.status) as Partial<SessionStatus>).worker ?? null;
    clients.clear();
    for (const client of this.#sight.clientsOf(id)) clients.add(client);
    const isEnded = state === 'ENDED';
    Object.assign(session, { state, revision, goneMs: null });
    session.endedMs = isEnded ? (endedMs ?? nowMs) : null;
  }

  /**
   * Where some of its keys were deleted and others not, a session may lie where nobody finds it.
   */
  #report(invariant: Invariant, id: string, text: string): void {
    if (this.#sessions.get(id)?.isDamaged) this.#count(`excused: ${invariant}`);
    else this.#parts.report(invariant, `session:${id}`, text);
  }

  #count(name: string, count = 1): void {
    this.#parts.counters.add(name, count);
  }
}
