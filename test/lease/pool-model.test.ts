import { expect, it } from 'vitest';
import type { Lease } from '../../src/lease/lease.ts';
import fc from '../support/fast-check.ts';
import { poolOf, type Taken } from '../support/pools.ts';
import { world } from '../support/world.ts';

/** So long that whoever is served at all is served in time. */
const LONG_MS = 3_600_000;
const TTL_MS = 30_000;

type Step =
  | { do: 'ask'; who: number; wait: 0 | 50 | typeof LONG_MS }
  | { do: 'release'; nth: number }
  | { do: 'abort'; nth: number }
  | { do: 'cut off'; who: number }
  | { do: 'pass'; ms: number };

const who = fc.nat({ max: 2 });
const nth = fc.nat({ max: 9 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('ask' as const),
      who,
      wait: fc.constantFrom(0 as const, 50 as const, LONG_MS as typeof LONG_MS, LONG_MS),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('release' as const), nth }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('abort' as const), nth }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cut off' as const), who }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      ms: fc.constantFrom(0, 0, 1, 40, 100, 10_000, TTL_MS),
    }),
  },
);

interface Ask {
  readonly id: number;
  readonly who: number;
  readonly isPatient: boolean;
  readonly controller: AbortController;
}

/** Three processes and what they have, as they see it themselves. */
async function bench(slots: number) {
  const { clock, actor } = world();
  const actors = [await actor(), await actor(), await actor()];
  const pools = actors.map((each) => poolOf(each, { slots }));
  const held = new Set<Taken>();
  const waiting = new Set<Ask>();
  const problems: string[] = [];
  const fences = new Map<string, number>();
  let asks = 0;

  const taken = (ask: Ask, result: Taken) => {
    const { slot, lease } = result;
    if (lease.fence <= (fences.get(slot) ?? 0)) problems.push(`the fence of ${slot} fell`);
    fences.set(slot, lease.fence);
    held.add(result);
    lease.signal.addEventListener('abort', () => held.delete(result));
    const overtaken = [...waiting].find((other) => other.who === ask.who && other.id < ask.id);
    if (ask.isPatient && overtaken !== undefined)
      problems.push(`${ask.id} overtook ${overtaken.id} of process ${ask.who}`);
  };
  const ask = (process: number, wait: number) => {
    const controller = new AbortController();
    const asked: Ask = { id: ++asks, who: process, isPatient: wait === LONG_MS, controller };
    if (asked.isPatient) waiting.add(asked);
    const acquiring = pools[process]?.pool.acquire({ wait, signal: controller.signal });
    void acquiring
      ?.then(
        (result) => {
          waiting.delete(asked);
          if (result.ok) taken(asked, result);
          else if (asked.isPatient) problems.push(`${asked.id} was not served`);
        },
        () => waiting.delete(asked),
      )
      .catch((error) => problems.push(String(error)));
  };
  return { clock, actors, pools, held, waiting, problems, ask };
}

type Bench = Awaited<ReturnType<typeof bench>>;

/** What must be true at every moment: of those who may act, none has the slot of another, and there are no more than slots. */
function expectExclusive({ held, problems }: Bench, slots: number): void {
  expect(problems).toEqual([]);
  const active = [...held].filter(({ lease }) => mayAct(lease));
  expect(new Set(active.map(({ slot }) => slot)).size).toBe(active.length);
  expect(active.length).toBeLessThanOrEqual(slots);
}

function mayAct(lease: Lease): boolean {
  try {
    lease.assertHeld();
    return true;
  } catch {
    return false;
  }
}

async function carryOut({ clock, actors, held, waiting, ask }: Bench, step: Step): Promise<void> {
  if (step.do === 'ask') ask(step.who, step.wait);
  if (step.do === 'release') void [...held][step.nth]?.lease.release();
  if (step.do === 'abort') [...waiting][step.nth]?.controller.abort();
  if (step.do === 'cut off') {
    const faults = actors[step.who]?.faults;
    if (faults !== undefined) faults.hang = !faults.hang;
  }
  if (step.do === 'pass') await clock.advance(step.ms);
}

it('a pool never has more holders than slots, no slot has two, waiters keep their order, none starves, and all slots are free in the end', {
  timeout: 120_000,
}, async () => {
  const runs = fc.record({
    slots: fc.integer({ min: 1, max: 4 }),
    steps: fc.array(step, { minLength: 5, maxLength: 60 }),
  });
  let served = 0;
  const property = fc.asyncProperty(runs, async ({ slots, steps }) => {
    const all = await bench(slots);
    for (const each of steps) {
      await carryOut(all, each);
      expectExclusive(all, slots);
    }
    for (const { faults } of all.actors) faults.hang = false;
    // What does not wait has its answer by then.
    await all.clock.advance(TTL_MS);
    for (let rounds = 0; all.waiting.size + all.held.size > 0 && rounds < 200; rounds++) {
      for (const { lease } of all.held) void lease.release();
      await all.clock.advance(rounds < 100 ? 100 : TTL_MS);
      expectExclusive(all, slots);
      served++;
    }
    expect([...all.waiting].map(({ id }) => id)).toEqual([]);
    await all.clock.advance(2 * TTL_MS);
    const left = await all.pools[0]?.pool.inspect();
    expect(left?.filter(({ holder }) => holder !== null)).toEqual([]);
  });
  await fc.assert(property, { numRuns: 300 });
  expect(served).toBeGreaterThan(300);
});
