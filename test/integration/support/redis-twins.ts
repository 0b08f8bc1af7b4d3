import { type Clock, systemClock } from '../../../src/core/clock.ts';
import { seededRandom } from '../../../src/core/random.ts';
import type { Store } from '../../../src/store/port/store.ts';
import { type Dialer, endpointDialer, type Link } from '../../../src/store/redis/client/link.ts';
import { isErrorReply } from '../../../src/store/redis/client/replies.ts';
import { openRedisStoreOn } from '../../../src/store/redis/redis-store.ts';
import { SimRedis } from '../../../testing/sim-redis/server.ts';
import type { RedisServer } from '../../support/redis-server.ts';
import { simDialer } from '../../support/sim-link.ts';
import { until } from '../../support/until.ts';
import { Telling } from './telling.ts';

/** Who listens on both, so that there is somebody to wake. */
const CHANNELS = ['signal:h1', 'signal:h2'];
/** How long a command takes at least: longer than times are apart that were made from each other. */
const COMMAND_MS = 0.02;
/** How far apart two questions are at least. */
const APART_MS = 0.25;
const END = 'that is all';
/** A store looks at its server now and then, which writes to the marker: each of the two at another moment. */
const LOOK_AT_LEAST_MS = 5_000;

/** A clock by which no such look is ever due. */
const withoutLooks: Clock = Object.assign(Object.create(systemClock) as Clock, {
  sleep: (ms: number, signal?: AbortSignal) =>
    systemClock.sleep(ms >= LOOK_AT_LEAST_MS ? Number.POSITIVE_INFINITY : ms, signal),
});

/** One server, with everything that is asked of it and what it has told. */
export interface Twin {
  readonly link: Link;
  readonly store: Store;
  readonly messages: string[];
  telling: Telling;
}

/** A real server and a simulated one, which is always at the real one's time. */
export class RedisTwins {
  readonly real: Twin;
  readonly simulated: Twin;
  readonly server: SimRedis;
  readonly #setWall: (ms: number) => void;
  #askedAtMs = 0;

  private constructor(
    real: Twin,
    simulated: Twin,
    server: SimRedis,
    setWall: (ms: number) => void,
  ) {
    this.real = real;
    this.simulated = simulated;
    this.server = server;
    this.#setWall = setWall;
  }

  static async open(redis: RedisServer): Promise<RedisTwins> {
    let wallMs = Date.now();
    const server = new SimRedis({
      // As on the real one, no two commands are carried out in the same moment.
      wallMs: () => (wallMs += COMMAND_MS),
      nowMs: () => performance.now(),
      random: seededRandom(1),
    });
    const at = { host: '127.0.0.1', port: redis.port };
    return new RedisTwins(
      await openTwin(endpointDialer('redis', at, {})),
      await openTwin(simDialer(server, 'redis')),
      server,
      (ms) => {
        wallMs = Math.max(wallMs, ms);
      },
    );
  }

  /** Asks both the same, the real one first, and gives what they say, told alike. */
  async ask(
    question: (twin: Twin) => Promise<unknown>,
  ): Promise<[real: unknown, simulated: unknown]> {
    await this.#part();
    // Sent together: so the question is asked at the time that is told.
    const [time, real] = await Promise.all([
      this.real.link.send(['TIME']),
      answer(question, this.real),
    ]);
    const [seconds, micros] = time as [string, string];
    this.#setWall(Number(seconds) * 1_000 + Number(micros) / 1_000);
    const simulated = await answer(question, this.simulated);
    return [this.real.telling.tell(real), this.simulated.telling.tell(simulated)];
  }

  /** On a machine that is faster than the numbers of a log run ahead, these would come again. */
  async #part(): Promise<void> {
    while (performance.now() - this.#askedAtMs < APART_MS) await this.real.link.send(['PING']);
    this.#askedAtMs = performance.now();
  }

  /** Both are empty, and have told nothing yet. */
  async begin(): Promise<void> {
    for (const twin of [this.real, this.simulated]) {
      await twin.link.send(['FLUSHALL']);
      twin.messages.length = 0;
      twin.telling = new Telling();
    }
  }

  /** Resolves once everything that was published has arrived. */
  async settle(): Promise<void> {
    for (const { link, messages } of [this.real, this.simulated]) {
      for (const channel of CHANNELS) await link.send(['PUBLISH', channel, END]);
      await until(() => messages.filter((text) => text.endsWith(END)).length === CHANNELS.length, {
        what: 'the last message to arrive',
        every: 0,
      });
    }
  }

  async close(): Promise<void> {
    for (const { link, store } of [this.real, this.simulated]) {
      await store.close();
      link.destroy();
    }
  }
}

/** The same, but what a walk finds is in one order: a server may give it in any, and what follows would depend on it. */
function inOneOrder(dialer: Dialer): Dialer {
  const dial: Dialer['dial'] = async (attempt) => {
    const link = await dialer.dial(attempt);
    const send: Link['send'] = async (args) => {
      const reply = await link.send(args);
      if (args[0] === 'SCAN') (reply as [string, string[]])[1].sort();
      return reply;
    };
    return {
      send,
      subscribe: (channel, listener) => link.subscribe(channel, listener),
      unsubscribe: (channel) => link.unsubscribe(channel),
      destroy: () => link.destroy(),
    };
  };
  return { name: dialer.name, dial };
}

async function openTwin(anyOrder: Dialer): Promise<Twin> {
  const dialer = inOneOrder(anyOrder);
  const attempt = { timeoutMs: 5_000, signal: new AbortController().signal, onEnd: () => {} };
  const messages: string[] = [];
  const ear = await dialer.dial(attempt);
  for (const channel of CHANNELS)
    await ear.subscribe(channel, (message) => messages.push(`${channel} ${message}`));
  return {
    link: await dialer.dial(attempt),
    store: await openRedisStoreOn(dialer, {
      ...{ quarantine: 'off', random: seededRandom(1), clock: withoutLooks, removalsKept: 1 },
    }),
    messages,
    telling: new Telling(),
  };
}

async function answer(question: (twin: Twin) => Promise<unknown>, twin: Twin): Promise<unknown> {
  try {
    return await question(twin);
  } catch (error) {
    // What the simulation does not have must not pass for an answer.
    if (isErrorReply(error) || (error instanceof Error && 'code' in error)) return error;
    throw error;
  }
}
