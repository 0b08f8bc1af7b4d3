import { ContenderProcess } from './contender-process.mjs';
import { OURS } from './contenders.mjs';
import { pin } from './placement.mjs';
import { monotonicMs } from './statistics.mjs';

/** What a process does before it is measured: code is compiled for speed only after it has run for a while. */
const WARM_UP = { callers: 64, count: 24_576 };
/** However slow the machine is, a median needs this many rounds. */
const LEAST_ROUNDS = 3;

/** What every measure works with: one Redis, the processes of the contenders, and the rounds between them. */
export class Bench {
  #crew = new Map();

  /**
   * `progress(what, detail)` reports progress; `plan` says how much is measured. With a `placement`, contenders and
   * Redis stay on their processors.
   */
  constructor({ redis, plan, progress, placement = null }) {
    this.redis = redis;
    this.placement = placement;
    if (placement !== null) pin(redis.pid, placement.server);
    this.plan = plan;
    this.progress = progress;
    /** Peers that cannot be opened here, and why. */
    this.absent = new Map();
  }

  /** A new process with the contender open in it, which the caller stops; null for a peer that does not open here. */
  async open(contender) {
    const opened = new ContenderProcess(contender, this.redis.url);
    try {
      if (this.placement !== null) pin(opened.pid, this.placement.client);
      await opened.ask('open');
      return opened;
    } catch (error) {
      await opened.stop();
      if (contender.name === OURS.name) throw error;
      this.absent.set(contender.name, error.message.split('\n')[0]);
      return null;
    }
  }

  /** The processes that stay from one measure to the next, warmed up, of the contenders that open here. */
  async crew(contenders) {
    const members = [];
    for (const contender of contenders) {
      const id = `${contender.name} ${contender.client}`;
      if (!this.#crew.has(id)) {
        this.progress('warming up', id);
        const opened = await this.open(contender);
        this.#crew.set(id, opened);
        await opened?.ask('pairs', WARM_UP);
      }
      const member = this.#crew.get(id);
      if (member !== null) members.push(member);
    }
    return members;
  }

  /**
   * Has each member run once per round, in an order that moves on by one from round to round, so that whatever else the
   * machine does hits all of them alike. The first round does not count. Gives the results of each member.
   */
  async race(what, members, run, { rounds, budgetMs } = this.plan) {
    const results = new Map(members.map((member) => [member, []]));
    const startMs = monotonicMs();
    for (let round = 0; round <= rounds; round++) {
      if (round > LEAST_ROUNDS && monotonicMs() - startMs > budgetMs) break;
      this.progress(what, `round ${round} of ${rounds}`);
      for (let i = 0; i < members.length; i++) {
        const member = members[(i + round) % members.length];
        const result = await run(member);
        if (round > 0) results.get(member).push(result);
      }
    }
    return results;
  }

  /** Has Redis share the processor of the contenders while `work` runs. */
  async onOneProcessor(work) {
    const { pid } = this.redis;
    const { client, server } = this.placement;
    pin(pid, client);
    try {
      return await work();
    } finally {
      pin(pid, server);
    }
  }

  async stop() {
    await Promise.all([...this.#crew.values()].map((member) => member?.stop()));
    this.#crew.clear();
  }
}
