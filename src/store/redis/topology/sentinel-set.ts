/**
 * Finds the primary through sentinels. They are asked before every connection, and while there is
 * one: a primary that was cut off and replaced would otherwise keep answering this client alone.
 *
 * A sentinel that was cut off itself has an old opinion. Opinions are numbered (`config-epoch`),
 * and one that is older than the newest received is ignored.
 */
import { type Clock, timeLeft } from '../../../core/clock.ts';
import { StoreUnreachableError } from '../../../core/errors.ts';
import type { RedisAddress } from '../client/address.ts';
import {
  type Access,
  type Attempt,
  type Dialer,
  dialBriefly,
  type Endpoint,
  endpointDialer,
  type Link,
} from '../client/link.ts';
import { reachedAt } from '../client/link-options.ts';
import { isErrorReply } from '../client/replies.ts';
import { connectOrDestroy, dialSocket } from '../client/socket-connection.ts';
import { readInfo, SAME_CLOCK } from '../examination.ts';

/** The time limit for one sentinel's answer. */
const ASK_MS = 500;
/** How often they are asked whether it is still the same primary. */
const WATCH_EVERY_MS = 1_000;
/** Between two rounds of questions, while no sentinel names a server that is a primary. */
const ROUND_PAUSE_MS = 50;

interface Opinion extends Endpoint {
  readonly epoch: number;
}

export function sentinelDialer(address: RedisAddress, clock: Clock): Dialer {
  const sentinels = new SentinelSet(address, clock);
  return {
    name: address.name,
    dial: (attempt) => sentinels.dialPrimary(attempt),
  };
}

/** How to reach the sentinels. */
export type SentinelAddress = Pick<
  RedisAddress,
  'endpoints' | 'primaryName' | 'sentinelCredentials'
>;

/**
 * For an adopted client that asks the sentinels itself, but only when it connects. Ends its links
 * when the sentinels name another primary than at that time.
 */
export function watchedDialer(dialer: Dialer, address: SentinelAddress, clock: Clock): Dialer {
  const sentinels = new SentinelSet({ ...address, name: dialer.name, credentials: {} }, clock);
  return { name: dialer.name, dial: (attempt) => sentinels.dialWatched(dialer, attempt) };
}

/** One connection to a sentinel. */
interface SentinelLink {
  readonly link: Promise<Link>;
  readonly end: () => void;
}

/** A link that has to end when the sentinels name another primary than at its beginning. */
interface Watched {
  /** The opinion at that time; null if no sentinel answered. */
  opinion: Opinion | null;
  end(why: string): void;
}

/**
 * The sentinels of one store. All links of the store share one instance. It keeps one connection to
 * each sentinel and asks once a second, from the first attempt to connect until the last link has
 * ended.
 */
class SentinelSet {
  readonly #address: SentinelAddress & Access & { readonly name: string };
  readonly #clock: Clock;
  #newestEpoch = 0;
  /** The sentinel to ask next. */
  #next = 0;
  readonly #links = new Map<Endpoint, SentinelLink>();
  readonly #watched = new Set<Watched>();
  /** Attempts to connect that are under way. */
  #dialing = 0;
  /** Ends the watch; null while nothing is watched. */
  #watching: AbortController | null = null;

  constructor(address: SentinelAddress & Access & { readonly name: string }, clock: Clock) {
    this.#address = address;
    this.#clock = clock;
  }

  /** Returns a link to the server that the sentinels name and that is a primary. */
  dialPrimary(attempt: Attempt): Promise<Link> {
    return this.#whileDialing(() => this.#findPrimary(attempt));
  }

