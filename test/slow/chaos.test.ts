import { expect, it } from 'vitest';
import { seededRandom } from '../../src/base/random.ts';
import {
  CALM_MS,
  EVERY_MS,
  type StoreKind,
  TestFleet,
  TTL_MS,
} from '../scenarios/support/fleet.ts';
import { deviceIds } from '../scenarios/support/target-ids.ts';
import { hostMs } from '../support/host-clock.ts';
import { type Gap, gaps, moves } from '../support/poll-record.ts';
import { until } from '../support/until.ts';

// Started by scripts/chaos.mjs, which says what these mean.
const MINUTES = Number(process.env.CHAOS_MINUTES ?? '10');
const STORE = (process.env.CHAOS_STORE ?? 'redis') as StoreKind;
const SEED = Number(process.env.CHAOS_SEED ?? '1');

const INSTANCES = 5;
/** Between two kills, at most. */
const LONGEST_CALM_MS = 4_000;
const LOOK_EVERY_MS = 250;
/** From a kill to the next poll of what it held: SC-002. */
const TAKEOVER_MS = TTL_MS + 1_000 + EVERY_MS;

/** What `explain` said of a target, and when. */
interface Explained {
  readonly atMs: number;
  readonly owner: string | null;
  readonly text: string;
}

it(`five instances, of which any is killed at random for ${MINUTES} minutes on ${STORE} (seed ${SEED}), never poll at once, and leave no gap that is not explained`, async () => {
  await using fleet = await TestFleet.on(STORE);
  const ids = deviceIds(40);
  await fleet.add(ids);
  await fleet.start(INSTANCES);
  await fleet.untilSteady();
  fleet.phase('chaos', Number.POSITIVE_INFINITY);
  const fromMs = hostMs();
  using watch = watchExplanations(fleet);
  const killedMs = await killAtRandom(fleet, fromMs + MINUTES * 60_000);
  await fleet.untilSteady();
  fleet.check();

  const query = { fromMs, toMs: hostMs(), targets: ids, boundMs: CALM_MS };
  const found = gaps(fleet.polls, query);
  const unexplained = found.filter((gap) => !isExplained(gap, { fleet, killedMs, watch }));
  const longestMs = Math.max(0, ...found.map(({ lastedMs }) => lastedMs));
  console.log(
    `${fleet.polls.length} polls, ${killedMs.size} killed, ${moves(fleet.polls)} moves, ` +
      `${found.length} gaps, the longest ${Math.round(longestMs)} ms, ${watch.looks} explanations asked for`,
  );
  expect(unexplained.map((gap) => ({ ...gap, said: watch.during(gap) }))).toEqual([]);
  expect(killedMs.size).toBeGreaterThan(0);
});

/** Kills one of those that live, starts another, and waits a little, until the time is over; says who died when. */
async function killAtRandom(fleet: TestFleet, untilMs: number): Promise<Map<string, number>> {
  const random = seededRandom(SEED);
  const killedMs = new Map<string, number>();
  while (hostMs() < untilMs) {
    const members = [...fleet.members];
    const victim = members[Math.floor(random.next() * members.length)];
    if (victim === undefined) throw new Error('nobody is left');
    killedMs.set(victim.id, await fleet.kill(victim));
    await fleet.start(1);
    const nextMs = hostMs() + random.next() * LONGEST_CALM_MS;
    await until(() => hostMs() >= nextMs, { what: 'the next kill', deadlineMs: 60_000 });
  }
  return killedMs;
}

/** Asks for the explanation of every target again and again, as an operator might. */
function watchExplanations(fleet: TestFleet) {
  const said = new Map<string, Explained[]>();
  let looks = 0;
  const look = async () => {
    const { fleet: control } = await fleet.operator();
    const { targets } = await control.view();
    const atMs = hostMs();
    looks += 1;
    for (const { target, owner, text } of targets) {
      const own = said.get(target) ?? [];
      said.set(target, own);
      own.push({ atMs, owner, text });
    }
  };
  const timer = setInterval(() => void look().catch(() => {}), LOOK_EVERY_MS);
  return {
    get looks() {
      return looks;
    },
    during: ({ target, fromMs, lastedMs }: Gap) =>
      (said.get(target) ?? []).filter(({ atMs }) => atMs >= fromMs && atMs <= fromMs + lastedMs),
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

/** Who owned it, by the record or by what was explained meanwhile, died; and it was polled in time after the last of them had. */
function isExplained(
  gap: Gap,
  parts: {
    fleet: TestFleet;
    killedMs: ReadonlyMap<string, number>;
    watch: { during(gap: Gap): Explained[] };
  },
): boolean {
  const { fleet, killedMs, watch } = parts;
  const said = watch.during(gap);
  const before = fleet.polls.findLast(
    ({ target, endMs }) => target === gap.target && endMs <= gap.fromMs,
  );
  const toMs = gap.fromMs + gap.lastedMs;
  const suspects = new Set([before?.instance, ...said.map(({ owner }) => owner)]);
  const deaths = [...killedMs].filter(([id, diedMs]) => suspects.has(id) && diedMs <= toMs);
  const lastMs = Math.max(...deaths.map(([, diedMs]) => diedMs));
  return said.length > 0 && toMs - lastMs <= TAKEOVER_MS;
}
