/**
 * A Redis that was restarted, failed over or flushed may have forgotten grants whose holders still
 * act. Until the last of those leases must have expired it makes no new grant: the quarantine.
 * Renewals continue, and holders put back leases that vanished. A quarantine lasts as long as the
 * bound of the keyspace (`../port/keyspaces.ts`), which every client knows without the store.
 *
 * A marker in the store says which server process granted last (`run`, `replication`), since when
 * it may have forgotten (`since`), and the bounds. Each new connection examines the marker before
 * the first acquire, and so does a check every few seconds. An examination that finds a difference
 * begins a new *era*. An acquire carries the era that its sender has examined, and the script
 * grants nothing if the store has another one. So one client's finding, or a flush that took the
 * marker along, stops all clients.
 *
 * A store without a marker counts from the start of its server process. Nothing else proves that no
 * holder exists: a server that is empty and was just started is either new, or was restarted
 * without its data while holders act on leases from before. A client that takes no leases makes no
 * marker (`mayCreate`): the first client that takes leases finds the store as it was.
 *
 * An address can also lead back to an earlier state of the data: a failover that is undone, a
 * backup that is loaded. That shows by an era that this client has left before, or by a count of
 * examinations that is lower than it was.
 *
 * Not covered: a flush, or an address that leads back, before a running client has noticed it; a
 * server clock that is set forward during a quarantine. On a Cluster every primary is examined like
 * this, with fields of its own in one marker. It has a witness (`witness-state.ts`) that tells its
 * era to scripts that cannot read the marker.
 */
import type { Clock } from '../../core/clock.ts';
import { StoreUnreachableError, StoreUnsuitableError } from '../../core/errors.ts';
import type { BaseRuntime } from '../../core/runtime.ts';
import {
  boundsProblem,
  DEFAULT_MAX_TTLS,
  KEYSPACE_NAMES,
  type Keyspace,
  type MaxTtls,
  QUARANTINE_MARGIN_MS,
} from '../port/keyspaces.ts';
import { QuarantineEmitter } from '../quarantine-emitter.ts';
import type { ServerFacts } from './examination.ts';
import { type RunScript, scripts } from './scripts.ts';
import { type Reach, type ServedSlots, type WitnessNames, WitnessState } from './witness-state.ts';

/** How long a Cluster's marker remembers a server that has left the Cluster. */
const SERVER_KEPT_MS = 3_600_000;
/** Eras that a client has left and would recognise. The oldest are forgotten first. */
const MAX_ERAS = 1_000;

/** Why a client knows that the store has forgotten, although the marker does not say so. */
export const VANISHED = 'a lease vanished under its holder';
const LED_BACK = 'an earlier state of its data is back';
const WITNESS_LOST = 'its witness is gone: it was flushed';
/**
 * Other clients may change a witness while it is confirmed. After so many tries the server has
 * none.
 */
const MAX_WITNESS_TRIES = 3;

/**
 * What examinations have found out about a store. It outlives connections, so that a vanished
 * marker is noticed.
 */
export class ExaminationHistory {
  origin = '';
  /** How often the marker has been examined, by all clients. */
  examinations = 0;
  /** The server process that was examined last; '' on a Cluster. */
  runId = '';
  /**
   * The bounds of the store when it refused this client for having others. Leases as long as these
   * may be held, so the client may not put its own, shorter bounds into a store that loses its
   * marker later.
   */
  refusedFor: readonly (string | null)[] | null = null;
  readonly #left = new Set<string>();

  leave(era: string): void {
    if (era === '') return;
    this.#left.add(era);
    for (const oldest of this.#left) {
      if (this.#left.size <= MAX_ERAS) break;
      this.#left.delete(oldest);
    }
  }

  hasLeft(era: string): boolean {
    return this.#left.has(era);
  }
}

/** What all servers of one opened store share. */
export interface StoreContext {
  readonly marker: string;
  /** Whether the store is quarantined after data loss. */
  readonly mode: 'on' | 'off';
  /** Null for an observer, which is granted nothing. */
  readonly maxTtls: MaxTtls | null;
  /** False: a store without a marker is left without one. */
  readonly mayCreate: boolean;
  /** Accepts a store with an unfinished copy. */
  readonly unfinished: boolean;
  readonly remembered: ExaminationHistory;
  /**
   * The subjects of warnings given so far. Each is given once, although its facts change all the
   * time.
   */
  readonly warned: Set<string>;
}

export class Quarantine {
  readonly #rt: BaseRuntime;
  readonly #clock: Clock;
  readonly #store: string;
  readonly #context: StoreContext;
  readonly #witness: WitnessState | null;
  readonly #emitter: QuarantineEmitter;
  #era = '';
  #forgotAtMs = 0;
  #server: ServerFacts | null = null;

