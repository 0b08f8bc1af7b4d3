/**
 * Those who want things started and stopped: some clients of two tenants, outside of all processes.
 * Who gets no answer, or one that says nothing for sure, asks again, elsewhere.
 */
import {
  LeaseHeldError,
  OutcomeUnknownError,
  StoreQuarantinedError,
} from '../../src/core/errors.ts';
import type { Random } from '../../src/core/random.ts';
import { SessionNotFoundError } from '../../src/fleet/targets/errors.ts';
import type { Intent, Requester, Start, StreamStart, VodStart } from '../../src/intents/intent.ts';
import type { Accepted } from '../../src/intents/intents.ts';
import type { Counters } from './counters.ts';
import type { SimProcess } from './host.ts';
import { PHASE, type Timeline } from './timeline.ts';

/** There is none to stop; or the channel is taken, or not granted yet, which only some are told. */
const REFUSALS = [SessionNotFoundError, LeaseHeldError, StoreQuarantinedError];

/** A process that accepts intents. */
export interface Gateway {
  readonly process: SimProcess;
  receive(request: IntentRequest): void;
}

export interface IntentRequest {
  readonly intent: Intent;
  readonly by: Requester;
  readonly askedMs: number;
  /** Fires when the process has read that the client has hung up. */
  readonly signal: AbortSignal;
  /** Whether the client had hung up for so long that the process could have read it by now. */
  isGone(): boolean;
  answer(outcome: Accepted | Error): void;
}

export interface IntentClientsParts {
  readonly timeline: Timeline;
  readonly random: Random;
  readonly counters: Counters;
  /** How many there are. */
  readonly count: number;
}

const TENANTS = ['north', 'south'];
/**
 * Few, so that they meet; the same for both tenants. Some differ only in where one field ends and
 * the next begins.
 */
const WISHES: readonly (StreamStart | VodStart | Start)[] = [
  { type: 'stream.start', serviceRef: '1:0:19', profile: 'hd' },
  { type: 'stream.start', serviceRef: '1:0', profile: '19:hd' },
  { type: 'stream.start', serviceRef: '1:0:19', profile: 'sd' },
  { type: 'stream.start', serviceRef: 'a' },
  { type: 'stream.start', serviceRef: 'b' },
  { type: 'vod.start', recordingId: 'r', startMs: 200 },
  { type: 'vod.start', recordingId: 'r', startMs: 900 },
  { type: 'vod.start', recordingId: 'r', startMs: 1_000 },
  { type: 'start', kind: 'job', key: 'k', params: {} },
  { type: 'start', kind: 'job', key: 'k', params: { n: 1 } },
  { type: 'start', kind: 'rare', key: 'k', params: {} },
];

/** How long a message is under way. */
const DELAY_MOST_MS = 5;
/** How long a client waits for an answer, and before it asks again. */
const ANSWER_WITHIN_MS = 5_000;
const AGAIN_MOST_MS = 2_000;
const MOST_TRIES = 20;
const PAUSE_MOST_MS = 15_000;
/**
 * One in so many asks twice at once; leaves the session to come to its end by itself; and stops it
 * even if others need it.
 */
const TWICE_ONE_IN = 4;
const LEAVES_ONE_IN = 3;
const FORCED_ONE_IN = 30;
/** One in so many stops what it has just started, the others after a while. */
const HASTY_ONE_IN = 3;
const HASTY_MOST_MS = 20;
const STAYS_MOST_MS = 12_000;

export class IntentClients {
  readonly #parts: IntentClientsParts;
  readonly #gateways = new Set<Gateway>();

  constructor(parts: IntentClientsParts) {
    this.#parts = parts;
  }

