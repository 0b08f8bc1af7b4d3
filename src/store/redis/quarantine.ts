/**
 * A Redis that was restarted, failed over or flushed may have forgotten grants whose holders still act. Until the last of
 * those must have expired it makes no new grant; renewals continue, and holders put back what vanished. That takes as
 * long as the bound of the keyspace (`../keyspaces.ts`), which every client knows without the store.
 *
 * A marker in the store says which server process granted last (`run`, `replication`), since when it may have forgotten
 * (`since`), and the bounds. Each new connection examines it before the first acquire, and so does a look every few
 * seconds. An examination that finds a difference begins a new *era*. Acquire carries the era that its sender has
 * examined, and the script grants nothing if the store has another one. So one client's finding, or a flush that took
 * the marker along, stops all of them.
 *
 * A store without a marker counts from the start of its server process. Nothing else proves that no holder exists: a server that is
 * empty and was just started is either new, or was restarted without its data while holders act on leases from before.
 *
 * A client that only looks makes no marker (`mayCreate`). It leaves the store as it is, and the first client that takes leases finds it so.
 *
 * An address can also lead back to an earlier state of the data: a failover that is undone, a backup that is loaded. It
 * shows by an era that this client has left before, or by a count of looks that is lower than it was.
 *
 * Not covered: a flush, or an address that leads back, that no running client has noticed yet; a server clock that is set
 * forward during a quarantine. On a Cluster every primary is examined like this, with fields of its own in one marker,
 * and has a witness (`witness.ts`) that tells its era to scripts that cannot see the marker.
 */
import type { Clock } from '../../core/clock.ts';
import { StoreUnreachableError, StoreUnsuitableError } from '../../core/errors.ts';
import type { Emitter } from '../../core/events.ts';
import type { Random } from '../../core/random.ts';
import {
  boundsProblem,
  DEFAULT_MAX_TTLS,
  KEYSPACE_NAMES,
  type Keyspace,
  type MaxTtls,
  QUARANTINE_MARGIN_MS,
} from '../port/keyspaces.ts';
import { QuarantineNotices } from '../quarantine-notices.ts';
import type { ServerFacts } from './examination.ts';
import { type RunScript, scripts } from './scripts.ts';
import { type Reach, type ServedSlots, Witness, type WitnessNames } from './witness.ts';

/** How long a Cluster's marker remembers a server that has left it. */
const SERVER_KEPT_MS = 3_600_000;
/** Eras that a client has left and would recognise. Older ones are forgotten first. */
const MOST_ERAS = 1_000;

/** Why a client knows that the store has forgotten, although the marker does not say so. */
export const VANISHED = 'a lease vanished under its holder';
const LED_BACK = 'an earlier state of its data is back';
const WITNESS_LOST = 'its witness is gone: it was flushed';
/** Looks at a witness that other clients change at the same time, before it is done without. */
const MOST_LOOKS = 3;

/** What examinations have taught about a store. It outlives connections, so that a vanished marker is noticed. */
export class RememberedStore {
  origin = '';
  looks = 0;
  /** The server process that was examined last; '' on a Cluster. */
  runId = '';
  /**
   * The bounds of the store when it refused this client for having others. Leases as long as these may be held, so the
   * client may not put its own, shorter bounds into a store that loses its marker later.
   */
  refusedFor: readonly (string | null)[] | null = null;
  readonly #left = new Set<string>();

  leave(era: string): void {
    if (era === '') return;
    this.#left.add(era);
    for (const oldest of this.#left) {
      if (this.#left.size <= MOST_ERAS) break;
      this.#left.delete(oldest);
    }
  }

  hasLeft(era: string): boolean {
    return this.#left.has(era);
  }
}

export interface QuarantineOptions {
  readonly mode: 'on' | 'off';
  readonly store: string;
  readonly marker: string;
  /** Null for an observer, which is granted nothing. */
  readonly maxTtls: MaxTtls | null;
  /** False: a store without a marker is left without one. */
  readonly mayCreate: boolean;
  readonly remembered: RememberedStore;
  /** On a Cluster, where several servers share the marker, each with fields of its own: the slots of this one. */
  readonly served?: ServedSlots;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
}

export class Quarantine {
  readonly #options: QuarantineOptions;
  readonly #witness: Witness | null;
  #era = '';
  #forgotAtMs = 0;
  #server: ServerFacts | null = null;
  readonly #notices: QuarantineNotices;

