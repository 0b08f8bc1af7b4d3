/**
 * The witness of a primary of a Cluster. On a Cluster no script can read both a lease and the
 * marker: they lie in different slots, and mostly on different servers. So each primary has a key
 * of its own, in a slot that it serves, which says in which era it is. An acquire names that key,
 * and the script reads it: one client's finding, or a flush that took the witness along, stops the
 * grants of all clients at once.
 *
 * The marker records the name of the witness once it exists. From then on:
 *
 * - The witness names the era: it is confirmed.
 * - The witness is gone, or names another era: the server has lost data. A new era begins, which
 *   has no witness yet.
 * - A new era began while the witness exists, because a client noticed something else: the witness
 *   is removed before the next one is placed, so that no client is granted anything in the old era.
 * - The witness's slot has moved to another server: it is placed again, under another name, in the
 *   same era.
 *
 * A server without slots has no witness, and an acquire there presents no era.
 */
import type { Random } from '../../core/random.ts';
import type { BaseRuntime } from '../../core/runtime.ts';
import { type RunScript, scripts } from './scripts.ts';
import { RedirectionError } from './topology/redirection.ts';

/** Names tried until one has a slot on the server: enough for a server with a single slot. */
const MAX_NAMES = 200_000;
/** Slots tried until one is not moving to another server. */
const MAX_SLOTS = 5;

/** The slots that a server serves, as far as is known. */
export interface ServedSlots {
  readonly isEmpty: boolean;
  /** Whether the slot of a key is among them. */
  has(key: string): boolean;
}

/** How an examination reaches the marker, and the server that is examined. */
export interface Reach {
  readonly run: RunScript;
  /**
   * Sends one command to the server. A `RedirectionError`, or another error of the server, is a
   * value of the promise.
   */
  ask(command: readonly string[]): Promise<unknown>;
}

/** The names of witnesses that the marker records; '' for none. */
export interface WitnessNames {
  readonly recorded: string;
  /** Of an earlier era, and still to be removed. */
  readonly former: string;
}

/** `outdated`: the marker names another era by now. */
export type WitnessFinding = 'confirmed' | 'lost' | 'outdated';

export class WitnessState {
  readonly #random: Random;
  readonly #marker: string;
  readonly #served: ServedSlots;
  #name = '';

  constructor({ random }: Pick<BaseRuntime, 'random'>, marker: string, served: ServedSlots) {
    this.#random = random;
    this.#marker = marker;
    this.#served = served;
  }

  /** The key; '' if the server has none. */
  get name(): string {
    return this.#name;
  }

  /**
   * Reads the witness of an era under its recorded name. Places one if none is recorded or its slot
   * has moved.
   */
  async confirm(
    reach: Reach,
    { era, recorded, former, own }: WitnessNames & { era: string; own: string },
  ): Promise<WitnessFinding> {
    // The name is kept until the answer is known: an acquire that is sent meanwhile still presents
    // an era.
    if (recorded !== '') {
      const found = await answerOf(reach, ['GET', recorded]);
      if (found === era) return this.#confirmed(recorded);
      if (!(found instanceof RedirectionError)) return 'lost';
    }
    if (former !== '') await answerOf(reach, ['DEL', former]);
    const placed = await this.#place(reach, era);
    if (placed === '') return this.#confirmed('');
    const args = [own, era, recorded, placed];
    const kept = await reach.run(scripts['server/record-witness'], [this.#marker], args);
    if (kept === placed) return this.#confirmed(placed);
    // Another client was first, so the witness placed here is of no use.
    await answerOf(reach, ['DEL', placed]);
    return kept === '' ? 'outdated' : this.#confirmed(String(kept));
  }

  #confirmed(name: string): WitnessFinding {
    this.#name = name;
    return 'confirmed';
  }

  /** Returns the name; '' if no slot of the server accepts it. */
  async #place(reach: Reach, era: string): Promise<string> {
    for (let attempt = 0; attempt < MAX_SLOTS; attempt++) {
      const name = this.#pick();
      if (name === '') return '';
      const reply = await reach.ask(['SET', name, era]);
      if (reply instanceof RedirectionError) continue;
      // A server that is out of memory refuses writes but still renews leases: it is used without a
      // witness.
      return reply instanceof Error ? '' : name;
    }
    return '';
  }

  #pick(): string {
    if (this.#served.isEmpty) return '';
    const beginning = this.#random.hex(4);
    for (let i = 0; i < MAX_NAMES; i++) {
      const name = `${this.#marker}:witness:${beginning}${i}`;
      if (this.#served.has(name)) return name;
    }
    return '';
  }
}

async function answerOf(reach: Reach, command: readonly string[]): Promise<unknown> {
  const reply = await reach.ask(command);
  if (reply instanceof Error && !(reply instanceof RedirectionError)) throw reply;
  return reply;
}
