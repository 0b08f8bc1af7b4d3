/**
 * Where is the primary? Sentinels know, and change their minds when it fails. They are asked before every connection,
 * and while there is one: a primary that was cut off and replaced would otherwise go on answering us alone.
 *
 * A sentinel that was cut off itself has an old opinion. Opinions are numbered (`config-epoch`), and none older than the
 * newest heard is believed.
 */
import { type Clock, timeLeft } from '../../base/clock.ts';
import { StoreUnreachableError } from '../../base/errors.ts';
import type { RedisAddress } from './address.ts';
import { readInfo, SAME_CLOCK } from './examination.ts';
import { type Attempt, type Dialer, dialBriefly, type Endpoint, type Link } from './link.ts';
import { isErrorReply } from './replies.ts';
import { dialSocket } from './socket-link.ts';

/** How long one sentinel may take to answer. */
const ASK_MS = 500;
/** How often they are asked whether it is still the same primary. */
const WATCH_EVERY_MS = 1_000;
/** Between two rounds of asking when none of them names a primary that is one. */
const ROUND_PAUSE_MS = 50;

interface Opinion extends Endpoint {
  readonly epoch: number;
}

export function sentinelDialer(address: RedisAddress, { clock }: { clock: Clock }): Dialer {
  const sentinels = new Sentinels(address, clock);
  return {
    name: address.name,
    dial: (attempt) => sentinels.dialPrimary(attempt),
  };
}

/** What is needed to ask sentinels. */
export type SentinelAddress = Pick<
  RedisAddress,
  'endpoints' | 'primaryName' | 'sentinelCredentials'
>;

/**
 * The same for a client that asks the sentinels by itself, but only when it connects: ends its links when they name
 * another primary than at the time.
 */
export function watchedDialer(dialer: Dialer, address: SentinelAddress, clock: Clock): Dialer {
  const sentinels = new Sentinels({ ...address, name: dialer.name, credentials: {} }, clock);
  return { name: dialer.name, dial: (attempt) => sentinels.dialWatched(dialer, attempt) };
}

class Sentinels {
  readonly #address: Omit<RedisAddress, 'kind'>;
  readonly #clock: Clock;
  #newestEpoch = 0;
  /** The next to be asked; one that does not answer is asked last. */
  #next = 0;

  constructor(address: Omit<RedisAddress, 'kind'>, clock: Clock) {
    this.#address = address;
    this.#clock = clock;
  }

  /** A link to the server that the sentinels name and that agrees. */
  async dialPrimary(attempt: Attempt): Promise<Link> {
    const leftMs = timeLeft(this.#clock, attempt.timeoutMs);
    const { endpoints, name } = this.#address;
    let why = '';
    while (!attempt.signal.aborted) {
      const said: unknown[] = [];
      for (let i = 0; i < endpoints.length && !attempt.signal.aborted; i++) {
        try {
          const opinion = await this.#ask(attempt.signal, Math.min(ASK_MS, leftMs()));
          return await this.#dial(opinion, { ...attempt, timeoutMs: leftMs() });
        } catch (error) {
          // A refusal, such as of the password, is the same from all of them.
          if (isErrorReply(error)) throw error;
          why = error instanceof Error ? error.message : String(error);
          said.push(error);
        }
      }
      const isUnanimous = said.length === endpoints.length;
      if (isUnanimous && said.every((error) => error instanceof Refusal)) break;
      // All of them have been set up anew: what was heard of them before counts no more.
      if (isUnanimous && said.every((error) => error instanceof Behind)) this.#newestEpoch = 0;
      await this.#clock.sleep(ROUND_PAUSE_MS, attempt.signal).catch(() => {});
    }
    throw new StoreUnreachableError({ store: name, operation: 'connect', why });
  }

  /** A link that somebody else makes, as long as it leads to whom the sentinels named before. */
  async dialWatched(dialer: Dialer, attempt: Attempt): Promise<Link> {
    const before = await this.#anyOpinion(attempt.signal);
    return this.#watched(before, attempt, (watched) => dialer.dial(watched));
  }

  /** What one of them says, or null: who is in charge is not ours to find out here. */
  async #anyOpinion(signal: AbortSignal): Promise<Opinion | null> {
    for (let i = 0; i < this.#address.endpoints.length && !signal.aborted; i++) {
      const opinion = await this.#ask(signal, ASK_MS).catch(() => null);
      if (opinion !== null) return opinion;
    }
    return null;
  }

