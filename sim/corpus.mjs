/**
 * The worlds that together reach the most: seeds, which are run first from then on. What a world reaches are interesting
 * states, pairs of these in one world, and pairs of values that its seed drew.
 */
import { MIXED_STATES, PAIR } from '../dist/testing/sim/index.js';

/** So many seeds are kept at most. */
export const MOST_SEEDS = 200;

/** The names of all that a world reached. */
export function featuresOf(counts) {
  const names = new Set(counts.filter(([, count]) => count > 0).map(([name]) => name));
  const states = MIXED_STATES.filter((state) => names.has(state));
  const pairs = states.flatMap((a, i) => states.slice(i + 1).map((b) => `${a} with ${b}`));
  return [...states, ...pairs, ...[...names].filter((name) => name.startsWith(PAIR))];
}

/** What a run has reached, and which of its worlds are worth to be kept. */
export class Corpus {
  #numbers = new Map();
  #worlds = [];

  add(options, features) {
    const reached = features.map((name) => {
      if (!this.#numbers.has(name)) this.#numbers.set(name, this.#numbers.size);
      return this.#numbers.get(name);
    });
    this.#worlds.push({ options, reached: Uint32Array.from(reached) });
  }

  /** How many pairs of interesting states were in one world. */
  get statePairs() {
    const isOfStates = (name) => name.includes(' with ') && !name.startsWith(PAIR);
    return [...this.#numbers.keys()].filter(isOfStates).length;
  }

  /** The fewest worlds, about, that reach all of it: each next one adds the most; at most so many. */
  kept(isFit, most = MOST_SEEDS) {
    const seen = new Uint8Array(this.#numbers.size);
    const gainOf = ({ reached }) => reached.reduce((sum, at) => sum + (seen[at] === 0 ? 1 : 0), 0);
    // A gain can only become less: the first one that is current and not less than the next wins.
    const fit = this.#worlds.filter(({ options }) => isFit(options));
    const left = fit.map((world) => ({ world, gain: world.reached.length }));
    const isBefore = (a, b) => b.gain - a.gain || a.world.options.seed - b.world.options.seed;
    const kept = [];
    left.sort(isBefore);
    while (kept.length < most && left.length > 0) {
      const [first] = left;
      first.gain = gainOf(first.world);
      if (left.length > 1 && first.gain < left[1].gain) {
        left.sort(isBefore);
        continue;
      }
      left.shift();
      if (first.gain === 0) break;
      for (const at of first.world.reached) seen[at] = 1;
      kept.push(first.world.options);
    }
    return kept;
  }
}