  constructor(options: QuarantineOptions) {
    this.#options = options;
    const { served } = options;
    this.#witness = served === undefined ? null : new Witness({ ...options, served });
    this.#notices = new QuarantineNotices(options, (keyspace) => this.leftMs(keyspace));
  }

  /** What an acquire has to present: the era examined, or '' where it is not asked for. */
  get era(): string {
    if (this.#options.mode === 'off') return '';
    if (this.#witness === null) return this.#era;
    return this.#witness.name === '' ? '' : `${this.#era} ${this.#witness.name}`;
  }

  /**
   * The era, and for how long yet no new grants are made in it: what is handed over in an era may be claimed in it. Also once that time is
   * over here, for it may last longer for the successor, whose host has slept. '' where quarantine is off.
   */
  get handover(): { readonly era: string; readonly leftMs: number } {
    const { mode, maxTtls } = this.#options;
    if (mode === 'off' || maxTtls === null) return { era: '', leftMs: 0 };
    const leftMs = Math.max(...KEYSPACE_NAMES.map((keyspace) => this.leftMs(keyspace)));
    return { era: this.#era, leftMs: Math.ceil(leftMs) };
  }

  /** What a holder presents to put back what the store has forgotten, record and all: '' where that is not allowed. */
  get forgetting(): string {
    if (this.#options.mode === 'off') return '';
    return this.era === '' ? '*' : this.era;
  }

  /** Examines the server behind a new connection, or one that may have changed under its connection. */
  async examine(reach: Reach, server: ServerFacts): Promise<void> {
    this.#server = server;
    await this.#look(reach, server, '');
  }

  /** Again on the same connection: another era was found in the store, or `why` says what this client has noticed. */
  async reexamine(reach: Reach, why = ''): Promise<void> {
    if (this.#server !== null) await this.#look(reach, this.#server, why);
  }

  /** How long no new lease of a keyspace may be granted yet; 0 if it may be. */
  leftMs(keyspace: Keyspace): number {
    const { clock, maxTtls, mode } = this.#options;
    if (mode === 'off') return 0;
    if (maxTtls === null) return Number.POSITIVE_INFINITY;
    const untilMs = this.#forgotAtMs + maxTtls[keyspace] + QUARANTINE_MARGIN_MS;
    return Math.max(0, untilMs - clock.monotonicMs());
  }

  /** The same, for a client that wants a lease there: it is told of the wait. */
  ask(keyspace: Keyspace): number {
    return this.#notices.ask(keyspace);
  }

  async #look(reach: Reach, server: ServerFacts, why: string): Promise<void> {
    const witness = this.#witness;
    let noticed = why;
    for (let look = 0; look < MOST_LOOKS; look++) {
      const names = await this.#compare(reach.run, server, noticed);
      if (witness === null || names === null) return;
      const facts = { ...names, era: this.#era, own: `${server.runId}:` };
      const standing = await witness.confirm(reach, facts);
      if (standing === 'stands') return;
      noticed = standing === 'lost' ? WITNESS_LOST : '';
    }
  }

  /** Gives the names on record of the server's witnesses; null if the store has no marker and is to stay without. */
  async #compare(run: RunScript, server: ServerFacts, why: string): Promise<WitnessNames | null> {
    const { clock, marker, maxTtls, mayCreate, random, remembered } = this.#options;
    const isShared = this.#witness !== null;
    const newEra = random.hex(12);
    const args = [newEra, this.#era, why];
    const verdict = await examineMarker(run, marker, {
      ...{ args, remembered, maxTtls, mayCreate, isShared },
      ...{ servers: [server], store: this.#options.store },
    });
    if (verdict === null) return null;
    const [era, forgotMsAgo, found, recorded, former] = verdict;
    const names = { recorded, former };
    // Measured from the answer, later than the store meant: too long a wait is safe, too short is not.
    const forgotAtMs = clock.monotonicMs() - forgotMsAgo;
    if (found === '' && remembered.hasLeft(era)) {
      remembered.leave(this.#era);
      this.#era = era;
      return this.#compare(run, server, LED_BACK);
    }
    if (era === this.#era) return names;
    remembered.leave(this.#era);
    this.#era = era;
    // Within an era the first answer stands: the server's clock may be set at any time, ours only goes forward.
    this.#forgotAtMs = forgotAtMs;
    if (era === newEra && found !== FIRST_USE) {
      const { events, store } = this.#options;
      events.emit('store.forgot', { store, why: found });
    }
    this.#notices.begin();
    return names;
  }
}

/** As `lua/server/examine.lua` says it. */
const FIRST_USE = 'first use';

type Verdict = [era: string, forgotMsAgo: number, why: string, witness: string, former: string];
type ExamineReply = [string, number, Verdict[]] | ['BOUNDS', (string | null)[]] | ['UNUSED'];

interface Look {
  /** A new era, the era this client is in, and what it has noticed. */
  readonly args: readonly string[];
  readonly remembered: RememberedStore;
  readonly maxTtls: MaxTtls | null;
  readonly mayCreate: boolean;
  readonly isShared: boolean;
  readonly servers: readonly ServerFacts[];
  readonly store: string;
}

/**
 * Compares servers with the marker; gives the verdict on the first. Null if an observer has found no marker. Throws if the store has
 * other bounds than ours, or if there is no marker, we need one and may not make it.
 */
async function examineMarker(run: RunScript, marker: string, look: Look): Promise<Verdict | null> {
  const { remembered, maxTtls, mayCreate, isShared, store } = look;
  const isRefused = remembered.refusedFor !== null;
  const reply = (await run(
    scripts['server/examine'],
    [marker],
    [
      ...look.args,
      isRefused ? '' : remembered.origin,
      // On a Cluster the marker's server may lose looks in a failover that the others take no part in.
      isShared || isRefused ? '0' : String(remembered.looks),
      ...KEYSPACE_NAMES.map((name) => (maxTtls === null ? '' : String(maxTtls[name]))),
      mayCreate && !isRefused ? '1' : '',
      remembered.runId,
      ...look.servers.flatMap(({ runId, replicationId, upMs }) => {
        return [isShared ? `${runId}:` : '', runId, replicationId, String(upMs)];
      }),
    ],
  )) as ExamineReply;
  if (reply[0] === 'UNUSED') {
    if (maxTtls === null) return null;
    if (remembered.refusedFor !== null) throw otherBounds(look, remembered.refusedFor);
    const why = 'no process has used this store yet, and { create: false } does not make one';
    throw new StoreUnreachableError({ store, operation: 'connect', why });
  }
  if (reply[0] === 'BOUNDS') {
    remembered.refusedFor = reply[1] as (string | null)[];
    throw otherBounds(look, remembered.refusedFor);
  }
  remembered.refusedFor = null;
  const [origin, looks, [verdict]] = reply as [string, number, [Verdict]];
  remembered.origin = origin;
  remembered.looks = looks;
  remembered.runId = isShared ? '' : (look.servers[0]?.runId ?? '');
  return verdict;
}

function otherBounds(
  { maxTtls, store }: Look,
  recorded: readonly (string | null)[],
): StoreUnsuitableError {
  const known = KEYSPACE_NAMES.flatMap((name, i) => {
    const ms = recorded[i];
    return ms === null ? [] : [[name, Number(ms)] as const];
  });
  const problem = boundsProblem(Object.fromEntries(known), maxTtls ?? DEFAULT_MAX_TTLS);
  return new StoreUnsuitableError({ store, problems: problem === null ? [] : [problem] });
}

/**
 * Makes the marker of a Cluster that has never been used, with all of its servers at once: one that the marker has not
 * heard of when it comes later counts as having forgotten. A client that may not make the marker leaves such a Cluster as it is.
 */
export async function createMarker(
  run: RunScript,
  options: Pick<QuarantineOptions, 'marker' | 'maxTtls' | 'mayCreate' | 'remembered' | 'random'> & {
    readonly store: string;
  },
  servers: readonly ServerFacts[],
): Promise<void> {
  const args = [options.random.hex(12), '', ''];
  const look = { ...options, args, isShared: true, servers };
  if ((await examineMarker(run, options.marker, look)) === null) return;
  const present = servers.map(({ runId }) => `${runId}:`);
  await run(scripts['server/retain'], [options.marker], [String(SERVER_KEPT_MS), ...present]);
}
