/**
 * What lies between processes and the server: connections that keep their order, take their time,
 * and break. A connection is a `Link` of the production store; what it carries is carried out by
 * the simulated server.
 *
 * A cut does not lose what was sent: the other side's system would send it again. It arrives when
 * the cut is over, or, if the connection was reset meanwhile, never. So a command may run long
 * after its sender has abandoned it.
 */
import type { Random } from '../../src/core/random.ts';
import type {
  Attempt,
  Deadline,
  Dialer,
  Link,
  MessageListener,
} from '../../src/store/redis/client/link.ts';
import { TOO_LATE, UnsentError } from '../../src/store/redis/client/socket-connection.ts';
import { type Reply, ReplyError } from '../../src/store/redis/client/wire.ts';
import { scripts } from '../../src/store/redis/scripts.ts';
import type { Counters } from './counters.ts';
import type { SimProcess } from './host.ts';
import type { Machine, Served } from './machine.ts';
import { PHASE, type Phase, type Timeline } from './timeline.ts';

/** A message takes this long at least, and mostly not much longer. */
const DELAY_LEAST_MS = 0.15;
const DELAY_USUAL_MS = 0.4;
/** One in so many takes up to this long. */
const TAIL_ONE_IN = 200;
const TAIL_MOST_MS = 60;

/** What was held up is sent again at last after this. */
const RESEND_MOST_MS = 20_000;

/** The way between one process and the servers: what is wrong with it just now. */
export class Path {
  readonly #random: Random;
  readonly links = new Set<SimLink>();
  slowMs = 0;
  /**
   * Something between the two repeats a share of the requests: each of these is carried out once
   * more, up to so long after it, and the second reply is dropped.
   */
  doubles: { readonly share: number; readonly withinMs: number } = { share: 0, withinMs: 0 };
  /** When the newest reply that a process here has read was given. */
  newestReplyMs = 0;
  /** The share of messages of these channels that get lost; none by default. */
  deafTo: { readonly channel: string; readonly share: number } = { channel: '', share: 0 };
  #isCutOut = false;
  #isCutBack = false;

  constructor(random: Random) {
    this.#random = random;
  }

  get isCutOut(): boolean {
    return this.#isCutOut;
  }

  get isCutBack(): boolean {
    return this.#isCutBack;
  }

  /** Nothing gets there, or back; it lies in between until that is over. */
  cut({ out, back }: { out: boolean; back: boolean }): void {
    this.#isCutOut = out;
    this.#isCutBack = back;
    for (const link of [...this.links]) link.go();
  }

  /** One of the connections that are open now, the n-th of them by a number in [0, 1). */
  linkAt(size: number): SimLink | undefined {
    const open = [...this.links].filter((link) => link.isOpen);
    return open[Math.floor(size * open.length)];
  }

  /** Every connection is reset. */
  breakOff(): void {
    for (const link of [...this.links]) link.breakOff();
  }

  /** A process at this end is gone: its system says so to the other end. */
  abandon(process: SimProcess): void {
    for (const link of [...this.links]) if (link.process === process) link.abandon();
  }

  /** A number in [0, 1) of this path's own. */
  chance(): number {
    return this.#random.next();
  }

  delayMs(): number {
    const random = this.#random;
    const isTail = random.next() * TAIL_ONE_IN < 1;
    const usualMs = DELAY_LEAST_MS - DELAY_USUAL_MS * Math.log(1 - random.next());
    return this.slowMs + (isTail ? random.next() * TAIL_MOST_MS : usualMs);
  }
}

const VERBS = new Map<string, string>();
for (const [name, { sha, source }] of Object.entries(scripts)) {
  VERBS.set(sha, name);
  VERBS.set(source, name);
}

/**
 * What a command is called here: a script by its name, such as `lease/acquire`, anything else by
 * its first word.
 */
export function verbOf([command = '', what = '']: readonly string[]): string {
  const isScript = command === 'EVALSHA' || command === 'EVAL';
  return isScript ? (VERBS.get(what) ?? command) : command;
}

interface Waiting {
  resolve(reply: Reply): void;
  reject(error: Error): void;
}

export interface NetworkParts {
  readonly timeline: Timeline;
  readonly process: SimProcess;
  readonly path: Path;
  readonly machine: Machine;
  readonly counters: Counters;
}

export function simDialer(parts: NetworkParts): Dialer {
  return {
    name: 'redis://sim',
    dial: (attempt) => dial(parts, attempt),
  };
}

