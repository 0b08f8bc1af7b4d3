import { describe, expect, it } from 'vitest';
import { leaveNothingBehind } from '../integration/support/holdfasts.ts';
import { until } from '../support/until.ts';
import { CALM_MS, CRASH_MS, TestFleet, TTL_MS } from './support/fleet.ts';
import { deviceIds } from './support/target-ids.ts';

// What the scenarios rely on: that their record shows the faults they are about.

leaveNothingBehind();

/** Two processes that poll the same targets and ask nobody. */
async function startRogues(fleet: TestFleet, ids: readonly string[]) {
  const options = { urls: ids.map((id) => fleet.server.urlOf(id)), everyMs: 50, fence: 1 };
  return Promise.all([1, 2].map(() => fleet.startOther('fleet-rogue.mjs', options)));
}

describe('the record of a fleet', () => {
  it('shows members that poll without leases, and a target that nobody polls', async () => {
    await using fleet = await TestFleet.on('sqlite');
    const ids = deviceIds(2);
    fleet.phase('two rogues', 300);
    const rogues = await startRogues(fleet, ids);
    fleet.want(ids);
    const isDoubled = () => {
      expect(() => fleet.check()).toThrow(/polled by rogue-\d+ \(fence 1\) while rogue-\d+/);
      return true;
    };
    await until(isDoubled, { what: 'two polls at once', deadlineMs: 10_000 });
    await fleet.kill(...rogues);
    const isMissed = () => {
      expect(() => fleet.check()).toThrow(/not polled for \d+ ms \(two rogues: at most 300 ms\)/);
      return true;
    };
    await until(isMissed, { what: 'a gap', deadlineMs: 10_000 });
  });

  it('of a foreign program that knows only the seeds shows one owner for each target, also after a crash', async () => {
    await using fleet = await TestFleet.on('redis');
    const ids = deviceIds(6);
    for (const id of ids) {
      const session = { id, url: fleet.server.urlOf(id), isPaused: false };
      await fleet.redis.cli('SET', `session:${id}`, JSON.stringify(session));
    }
    const programs = await Promise.all(
      [1, 2].map(() => fleet.startOther('fleet-foreign.mjs', { ttlMs: TTL_MS })),
    );
    await fleet.untilPolled(ids);
    fleet.phase('calm', CALM_MS);
    fleet.want(ids);
    await fleet.untilPolled(ids, 3);
    // Its takeover waits for a tick after the expiry.
    fleet.phase('one is killed', CRASH_MS + TTL_MS / 6);
    for (const program of programs) {
      if ((await program.owned()).length < ids.length / 2) continue;
      await fleet.kill(program);
      break;
    }
    await fleet.untilPolled(ids);
    fleet.check();
  });
});
