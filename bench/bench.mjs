import { OURS } from './contenders.mjs';
import { ContenderProcess } from './contender-process.mjs';
import { monotonicMs } from './statistics.mjs';

/** However slow the machine is, a median needs this many rounds. */
const LEAST_ROUNDS = 3;

/** What every measure works with: one Redis, the processes of the contenders, and the rounds between them. */
export class Bench {
  #redis;
  #progress;
  #crew = new Map();

  constructor({ redis, plan, progress }) {
    this.#redis = redis;
    this.#progress = progress;
    this.plan = plan;
    /** Contenders that could not be opened here, and why. */
    this.absent = new Map();
  }

  get redis() {
    return this.#redis;
  }

  progress(text) {
    this.#progress(text);
  }

  /** A new process for a contender; the caller stops it. */
  start(contender) {
    return new ContenderProcess(contender, this.#redis.url);
  }

  /** The processes that stay for all measures, opened at first use. Peers that do not open here are left out, and noted. */
  async crew(contenders) {
    const opened = [];
    for (const contender of contenders) {
      const id = `${contender.name} ${contender.client}`;
      if (!this.#crew.has(id)) this.#crew.set(id, await this.#open(contender));
      const member = this.#crew.get(id);
      if (member !== null) opened.push(member);
    }
    return opened;
  }

  /**
   * Has each member run once per round, in an order that moves on by one from round to round, so that whatever else the
   * machine does hits all of them alike. The first round warms up and is not counted. Per member, the results.
   */
  async race(what, members, run) {
    const { rounds, budgetMs } = this.plan;
    const results = new Map(members.map((member) => [member, []]));
    const startMs = monotonicMs();
    for (let round = 0; round <= rounds; round++) {
      if (round > LEAST_ROUNDS && monotonicMs() - startMs > budgetMs) break;
      this.progress(`${what}: ${round === 0 ? 'warm-up' : `round ${round} of ${rounds}`}`);
      for (let i = 0; i < members.length; i++) {
        const member = members[(i + round) % members.length];
        const result = await run(member);
        if (round > 0) results.get(member).push(result);
      }
    }
    return results;
  }

  async stop() {
    await Promise.all([...this.#crew.values()].map((member) => member?.stop()));
    this.#crew.clear();
  }

  async #open(contender) {
    const member = this.start(contender);
    try {
      await member.ask('open');
      return member;
    } catch (error) {
      await member.stop();
      if (contender.name === OURS.name) throw error;
      this.absent.set(contender.name, error.message.split('\n')[0]);
      return null;
    }
  }
}