function dial(parts: NetworkParts, attempt: Attempt): Promise<Link> {
  return new Promise((resolve, reject) => {
    if (parts.process.isDead) return;
    const link = new SimLink(parts, (why) => attempt.onEnd(why));
    attempt.signal.addEventListener('abort', link.destroy);
    link.open({
      resolve: () => {
        attempt.signal.removeEventListener('abort', link.destroy);
        resolve(link);
      },
      reject,
    });
  });
}

/** One direction of a connection: in order, each with its delay, held up while it is cut. */
class Wire {
  /** What is sent here is lost, and neither end hears of it. */
  isDead = false;
  slowMs = 0;
  readonly #parts: NetworkParts;
  readonly #phase: Phase;
  readonly #isCut: () => boolean;
  readonly #heldUp: (() => void)[] = [];
  #heldSinceMs = 0;
  #lastMs = 0;

  constructor(parts: NetworkParts, phase: Phase, isCut: () => boolean) {
    this.#parts = parts;
    this.#phase = phase;
    this.#isCut = isCut;
  }

  carry(fromMs: number, arrive: () => void): void {
    const { timeline, path } = this.#parts;
    if (this.isDead) return;
    this.#lastMs = Math.max(this.#lastMs, fromMs + path.delayMs() + this.slowMs);
    timeline.at(
      this.#lastMs,
      () => {
        if (this.isDead) return;
        if (this.#isCut() || this.#heldUp.length > 0) this.#holdUp(arrive);
        else arrive();
      },
      this.#phase,
    );
  }

  /**
   * The cut is over: what was held up arrives with the next attempt to send it. These have become
   * rarer the longer it lasted; so a connection that was made meanwhile may well be faster.
   */
  go(): void {
    const { timeline, path } = this.#parts;
    if (this.#isCut() || this.#heldUp.length === 0) return;
    const lastedMs = Math.min(timeline.nowMs - this.#heldSinceMs, RESEND_MOST_MS);
    const arriveAll = () => {
      if (!this.#isCut()) for (const arrive of this.#heldUp.splice(0)) arrive();
    };
    timeline.at(timeline.nowMs + path.chance() * lastedMs, arriveAll, this.#phase);
  }

  #holdUp(arrive: () => void): void {
    if (this.#heldUp.length === 0) this.#heldSinceMs = this.#parts.timeline.nowMs;
    this.#heldUp.push(arrive);
  }
}

export class SimLink implements Link, Served {
  readonly #parts: NetworkParts;
  readonly #machine: Machine;
  readonly #onEnd: (why: string) => void;
  readonly #there: Wire;
  readonly #back: Wire;
  readonly #waiting: Waiting[] = [];
  readonly #listeners = new Map<string, MessageListener>();
  #end: Error | null = null;
  /** The server's side: whether it still has this connection. */
  #isServed = false;

  constructor(parts: NetworkParts, onEnd: (why: string) => void) {
    const { path, machine } = parts;
    this.#parts = parts;
    this.#machine = machine;
    this.#onEnd = onEnd;
    path.links.add(this);
    this.#there = new Wire(parts, PHASE.outside, () => path.isCutOut || machine.isCutOff);
    this.#back = new Wire(parts, PHASE.input, () => path.isCutBack || machine.isCutOff);
  }

  get process(): SimProcess {
    return this.#parts.process;
  }

  /** Whether the server has taken it, and its client still has it. */
  get isOpen(): boolean {
    return this.#isServed && this.#end === null;
  }

  /**
   * From now on it accepts what is written and answers nothing. Its requests are lost, or are
   * carried out. It is so for good: the other connections of its process are well.
   */
  goSilent(lost: 'requests' | 'replies'): void {
    this.#there.isDead = lost === 'requests';
    this.#back.isDead = true;
  }

  /** Its replies take this much longer than those of other connections. */
  delayReplies(ms: number): void {
    this.#back.slowMs = ms;
  }

  /** Tells when the server has taken the connection. */
  open(waiting: Waiting): void {
    this.#waiting.push(waiting);
    this.#carry(() => {
      if (this.#machine.isDown) {
        this.#reset('connection refused');
        return;
      }
      this.#isServed = true;
      this.#machine.accept(this);
      this.#answer(null);
    });
  }

  send(args: readonly string[], deadline?: Deadline): Promise<unknown> {
    const { process } = this.#parts;
    // The process may freeze here, just before it writes.
    if (process.trap !== null) process.reach(verbOf(args));
    return new Promise((resolve, reject) => {
      if (this.#end !== null || deadline?.isOver()) {
        reject(new UnsentError(this.#end?.message ?? TOO_LATE));
        return;
      }
      if (process.isDead) return;
      this.#waiting.push({ resolve, reject });
      this.#carry(() => {
        if (this.#isServed) this.#serve(args);
        else this.#reset('connection reset by peer');
      });
    });
  }

  async subscribe(channel: string, listener: MessageListener): Promise<void> {
    this.#listeners.set(channel, listener);
    await this.send(['SUBSCRIBE', channel]);
  }

  async unsubscribe(channel: string): Promise<void> {
    this.#listeners.delete(channel);
    await this.send(['UNSUBSCRIBE', channel]);
  }

  /** The client's side is over at once; the server reads to the end of what was sent. */
  readonly destroy = (): void => {
    if (this.#end !== null) return;
    this.#fail(new Error('the connection was given up'));
    this.#carry(() => this.#unserve());
  };

  /** As above, for a process that is not there any more to hear of it. */
  abandon(): void {
    this.#end = new Error('the process is gone');
    this.#waiting.length = 0;
    this.#carry(() => this.#unserve());
  }

  /** A message of a channel. */
  push(reply: Reply): void {
    const { path, counters } = this.#parts;
    const { channel, share } = path.deafTo;
    const isLost =
      share > 0 && path.chance() < share && String((reply as string[])[1]).includes(channel);
    if (isLost) counters.add('hint lost');
    else this.#answer(reply);
  }

  /**
   * The server is gone, or has cut the connection; the client hears of it if anything gets through.
   */
  cut(why: string): void {
    this.#isServed = false;
    this.#reset(why);
  }

  /**
   * Something between the two resets the connection: both sides hear of it at once. Data on its
   * way is lost.
   */
  breakOff(): void {
    this.#unserve();
    this.#hear(() => this.#ended('connection reset'));
  }

  /** A cut is over. */
  go(): void {
    this.#there.go();
    this.#back.go();
  }

  #serve(args: readonly string[]): void {
    this.#repeat(args);
    if (this.#back.isDead) this.#parts.counters.add('carried out unanswered');
    this.#machine.serve(this, args, (reply) => {
      // Its sender has abandoned it, and does not know.
      if (this.#end !== null) this.#parts.counters.add('carried out late');
      this.#answer(reply);
    });
  }

  /** Only scripts: what a connection says of itself has no second one to say it. */
  #repeat(args: readonly string[]): void {
    const { path, timeline, counters, process } = this.#parts;
    const { share, withinMs } = path.doubles;
    if (share === 0 || !args[0]?.startsWith('EVAL') || path.chance() >= share) return;
    const again = () => {
      if (this.#machine.isDown || this.#machine.isFrozen) return;
      counters.add('carried out twice');
      this.#machine.repeat(args, process);
    };
    timeline.at(timeline.nowMs + path.chance() * withinMs, again, PHASE.outside);
  }

  #carry(arrive: () => void): void {
    this.#there.carry(this.#parts.process.trueMs, arrive);
  }

  #answer(reply: Reply): void {
    const { nowMs } = this.#parts.timeline;
    this.#back.carry(nowMs, () => this.#hear(() => this.#take(reply, nowMs)));
  }

  #reset(why: string): void {
    this.#back.carry(this.#parts.timeline.nowMs, () => this.#hear(() => this.#ended(why)));
  }

  #hear(run: () => void): void {
    this.#parts.process.deliver(run);
  }

  #unserve(): void {
    this.#isServed = false;
    this.#machine.drop(this);
    if (this.#end !== null) this.#parts.path.links.delete(this);
  }

  #ended(why: string): void {
    if (this.#end !== null) return;
    this.#fail(new Error(why));
    if (!this.#isServed) this.#parts.path.links.delete(this);
    this.#onEnd(why);
  }

  #take(reply: Reply, givenMs: number): void {
    const { path, counters } = this.#parts;
    if (givenMs < path.newestReplyMs && this.#back.slowMs > 0) counters.add('replies reordered');
    path.newestReplyMs = Math.max(path.newestReplyMs, givenMs);
    if (this.#end !== null) {
      this.#parts.counters.add('answer lost');
      return;
    }
    if (Array.isArray(reply) && reply[0] === 'message') {
      const [, channel, message] = reply as [string, string, string];
      this.#listeners.get(channel)?.(message, channel);
      return;
    }
    const waiting = this.#waiting.shift();
    if (waiting === undefined) throw new Error('an answer came that nobody had asked for');
    if (reply instanceof ReplyError) waiting.reject(reply);
    else waiting.resolve(reply);
  }

  #fail(error: Error): void {
    this.#end = error;
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }
}
