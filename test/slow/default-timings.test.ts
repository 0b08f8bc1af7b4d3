import { describe, expect, it } from 'vitest';
import { CALM_MS, TestFleet } from '../scenarios/support/fleet.ts';
import { STORES } from '../scenarios/support/story.ts';
import { deviceIds } from '../scenarios/support/target-ids.ts';
import { hostMs } from '../support/host-clock.ts';
import { firstPolls } from '../support/poll-record.ts';
import { until } from '../support/until.ts';

const TTL_MS = 30_000;
const RENEW_EVERY_MS = 10_000;
const EVERY_MS = 1_000;

describe.concurrent('a fleet with the timings it has by itself', () => {
  it.each(STORES)(
    'FR-004 FR-017 US1.3 US2.1 SC-002 SC-006 takes over on %s at once from one that is stopped, and within 31 s from one that is killed',
    async (kind) => {
      await using fleet = await TestFleet.on(kind, {
        timings: 'as they come',
        poller: { every: EVERY_MS },
      });
      const ids = deviceIds(9);
      await fleet.add(ids);
      const [stopped, killed] = await fleet.start(3);
      if (stopped === undefined || killed === undefined) throw new Error('too few have started');
      const owners = await fleet.untilSteady();
      fleet.phase('calm', CALM_MS + EVERY_MS);
      await expectRenewals(fleet, ids, killed.id);

      fleet.phase('one is stopped', CALM_MS + EVERY_MS);
      await fleet.stop(stopped);
      await fleet.untilSteady();

      fleet.phase('one is killed', TTL_MS + 1_000 + EVERY_MS);
      const targets = ids.filter((id) => owners.get(id) === killed.id);
      const killedMs = await fleet.kill(killed);
      const first = () => firstPolls(fleet.polls, { fromMs: killedMs, except: killed.id });
      const areTaken = () => targets.every((id) => first().has(id));
      await until(areTaken, { what: 'its targets to be polled', deadlineMs: TTL_MS + 5_000 });
      const waits = targets.map((id) => (first().get(id)?.startMs ?? Infinity) - killedMs);
      expect(Math.max(...waits)).toBeLessThan(TTL_MS + 1_000);
      expect(Math.min(...waits)).toBeGreaterThan(TTL_MS - RENEW_EVERY_MS - 1_000);
      await fleet.untilSteady();
      fleet.check();
    },
  );
});

/** Looks at the leases of one owner for longer than a renewal takes to come. */
async function expectRenewals(fleet: TestFleet, ids: readonly string[], owner: string) {
  const { fleet: seen } = await fleet.operator();
  const leftMs: number[] = [];
  const untilMs = hostMs() + RENEW_EVERY_MS + 2_000;
  const look = async () => {
    const { targets } = await seen.view();
    for (const target of targets) if (target.owner === owner) leftMs.push(target.expiresInMs);
    return hostMs() > untilMs;
  };
  const what = 'a renewal interval to pass';
  await until(look, { what, deadlineMs: RENEW_EVERY_MS + 10_000, every: 100 });
  expect(ids.length).toBeGreaterThan(0);
  expect(Math.max(...leftMs)).toBeLessThanOrEqual(TTL_MS);
  expect(Math.max(...leftMs)).toBeGreaterThan(TTL_MS - 1_000);
  expect(Math.min(...leftMs)).toBeGreaterThan(TTL_MS - RENEW_EVERY_MS - 1_000);
}