  /** `served`: on a Cluster, where several servers share the marker, the slots of this one. */
  constructor(rt: BaseRuntime, store: string, context: StoreContext, served?: ServedSlots) {
    this.#rt = rt;
    this.#clock = rt.clock;
    this.#store = store;
    this.#context = context;
    this.#witness = served === undefined ? null : new WitnessState(rt, context.marker, served);
    this.#emitter = new QuarantineEmitter(rt.events, store, (keyspace) => this.leftMs(keyspace));
  }

  /** The era that an acquire presents: the one examined, or '' where none is asked for. */
  get era(): string {
    if (this.#context.mode === 'off') return '';
    if (this.#witness === null) return this.#era;
    return this.#witness.name === '' ? '' : `${this.#era} ${this.#witness.name}`;
  }

  /**
   * The era, and how long it makes no new grants yet. A lease that is handed over in an era may be
   * claimed in it, even when that time is over here: for a successor whose host has slept it may
   * last longer. '' where quarantine is off.
   */
  get handover(): { readonly era: string; readonly leftMs: number } {
    const { mode, maxTtls } = this.#context;
    if (mode === 'off' || maxTtls === null) return { era: '', leftMs: 0 };
    const leftMs = Math.max(...KEYSPACE_NAMES.map((keyspace) => this.leftMs(keyspace)));
    return { era: this.#era, leftMs: Math.ceil(leftMs) };
  }

  /**
   * The era that a holder presents to put back a lease whose record is lost too: '' where that is
   * not allowed.
   */
  get forgetting(): string {
    if (this.#context.mode === 'off') return '';
    return this.era === '' ? '*' : this.era;
  }

  /**
   * Examines the server behind a new connection, or one that may have changed under its connection.
   */
  async examine(reach: Reach, server: ServerFacts): Promise<void> {
    this.#server = server;
    await this.#examine(reach, server, '');
  }

  /**
   * Again on the same connection: the store has another era, or `why` says what this client has
   * noticed.
   */
  async reexamine(reach: Reach, why = ''): Promise<void> {
    if (this.#server !== null) await this.#examine(reach, this.#server, why);
  }

  /** How long no new lease of a keyspace may be granted yet; 0 if it may be. */
  leftMs(keyspace: Keyspace): number {
    const { maxTtls, mode } = this.#context;
    if (mode === 'off') return 0;
    if (maxTtls === null) return Number.POSITIVE_INFINITY;
    const untilMs = this.#forgotAtMs + maxTtls[keyspace] + QUARANTINE_MARGIN_MS;
    return Math.max(0, untilMs - this.#clock.monotonicMs());
  }

  /** As `leftMs`, for a client that wants a lease there. It is told of the wait by an event. */
  announcedLeftMs(keyspace: Keyspace): number {
    return this.#emitter.leftMs(keyspace);
  }

  async #examine(reach: Reach, server: ServerFacts, why: string): Promise<void> {
    const witness = this.#witness;
    let noticed = why;
    for (let attempt = 0; attempt < MAX_WITNESS_TRIES; attempt++) {
      const names = await this.#compare(reach.run, server, noticed);
      if (witness === null || names === null) return;
      const facts = { ...names, era: this.#era, own: `${server.runId}:` };
      const state = await witness.confirm(reach, facts);
      if (state === 'confirmed') return;
      noticed = state === 'lost' ? WITNESS_LOST : '';
    }
  }

  /**
   * Returns the recorded names of the server's witnesses; null if the store has no marker and stays
   * without.
   */
  async #compare(run: RunScript, server: ServerFacts, why: string): Promise<WitnessNames | null> {
    const { remembered } = this.#context;
    const newEra = this.#rt.random.hex(12);
    const verdict = await examineMarker(run, this.#store, this.#context, {
      eras: [newEra, this.#era],
      noticed: why,
      isShared: this.#witness !== null,
      servers: [server],
    });
    if (verdict === null) return null;
    const [era, forgotMsAgo, found, recorded, former] = verdict;
    const names = { recorded, former };
    // Measured from the answer, later than the store meant: too long a wait is safe, too short is
    // not.
    const forgotAtMs = this.#clock.monotonicMs() - forgotMsAgo;
    if (found === '' && remembered.hasLeft(era)) {
      remembered.leave(this.#era);
      this.#era = era;
      return this.#compare(run, server, LED_BACK);
    }
    if (era === this.#era) return names;
    remembered.leave(this.#era);
    this.#era = era;
    // Within an era the first answer stands: the server's clock may be set at any time, ours only
    // goes forward.
    this.#forgotAtMs = forgotAtMs;
    if (era === newEra && found !== FIRST_USE)
      this.#rt.events.emit('store.forgot', { store: this.#store, why: found });
    this.#emitter.begin();
    return names;
  }
}

/** As `lua/server/examine.lua` says it. */
const FIRST_USE = 'first use';

type Verdict = [era: string, forgotMsAgo: number, why: string, witness: string, former: string];
type ExamineReply = [string, number, Verdict[]] | ['BOUNDS', (string | null)[]] | ['UNUSED'];

/** What one examination compares with the marker. */
interface Comparison {
  readonly eras: readonly [created: string, current: string];
  /** What this client has noticed itself; '' for nothing. */
  readonly noticed: string;
  /** Several servers share the marker. */
  readonly isShared: boolean;
  readonly servers: readonly ServerFacts[];
}

/**
 * Compares servers with the marker and returns the verdict on the first. Returns null if an
 * observer has found no marker. Throws if the store has other bounds than ours, or if there is no
 * marker, this client needs one and may not make it.
 */
async function examineMarker(
  run: RunScript,
  store: string,
  { marker, maxTtls, mayCreate, remembered }: StoreContext,
  { eras, noticed, isShared, servers }: Comparison,
): Promise<Verdict | null> {
  const isRefused = remembered.refusedFor !== null;
  const own = maxTtls ?? DEFAULT_MAX_TTLS;
  const reply = (await run(
    scripts['server/examine'],
    [marker],
    [
      ...eras,
      noticed,
      isRefused ? '' : remembered.origin,
      // On a Cluster the marker's server may lose examinations in a failover that the others take
      // no part in.
      isShared || isRefused ? '0' : String(remembered.examinations),
      ...KEYSPACE_NAMES.map((name) => (maxTtls === null ? '' : String(maxTtls[name]))),
      mayCreate && !isRefused ? '1' : '',
      remembered.runId,
      ...servers.flatMap(({ runId, replicationId, upMs }) => {
        return [isShared ? `${runId}:` : '', runId, replicationId, String(upMs)];
      }),
    ],
  )) as ExamineReply;
  if (reply[0] === 'UNUSED') {
    if (maxTtls === null) return null;
    if (remembered.refusedFor !== null) throw otherBounds(store, own, remembered.refusedFor);
    const why = 'no process has used this store yet, and { create: false } does not make one';
    throw new StoreUnreachableError({ store, operation: 'connect', why });
  }
  if (reply[0] === 'BOUNDS') {
    remembered.refusedFor = reply[1] as (string | null)[];
    throw otherBounds(store, own, remembered.refusedFor);
  }
  remembered.refusedFor = null;
  const [origin, examinations, [verdict]] = reply as [string, number, [Verdict]];
  remembered.origin = origin;
  remembered.examinations = examinations;
  remembered.runId = isShared ? '' : (servers[0]?.runId ?? '');
  return verdict;
}

function otherBounds(
  store: string,
  maxTtls: MaxTtls,
  recorded: readonly (string | null)[],
): StoreUnsuitableError {
  const known = KEYSPACE_NAMES.flatMap((name, i) => {
    const ms = recorded[i];
    return ms === null ? [] : [[name, Number(ms)] as const];
  });
  const problem = boundsProblem(Object.fromEntries(known), maxTtls);
  return new StoreUnsuitableError({ store, problems: problem === null ? [] : [problem] });
}

/**
 * Makes the marker of a Cluster that has never been used, with all of its servers at once: a server
 * that the marker does not know when it appears later counts as having forgotten. A client that may
 * not make the marker leaves such a Cluster as it is.
 */
export async function createMarker(
  { random }: BaseRuntime,
  run: RunScript,
  context: StoreContext,
  { store, servers }: { readonly store: string; readonly servers: readonly ServerFacts[] },
): Promise<void> {
  const comparison = { eras: [random.hex(12), ''], noticed: '', isShared: true, servers } as const;
  if ((await examineMarker(run, store, context, comparison)) === null) return;
  const present = servers.map(({ runId }) => `${runId}:`);
  await run(scripts['server/retain'], [context.marker], [String(SERVER_KEPT_MS), ...present]);
}
