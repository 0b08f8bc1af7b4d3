/** Who is killed, and when: at the worst moments there are, just before and just after an effect was applied. */

/** `at` is the share of all effects that has been applied by then. */
const STRIKES = [
  { who: 'validate', when: 'after', at: 1 / 12 },
  { who: 'orchestrator', at: 3 / 12 },
  { who: 'process', when: 'before', at: 4 / 12 },
  { who: 'process', when: 'after', at: 6 / 12 },
  { who: 'orchestrator', at: 8 / 12 },
  { who: 'store', when: 'after', at: 9 / 12 },
  { who: 'store', when: 'before', at: 10 / 12 },
];

export class Chaos {
  #strikes;
  #isAlive;
  #kill;

  /** `kill(who, why)` does it, to those who are alive. */
  constructor(effects, { isAlive, kill }) {
    this.#strikes = STRIKES.map((strike) => ({ ...strike, at: Math.floor(strike.at * effects) }));
    this.#isAlive = isAlive;
    this.#kill = kill;
  }

  /** What becomes of an effect that `by` wants to have; nothing if it does not live to hear of it. */
  pass(by, applied, apply) {
    if (this.#due('orchestrator', applied) !== undefined)
      this.#kill('orchestrator', 'in the middle of everything');
    const strike = this.#due(by, applied);
    if (strike?.when === 'before') {
      this.#kill(by, 'just before its effect was applied');
      return undefined;
    }
    const outcome = apply();
    if (strike === undefined) return outcome;
    this.#kill(by, 'after its effect was applied, before it could say so');
    return undefined;
  }

  /** Takes the strike out of those to come, if there is one. */
  #due(who, applied) {
    // What a dead one had sent may come in yet.
    if (!this.#isAlive(who)) return undefined;
    const strike = this.#strikes.find((one) => one.who === who && one.at <= applied);
    this.#strikes = this.#strikes.filter((one) => one !== strike);
    return strike;
  }
}
