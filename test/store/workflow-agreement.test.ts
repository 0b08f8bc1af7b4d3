import { expect, it } from 'vitest';
import { seededRandom } from '../../src/base/random.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { openRedisStoreOn } from '../../src/store/redis/redis-store.ts';
import { FakeClock } from '../../src/testing/fake-clock.ts';
import { SimRedis } from '../../src/testing/sim-redis/server.ts';
import { type FlowStep, flowStep, takeFlowStep } from '../integration/support/flow-steps.ts';
import type { Twin } from '../integration/support/redis-twins.ts';
import { Telling } from '../integration/support/telling.ts';
import fc from '../support/fast-check.ts';
import { simDialer } from '../support/sim-link.ts';

// Two makes of one port: SQL, and Lua on Redis. Whatever is asked of both, they have to answer the same.

/** How many sequences are tried: few here; set HOLDFAST_RUNS to 10000 for a long look. */
const RUNS = Number(process.env.HOLDFAST_RUNS ?? 100);
/** What they have once disagreed about. */
const FOUND: FlowStep[][] = [
  // A dead action of a workflow that was removed and begun again, with an action of that id under way, for another target.
  [
    ['claim', 't1', 0],
    ['emit', 't2', 19],
    ['work', 't2', 3],
    ['late', 't1', 60],
    ['forget', 't1', 0],
    ['claim', 't1', 0],
    ['emit', 't1', 43],
    ['revive', 't2', 0],
  ],
  // An action that is in somebody's hands, and has another epoch than it was taken with.
  [
    ['claim', 't1', 0],
    ['emit', 't1', 3],
    ['reserve', 't1', 46],
    ['handoff', 't1', 1],
    ['claim', 't1', 0],
    ['reserve', 't1', 26],
  ],
].map((steps) =>
  steps.map(([flow, target, pick]) => ({ flow, id: 'w1', who: 'h1', target, pick }) as FlowStep),
);
/** Opaque, or a moment. */
const OWN = new Set(['position', 'atMs', 'createdAtMs', 'changedAtMs', 'revokedAtMs']);

async function openBoth(clock: FakeClock): Promise<Twin[]> {
  const random = seededRandom(1);
  const server = new SimRedis({
    wallMs: () => clock.wallMs(),
    nowMs: () => clock.monotonicMs(),
    random,
  });
  const redis = await openRedisStoreOn(simDialer(server), { quarantine: 'off', clock, random });
  return [createMemoryStore({ clock }), redis].map((store) => {
    // Nobody talks to these but through their store.
    return { store, link: undefined as never, messages: [], telling: new Telling() };
  });
}

/** What is said of it, without what each store may choose. */
function plain(answer: unknown): unknown {
  if (Array.isArray(answer)) return answer.map(plain);
  if (typeof answer !== 'object' || answer === null) return answer;
  const isDead = 'reason' in answer && 'tries' in answer;
  const fields = Object.entries(answer).filter(
    ([name]) => !OWN.has(name) && !(isDead && name === 'id'),
  );
  return Object.fromEntries(fields.map(([name, value]) => [name, plain(value)]));
}

it(
  'a store on SQL and one on Redis give the same answers about streams and workflows',
  async () => {
    const property = fc.asyncProperty(
      fc.array(flowStep, { maxLength: 60, size: 'max' }),
      async (steps) => {
        const clock = new FakeClock();
        const both = await openBoth(clock);
        for (const step of steps) {
          await clock.advance(step.pick === 60 ? 61_000 : 1);
          const answers = await Promise.all(
            both.map(async (twin) => twin.telling.tell(plain(await takeFlowStep(twin, step)))),
          );
          expect(answers[1], JSON.stringify(step)).toEqual(answers[0]);
        }
        for (const { store } of both) await store.close();
      },
    );
    await fc.assert(property, { numRuns: RUNS, examples: FOUND.map((steps) => [steps]) });
  },
  60_000 + RUNS * 500,
);
