/**
 * The witness of a primary of a Cluster. No script can see both a lease and the marker there, for they lie in different
 * slots, and mostly on different servers. So each primary has a key of its own, in a slot that it serves, which says in
 * which era it is. Acquire names that key, and the script reads it on the spot: one client's finding, or a flush that took
 * the witness along, stops the grants of all clients at once.
 *
 * The marker records the name of the witness, once it is there. From then on:
 *
 * - The witness names the era: all is well.
 * - It is gone, or names another era: the server has lost data, and a new era begins, which has no witness yet.
 * - A new era began although it still stands, because a client noticed something else: it is removed before the next one is
 *   placed, so that no client is granted anything in the old era.
 * - Its slot has been moved to another server: it is placed anew, under another name, in the same era.
 *
 * A server without slots has no witness, and an acquire there presents no era.
 */
import type { Random } from '../../core/random.ts';
import { type RunScript, scripts } from './scripts.ts';
import { Redirection } from './topology/redirection.ts';

/** Names that are tried until one has a slot on the server: enough for one that serves a single slot. */
const MOST_NAMES = 200_000;
/** Slots that are tried until one is not on its way to another server. */
const MOST_SLOTS = 5;

/** The slots that a server serves, as far as is known. */
export interface ServedSlots {
  readonly isEmpty: boolean;
  /** Whether the slot of a key is among them. */
  has(key: string): boolean;
}

export interface WitnessParts {
  readonly marker: string;
  readonly random: Random;
  readonly served: ServedSlots;
}

/** How an examination reaches the marker, and the server that is examined. */
export interface Reach {
  readonly run: RunScript;
  /** Sends one command to the server. A redirection, or another error of the server, is given as a value. */
  ask(command: readonly string[]): Promise<unknown>;
}

/** The names of witnesses that the marker records; '' for none. */
export interface WitnessNames {
  readonly recorded: string;
  /** Of an earlier era, and still to be removed. */
  readonly former: string;
}

/** What a look at a witness finds: it stands, the server has lost it, or the marker names another era by now. */
export type Standing = 'stands' | 'lost' | 'outdated';

export class Witness {
  readonly #parts: WitnessParts;
  #name = '';

  constructor(parts: WitnessParts) {
    this.#parts = parts;
  }

  /** The key; '' where the server has none. */
  get name(): string {
    return this.#name;
  }

  /** Looks for the witness of an era, under the name on record. Places it where none is on record or its slot has gone. */
  async confirm(
    reach: Reach,
    { era, recorded, former, own }: WitnessNames & { era: string; own: string },
  ): Promise<Standing> {
    // The name stays as it was until the answer is known: an acquire that is sent meanwhile still presents an era.
    if (recorded !== '') {
      const found = await said(reach, ['GET', recorded]);
      if (found === era) return this.#stands(recorded);
      if (!(found instanceof Redirection)) return 'lost';
    }
    if (former !== '') await said(reach, ['DEL', former]);
    const placed = await this.#place(reach, era);
    if (placed === '') return this.#stands('');
    const args = [own, era, recorded, placed];
    const kept = await reach.run(scripts['server/record-witness'], [this.#parts.marker], args);
    if (kept === placed) return this.#stands(placed);
    // Another client was first. What we have placed is nobody's now.
    await said(reach, ['DEL', placed]);
    return kept === '' ? 'outdated' : this.#stands(String(kept));
  }

  #stands(name: string): Standing {
    this.#name = name;
    return 'stands';
  }

  /** Gives the name; '' where no slot of the server takes it. */
  async #place(reach: Reach, era: string): Promise<string> {
    for (let attempt = 0; attempt < MOST_SLOTS; attempt++) {
      const name = this.#pick();
      if (name === '') return '';
      const reply = await reach.ask(['SET', name, era]);
      // A server that takes no writes, because it is out of memory, still renews leases: it is used without a witness.
      if (reply instanceof Error) return '';
      if (!(reply instanceof Redirection)) return name;
    }
    return '';
  }

  #pick(): string {
    const { marker, random, served } = this.#parts;
    if (served.isEmpty) return '';
    const beginning = random.hex(4);
    for (let i = 0; i < MOST_NAMES; i++) {
      const name = `${marker}:witness:${beginning}${i}`;
      if (served.has(name)) return name;
    }
    return '';
  }
}

async function said(reach: Reach, command: readonly string[]): Promise<unknown> {
  const reply = await reach.ask(command);
  if (reply instanceof Error) throw reply;
  return reply;
}