  register(gateway: Gateway): void {
    for (const one of this.#gateways) if (one.process.isDead) this.#gateways.delete(one);
    this.#gateways.add(gateway);
  }

  start(): void {
    for (let number = 0; number < this.#parts.count; number++) {
      void this.#live(number);
    }
  }

  /**
   * Each time under another name, so that what it leaves behind is never stopped by who comes
   * later.
   */
  async #live(number: number): Promise<never> {
    const tenant = TENANTS[number % TENANTS.length] ?? '';
    for (let visit = 0; ; visit++) {
      const by = { tenant, client: `c${number}.${visit}` };
      await this.#sleep(PAUSE_MOST_MS);
      const wish = this.#pick(WISHES);
      if (wish === undefined) continue;
      const twin = this.#oneIn(TWICE_ONE_IN) ? this.#insist(wish, by) : null;
      const accepted = await this.#insist(wish, by);
      await twin;
      if (accepted === null || this.#oneIn(LEAVES_ONE_IN)) continue;
      await this.#sleep(this.#oneIn(HASTY_ONE_IN) ? HASTY_MOST_MS : STAYS_MOST_MS);
      const { id: sessionId } = accepted.session;
      const force = this.#oneIn(FORCED_ONE_IN);
      await this.#insist({ type: 'stream.stop', sessionId, force }, by);
    }
  }

  /**
   * Asks until it is told for sure, or has asked too often: then null, as where there is nothing to
   * stop.
   */
  async #insist(intent: Intent, by: Requester): Promise<Accepted | null> {
    const { counters } = this.#parts;
    let wasUnknown = false;
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const outcome = await this.#ask(intent, by);
      if (REFUSALS.some((kind) => outcome instanceof kind)) return null;
      if (!(outcome instanceof Error)) {
        if (wasUnknown) counters.add('accepted after an unknown outcome');
        if (wasUnknown && outcome.isReplay) counters.add('replayed after an unknown outcome');
        return outcome;
      }
      wasUnknown ||= outcome instanceof NoAnswer || outcome instanceof OutcomeUnknownError;
      await this.#sleep(AGAIN_MOST_MS);
    }
    return null;
  }

  #ask(intent: Intent, by: Requester): Promise<Accepted | Error> {
    const { timeline } = this.#parts;
    const gateway = this.#pick([...this.#gateways]);
    const askedMs = timeline.nowMs;
    const connection = new AbortController();
    const { signal } = connection;
    const untilMs = askedMs + ANSWER_WITHIN_MS;
    return new Promise((resolve) => {
      const enough = timeline.at(untilMs, () => {
        resolve(new NoAnswer());
        const hangUp = () => connection.abort(new NoAnswer());
        this.#carry(untilMs, () => gateway?.process.deliver(hangUp));
      });
      if (gateway === undefined) return;
      const { process } = gateway;
      const isGone = () => process.trueMs > untilMs + DELAY_MOST_MS;
      const hear = (outcome: Accepted | Error) => {
        timeline.takeBack(enough);
        resolve(outcome);
      };
      const answer = (outcome: Accepted | Error) =>
        this.#carry(process.trueMs, () => hear(outcome));
      const arrive = () => gateway.receive({ intent, by, askedMs, signal, isGone, answer });
      this.#carry(askedMs, () => process.deliver(arrive));
    });
  }

  #carry(sentMs: number, arrive: () => void): void {
    const { timeline, random } = this.#parts;
    timeline.at(sentMs + random.next() * DELAY_MOST_MS, arrive, PHASE.input);
  }

  /** Up to so long. */
  #sleep(mostMs: number): Promise<void> {
    const { timeline, random } = this.#parts;
    const untilMs = timeline.nowMs + random.next() * mostMs;
    return new Promise((resolve) => timeline.at(untilMs, resolve));
  }

  #pick<T>(from: readonly T[]): T | undefined {
    return from[Math.floor(this.#parts.random.next() * from.length)];
  }

  #oneIn(count: number): boolean {
    return this.#parts.random.next() * count < 1;
  }
}

/** Nothing came back in time. */
class NoAnswer extends Error {}
