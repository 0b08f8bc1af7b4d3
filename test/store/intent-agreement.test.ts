import { expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { SESSION_STATES, startStream } from '../../src/store/port/intent-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import type { Delivery } from '../../src/store/port/stream-store.ts';
import { openRedisStoreOn } from '../../src/store/redis/redis-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { SimRedis } from '../../testing/sim-redis/server.ts';
import fc from '../support/fast-check.ts';
import { simDialer } from '../support/sim-link.ts';

const START_STREAM = startStream('live');

// Two makes of one port: SQL, and Lua on Redis. Whatever is asked of both, they have to answer the same.

/** How many sequences are tried: few here; set HOLDFAST_RUNS to 10000 for a long look. */
const RUNS = Number(process.env.HOLDFAST_RUNS ?? 100);
const CALL = { timeoutMs: 5_000 };
/** Longer than any claim or rest lasts. */
const LONG_MS = 61_000;
/** Over at once, or not before a long while has passed. */
const CLAIMS_MS = [0, 60_000, 60_000];

const VERBS = [
  ...['start', 'start', 'start', 'stop', 'stop', 'advance', 'advance', 'republish'],
  ...['consume', 'consume', 'say', 'look', 'browse', 'prune'],
] as const;

/** One step. `pick` decides what is left open. */
const step = fc.record({
  verb: fc.constantFrom(...VERBS),
  keys: fc.uniqueArray(fc.constantFrom('k1', 'k2', 'k3', 'k4'), { minLength: 1, maxLength: 3 }),
  client: fc.constantFrom('c1', 'c1', 'c2', 'c3'),
  tenant: fc.constantFrom('t1', 't1', 't2'),
  state: fc.constantFrom(...SESSION_STATES),
  pick: fc.nat({ max: 60 }),
});
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** One store, and what it has given into hands. */
interface Twin {
  readonly store: Store;
  readonly given: Delivery[];
}

/** When and as the how many-th a step is taken. */
interface Moment {
  readonly nowMs: number;
  readonly turn: number;
}

async function openBoth(clock: FakeClock): Promise<Twin[]> {
  const random = seededRandom(1);
  const server = new SimRedis({
    wallMs: () => clock.wallMs(),
    nowMs: () => clock.monotonicMs(),
    random,
  });
  const redis = await openRedisStoreOn(simDialer(server), { quarantine: 'off', clock, random });
  return [createMemoryStore({ clock }), redis].map((store) => ({ store, given: [] }));
}

async function take(twin: Twin, step: Step, { nowMs, turn }: Moment): Promise<unknown> {
  const { intents } = twin.store;
  const { verb, keys, client, tenant, state, pick } = step;
  const { sessions } = await intents.list(CALL);
  // Nearly always one that there is, as it is.
  const session = pick % 11 === 0 ? undefined : sessions[pick % Math.max(1, sessions.length)];
  const id = session?.id ?? 'none';
  switch (verb) {
    case 'start': {
      const texts = { body: `{"turn":${turn},"text":"ünï😀\\n"}`, status: `"${pick}"` };
      const facts = { id: `s${turn}`, tenant, client, priority: 1 + (pick % 10) };
      const listed = { kind: 'live', label: `l${pick % 3}` };
      return intents.start({ ...facts, ...listed, keys, ...texts }, CALL);
    }
    case 'stop': {
      const whose = pick % 3 === 0 ? null : tenant;
      const request = { id, tenant: whose, client, force: pick % 7 === 0, ending: '"over"' };
      return intents.stop(request, CALL);
    }
    case 'advance': {
      const ifRevision = (session?.revision ?? 0) + (pick % 7 === 0 ? (pick % 3) - 1 : 0);
      return intents.advance(id, { ifRevision, state, status: `{"pick":${pick}}` }, CALL);
    }
    case 'republish':
      return intents.republish([id, 'none', ...sessions.map((each) => each.id)], CALL);
    case 'prune':
      return intents.prune({ ...CALL, endedBeforeMs: nowMs - (pick % 4), most: 1 + (pick % 3) });
    case 'look':
      return intents.read([id, 'none', ...sessions.map((each) => each.id)], CALL);
    case 'browse':
      return browse(twin.store, step);
    default:
      return work(twin, step);
  }
}

/** Page after page of some of them. */
async function browse({ intents }: Store, { tenant, pick }: Step): Promise<unknown> {
  const only = { ...(pick % 2 === 0 && { tenant }), ...(pick % 3 === 0 && { isOpen: true }) };
  const call = { ...CALL, ...only, most: 1 + (pick % 4) };
  const first = await intents.list({ ...call, ...(pick % 5 === 0 && { cursor: 'garbage' }) });
  const pages = [first];
  for (let page = first; page.cursor !== undefined; pages.push(page))
    page = await intents.list({ ...call, cursor: page.cursor });
  return pages.map(({ sessions, cursor }) => [sessions, cursor !== undefined]);
}

/** Takes something to start, and says at once or later what has become of it. */
async function work({ store, given }: Twin, { verb, client, pick }: Step): Promise<unknown> {
  const { streams } = store;
  if (verb === 'consume') {
    const claimMs = CLAIMS_MS[pick % 3] ?? 0;
    const call = { ...CALL, consumer: client, most: 1 + (pick % 3), claimMs };
    const found = await streams.consume(START_STREAM, call);
    given.push(...found);
    // Each store has fences of its own.
    return found.map(({ lane, value, tries }) => [lane, value, tries]);
  }
  const held = given[pick % Math.max(1, given.length)];
  if (held === undefined) return 'nothing';
  if (pick % 5 === 0) return streams.bury(START_STREAM, [{ ...held, reason: 'why' }], CALL);
  const later = { ...held, afterMs: CLAIMS_MS[pick % 3] ?? 0 };
  if (pick % 4 === 0) return streams.retry(START_STREAM, [later], CALL);
  return streams.ack(START_STREAM, [held], CALL);
}

it(
  'a store on SQL and one on Redis give the same answers about intents',
  async () => {
    const property = fc.asyncProperty(
      fc.array(step, { maxLength: 60, size: 'max' }),
      async (steps) => {
        const clock = new FakeClock();
        const both = await openBoth(clock);
        for (const [turn, each] of steps.entries()) {
          await clock.advance(each.pick === 60 ? LONG_MS : 1);
          const moment = { turn, nowMs: clock.wallMs() };
          const answers = await Promise.all(both.map((twin) => take(twin, each, moment)));
          expect(answers[1], JSON.stringify(each)).toEqual(answers[0]);
        }
        for (const { store } of both) await store.close();
      },
    );
    await fc.assert(property, { numRuns: RUNS });
  },
  60_000 + RUNS * 500,
);
