/**
 * The machine that a simulated Redis runs on: it may be down, frozen with commands lying in its
 * sockets, cut off from everybody, and its clock may be wrong.
 */
import type { Random } from '../../src/core/random.ts';
import type { Reply } from '../../src/store/redis/client/wire.ts';
import { type SimClient, SimRedis } from '../sim-redis/server.ts';
import { SimHost, type SimProcess } from './host.ts';
import type { Timeline } from './timeline.ts';

/** A connection, as its server sees it. */
export interface Served {
  /** At its other end. */
  readonly process: SimProcess;
  push(reply: Reply): void;
  cut(why: string): void;
  go(): void;
}

/** Told of every command that was carried out, in their order, and whose it was. */
export type Witness = (args: readonly string[], reply: Reply, by: SimProcess) => void;

export class Machine {
  readonly redis: SimRedis;
  readonly host: SimHost;
  isDown = false;
  readonly #timeline: Timeline;
  readonly #witness: Witness;
  readonly #clients = new Map<Served, SimClient>();
  /** Commands that lie in its sockets while it is frozen. */
  readonly #unread: (() => void)[] = [];
  #isCutOff = false;
  #thawMs = 0;

  constructor(
    timeline: Timeline,
    random: Random,
    witness: Witness,
    clock: { rate?: number; wallOffsetMs?: number } | SimHost = {},
  ) {
    this.#timeline = timeline;
    this.#witness = witness;
    this.host = clock instanceof SimHost ? clock : new SimHost(timeline, clock);
    this.redis = new SimRedis({
      wallMs: () => this.host.wallMs(timeline.nowMs),
      nowMs: () => timeline.nowMs,
      random,
    });
  }

  /** Nobody reaches it, and it reaches nobody. */
  get isCutOff(): boolean {
    return this.#isCutOff;
  }

  set isCutOff(isCutOff: boolean) {
    this.#isCutOff = isCutOff;
    if (!isCutOff) for (const served of [...this.#clients.keys()]) served.go();
  }

  get isFrozen(): boolean {
    return this.#timeline.nowMs < this.#thawMs;
  }

  get frozenForMs(): number {
    return Math.max(0, this.#thawMs - this.#timeline.nowMs);
  }

  accept(served: Served): void {
    this.#clients.set(
      served,
      this.redis.connect((reply) => served.push(reply)),
    );
  }

  drop(served: Served): void {
    const client = this.#clients.get(served);
    if (client === undefined) return;
    // A connection that ended while commands lie unread is read to its end first.
    this.#whenAwake(() => {
      this.#clients.delete(served);
      this.redis.disconnect(client);
    });
  }

  serve(served: Served, args: readonly string[], answer: (reply: Reply) => void): void {
    this.#whenAwake(() => {
      const client = this.#clients.get(served);
      if (client === undefined) return;
      const reply = this.redis.execute(client, args);
      this.#witness(args, reply, served.process);
      answer(reply);
    });
  }

  /** Carries out once more what a process has sent, without telling it. */
  repeat(args: readonly string[], by: SimProcess): void {
    const reply = this.peek(args);
    this.#witness(args, reply, by);
  }

  /** Reads at once, without a connection. */
  peek(args: readonly string[]): Reply {
    const client = this.redis.connect(() => {});
    const reply = this.redis.execute(client, args);
    this.redis.disconnect(client);
    return reply;
  }

  /**
   * Stopped, or busy with something else: it answers nobody, and carries out afterwards what has
   * arrived meanwhile.
   */
  freeze(ms: number): void {
    this.#thawMs = Math.max(this.#thawMs, this.#timeline.nowMs + ms);
    this.#timeline.at(this.#thawMs, () => this.#thaw());
  }

  /** Its process ends, and all its connections; what lies unread is lost. */
  goDown(): void {
    this.isDown = true;
    this.#thawMs = 0;
    this.#unread.length = 0;
    this.cutAll('connection reset by peer');
  }

  cutAll(why: string): void {
    for (const [served, client] of [...this.#clients]) {
      this.redis.disconnect(client);
      served.cut(why);
    }
    this.#clients.clear();
  }

  #whenAwake(run: () => void): void {
    if (this.isFrozen || this.#unread.length > 0) this.#unread.push(run);
    else run();
  }

  #thaw(): void {
    if (this.isFrozen) return;
    for (const run of this.#unread.splice(0)) run();
  }
}