  #dial(opinion: Opinion, attempt: Attempt): Promise<Link> {
    return this.#watched(opinion, attempt, (watched) => this.#dialChecked(opinion, watched));
  }

  /** Makes a link, and ends it when a newer opinion names another primary. */
  async #watched(
    opinion: Opinion | null,
    attempt: Attempt,
    dial: (attempt: Attempt) => Promise<Link>,
  ): Promise<Link> {
    const watch = new AbortController();
    const end = (why: string) => {
      watch.abort();
      attempt.onEnd(why);
    };
    const link = await dial({ ...attempt, onEnd: end });
    void this.#watch(opinion, watch.signal, end);
    const destroy = () => {
      watch.abort();
      link.destroy();
    };
    return {
      send: (args) => link.send(args),
      subscribe: (channel, listener) => link.subscribe(channel, listener),
      unsubscribe: (channel) => link.unsubscribe(channel),
      destroy,
    };
  }

  async #dialChecked(opinion: Opinion, attempt: Attempt): Promise<Link> {
    const link = await dialSocket(opinion, this.#address.credentials, attempt);
    attempt.signal.addEventListener('abort', link.destroy);
    try {
      const { role } = readInfo(String(await link.send(['INFO', 'replication'])), SAME_CLOCK);
      if (role !== 'master')
        throw new Error(`${at(opinion)} is not the primary any more, or not yet`);
      attempt.signal.throwIfAborted();
      return link;
    } catch (error) {
      link.destroy();
      throw error;
    } finally {
      attempt.signal.removeEventListener('abort', link.destroy);
    }
  }

  /** Ends the link when a newer opinion names another primary. */
  async #watch(
    first: Opinion | null,
    signal: AbortSignal,
    end: (why: string) => void,
  ): Promise<void> {
    let current = first;
    for (;;) {
      await this.#clock.sleep(WATCH_EVERY_MS, signal).catch(() => {});
      if (signal.aborted) return;
      const opinion = await this.#ask(signal, ASK_MS).catch(() => null);
      current ??= opinion;
      if (opinion === null || current === null || at(opinion) === at(current)) continue;
      if (!signal.aborted) end(`the sentinels name another primary: ${at(opinion)}`);
      return;
    }
  }

  /** What the next sentinel says; throws if it does not, or is behind. */
  async #ask(signal: AbortSignal, timeoutMs: number): Promise<Opinion> {
    const { endpoints, primaryName, sentinelCredentials } = this.#address;
    const sentinel = endpoints[this.#next % endpoints.length];
    this.#next++;
    if (sentinel === undefined) throw new TypeError('an address has an endpoint');
    const ended = new AbortController();
    const timer = this.#clock.after(timeoutMs, () => ended.abort());
    const either = AbortSignal.any([signal, ended.signal]);
    try {
      const attempt = { timeoutMs, signal: either, onEnd: () => {} };
      const link = await dialBriefly(sentinel, sentinelCredentials, attempt);
      // In this order, in one write: an address may be newer than its number, and must not be older.
      const [facts, address] = await Promise.all([
        link.send(['SENTINEL', 'MASTER', primaryName]),
        link.send(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', primaryName]),
      ]);
      return this.#believe(sentinel, facts, address);
    } catch (error) {
      const says = `sentinel ${at(sentinel)}`;
      if (isErrorReply(error)) throw new Refusal(`${says}: ${error.message}`);
      if (either.aborted) throw new Error(`${says} did not answer in time`);
      throw error;
    } finally {
      timer.cancel();
      ended.abort();
    }
  }

  #believe(sentinel: Endpoint, facts: unknown, address: unknown): Opinion {
    const flat = facts as string[];
    const epoch = Number(flat[flat.indexOf('config-epoch') + 1]);
    // Not the address among the facts: the sentinel that leads a failover has the new number there, and yet the old
    // primary, until the replicas follow the new one.
    const [host = '', port] = address as string[];
    if (epoch < this.#newestEpoch)
      throw new Behind(`sentinel ${at(sentinel)} is behind the others`);
    this.#newestEpoch = epoch;
    return { host, port: Number(port), epoch };
  }
}

/** A sentinel has answered, and does not tell: the password is wrong, or it knows no primary of this name. */
class Refusal extends Error {}

/** A sentinel's opinion is older than one already heard. */
class Behind extends Error {}

function at({ host, port }: Endpoint): string {
  return `${host}:${port}`;
}