  /** Returns a link of another dialer, which ends when the sentinels name another primary. */
  dialWatched(dialer: Dialer, attempt: Attempt): Promise<Link> {
    return this.#whileDialing(async () => {
      const before = await this.#anyOpinion(attempt.signal);
      return this.#watchedLink(before, attempt, (watched) => dialer.dial(watched));
    });
  }

  async #findPrimary(attempt: Attempt): Promise<Link> {
    const leftMs = timeLeft(this.#clock, attempt.timeoutMs);
    const { endpoints, name } = this.#address;
    let why = '';
    while (!attempt.signal.aborted) {
      const said: unknown[] = [];
      for (let i = 0; i < endpoints.length && !attempt.signal.aborted; i++) {
        try {
          const opinion = await this.#ask(Math.min(ASK_MS, leftMs()), attempt.signal);
          const within = { ...attempt, timeoutMs: leftMs() };
          const dial = (watched: Attempt) => this.#dialChecked(opinion, watched);
          return await this.#watchedLink(opinion, within, dial);
        } catch (error) {
          // An error reply of the primary, such as a wrong password, is the same for each sentinel.
          if (isErrorReply(error)) throw error;
          why = error instanceof Error ? error.message : String(error);
          said.push(error);
        }
      }
      const isUnanimous = said.length === endpoints.length;
      if (isUnanimous && said.every((error) => error instanceof SentinelRefusedError)) break;
      // All sentinels were set up again: earlier opinions do not count any more.
      if (isUnanimous && said.every((error) => error instanceof SentinelBehindError))
        this.#newestEpoch = 0;
      await this.#clock.sleep(ROUND_PAUSE_MS, attempt.signal).catch(() => {});
    }
    throw new StoreUnreachableError({ store: name, operation: 'connect', why });
  }

  /** The opinion of one sentinel, or null. */
  async #anyOpinion(signal: AbortSignal): Promise<Opinion | null> {
    for (let i = 0; i < this.#address.endpoints.length && !signal.aborted; i++) {
      const opinion = await this.#ask(ASK_MS, signal).catch(() => null);
      if (opinion !== null) return opinion;
    }
    return null;
  }

  /** Makes a link, and ends it when a newer opinion names another primary. */
  async #watchedLink(
    opinion: Opinion | null,
    attempt: Attempt,
    dial: (attempt: Attempt) => Promise<Link>,
  ): Promise<Link> {
    let isOver = false;
    const unwatch = () => {
      isOver = true;
      this.#watched.delete(watched);
      this.#closeIfUnused();
    };
    const end = (why: string) => {
      unwatch();
      attempt.onEnd(why);
    };
    const watched: Watched = { opinion, end };
    const link = await dial({ ...attempt, onEnd: end });
    if (!isOver) this.#watch(watched);
    const destroy = () => {
      unwatch();
      link.destroy();
    };
    return {
      send: (args, deadline) => link.send(args, deadline),
      subscribe: (channel, listener) => link.subscribe(channel, listener),
      unsubscribe: (channel) => link.unsubscribe(channel),
      destroy,
    };
  }

  async #dialChecked(opinion: Opinion, attempt: Attempt): Promise<Link> {
    const { credentials, natMap } = this.#address;
    const link = await dialSocket(reachedAt(at(opinion), natMap), credentials, attempt);
    await connectOrDestroy(link.destroy, attempt, async () => {
      const { role } = readInfo(String(await link.send(['INFO', 'replication'])), SAME_CLOCK);
      if (role !== 'master')
        throw new Error(`${at(opinion)} is not the primary any more, or not yet`);
      attempt.signal.throwIfAborted();
    });
    return link;
  }

  #watch(watched: Watched): void {
    this.#watched.add(watched);
    if (this.#watching !== null) return;
    this.#watching = new AbortController();
    void this.#watchUntil(this.#watching.signal);
  }

  async #watchUntil(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#clock.sleep(WATCH_EVERY_MS, signal).catch(() => {});
      if (signal.aborted) return;
      // Without links that are made meanwhile: their opinion may be newer than the answer.
      const all = [...this.#watched];
      const opinion = await this.#ask(ASK_MS, signal).catch(() => null);
      if (opinion !== null && !signal.aborted) for (const watched of all) judge(watched, opinion);
    }
  }

  async #whileDialing(dial: () => Promise<Link>): Promise<Link> {
    this.#dialing++;
    try {
      return await dial();
    } finally {
      this.#dialing--;
      this.#closeIfUnused();
    }
  }

  /** Ends the connections to sentinels when no link is watched or being made. */
  #closeIfUnused(): void {
    if (this.#watched.size > 0) return;
    this.#watching?.abort();
    this.#watching = null;
    if (this.#dialing > 0) return;
    for (const { end } of this.#links.values()) end();
    this.#links.clear();
  }

  /** The opinion of the next sentinel. Throws if it does not answer, or is behind. */
  async #ask(timeoutMs: number, signal: AbortSignal): Promise<Opinion> {
    const { endpoints } = this.#address;
    const sentinel = endpoints[this.#next % endpoints.length];
    this.#next++;
    if (sentinel === undefined) throw new TypeError('an address has an endpoint');
    const says = `sentinel ${at(sentinel)}`;
    const line = this.#linkTo(sentinel);
    let isLate = false;
    const giveUp = () => {
      isLate = true;
      this.#disconnect(sentinel, line);
    };
    const timer = this.#clock.after(timeoutMs, giveUp);
    signal.addEventListener('abort', giveUp);
    if (signal.aborted) giveUp();
    try {
      const [facts, address] = await this.#question(await line.link);
      return this.#accept(sentinel, facts, address);
    } catch (error) {
      if (error instanceof SentinelBehindError) throw error;
      this.#disconnect(sentinel, line);
      if (isErrorReply(error)) throw new SentinelRefusedError(`${says}: ${error.message}`);
      throw isLate ? new Error(`${says} did not answer in time`) : error;
    } finally {
      timer.cancel();
      signal.removeEventListener('abort', giveUp);
    }
  }

  /**
   * In this order, in one write: the address may be newer than its number, and must not be older.
   */
  #question(link: Link): Promise<[facts: unknown, address: unknown]> {
    const { primaryName } = this.#address;
    return Promise.all([
      link.send(['SENTINEL', 'MASTER', primaryName]),
      link.send(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', primaryName]),
    ]);
  }

  #linkTo(sentinel: Endpoint): SentinelLink {
    const known = this.#links.get(sentinel);
    if (known !== undefined) return known;
    const over = new AbortController();
    const attempt: Attempt = {
      timeoutMs: ASK_MS,
      signal: over.signal,
      role: 'sentinel',
      onEnd: () => this.#disconnect(sentinel, line),
    };
    const { sentinelCredentials } = this.#address;
    const dialer = endpointDialer(at(sentinel), sentinel, sentinelCredentials);
    const link = dialBriefly(dialer, attempt);
    link.catch(() => {});
    const line: SentinelLink = { link, end: () => over.abort() };
    this.#links.set(sentinel, line);
    return line;
  }

  #disconnect(sentinel: Endpoint, line: SentinelLink): void {
    line.end();
    if (this.#links.get(sentinel) === line) this.#links.delete(sentinel);
  }

  #accept(sentinel: Endpoint, facts: unknown, address: unknown): Opinion {
    const epoch = epochOf(facts);
    // Not the address among the facts: the sentinel that leads a failover has the new number there,
    // but the old primary, until the replicas follow the new one.
    if (!Array.isArray(address)) throw new Error(`sentinel ${at(sentinel)} names no primary`);
    const [host, port] = address as [string, string];
    if (epoch < this.#newestEpoch)
      throw new SentinelBehindError(`sentinel ${at(sentinel)} is behind the others`);
    this.#newestEpoch = epoch;
    return { host, port: Number(port), epoch };
  }
}

/** Facts are names and values in turns. An opinion without a number counts as the oldest. */
function epochOf(facts: unknown): number {
  const flat = facts as readonly string[];
  const found = flat.indexOf('config-epoch');
  const epoch = found === -1 ? Number.NaN : Number(flat[found + 1]);
  return Number.isSafeInteger(epoch) ? epoch : 0;
}

function judge(watched: Watched, opinion: Opinion): void {
  watched.opinion ??= opinion;
  if (at(opinion) !== at(watched.opinion))
    watched.end(`the sentinels name another primary: ${at(opinion)}`);
}

/**
 * A sentinel answered with an error: the password is wrong, or it knows no primary of this name.
 */
class SentinelRefusedError extends Error {}

/** A sentinel's opinion is older than one already received. */
class SentinelBehindError extends Error {}

function at({ host, port }: Endpoint): string {
  return `${host}:${port}`;
}
