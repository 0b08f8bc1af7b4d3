import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { privateFolder, type Running, startCli } from '../integration/support/cli.ts';
import { leaveNothingBehind } from '../integration/support/holdfasts.ts';
import { hostMs } from '../support/host-clock.ts';
import { firstPolls } from '../support/poll-record.ts';
import { until } from '../support/until.ts';
import { CALM_MS, EVERY_MS, TTL_MS } from './support/fleet.ts';
import { useFleet } from './support/story.ts';
import { uuids } from './support/target-ids.ts';

leaveNothingBehind();

const POLL = new URL('../children/fleet-poll.mjs', import.meta.url).href;
/** After three attempts the next one is two seconds away at most; then the fleet has to be found. */
const FOUND_MS = 4_000;

/** A configuration whose polls are recorded as those of other members are. */
function writeConfig(url: string): string {
  const path = join(privateFolder(), 'holdfast.config.mjs');
  writeFileSync(
    path,
    `import { pollTarget } from '${POLL}';
const instance = \`up-\${process.pid}\`;
export default {
  store: '${url}',
  quarantine: 'off',
  ttl: ${TTL_MS},
  every: ${EVERY_MS},
  poll: (target, { signal, fence }) => pollTarget(target.url, { instance, fence, signal }),
};
`,
  );
  return path;
}

/** The lines of its log. One that is no JSON would throw. */
function logOf({ stdout }: Running): Record<string, unknown>[] {
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

describe('two of `holdfast up`', () => {
  const use = useFleet('redis');
  const ids = uuids(6);
  let ups: Running[] = [];

  it('P-05 E1 keep trying while their Redis is not there yet, and poll when it comes', async () => {
    const fleet = use();
    await fleet.add(ids);
    await fleet.redis.kill();
    const args = ['up', '--config', writeConfig(fleet.url), '--log-level', 'debug'];
    ups = [startCli(args), startCli(args)];
    const haveTried = () => ups.every(({ stdout }) => stdout.split('Trying again').length > 3);
    await until(haveTried, { what: 'three attempts of both', deadlineMs: 10_000 });
    expect(fleet.polls).toEqual([]);
    await fleet.redis.restart();
    const upMs = hostMs();
    await fleet.untilPolled();
    const first = firstPolls(fleet.polls, { fromMs: upMs });
    const waits = ids.map((id) => (first.get(id)?.startMs ?? Infinity) - upMs);
    expect(Math.max(...waits)).toBeLessThan(FOUND_MS);
    const { fleet: control } = await fleet.operator();
    const areEven = async () =>
      (await control.view()).members.map(({ owned }) => owned).join() === '3,3';
    await until(areEven, { what: 'both to have three', deadlineMs: 10_000 });
  });

  it('US1.3 FR-019 FR-020 FR-021 FR-022 share until one is told to stop: it hands over, ends with 0, and has logged each step with instance, target and time', async () => {
    const fleet = use();
    fleet.phase('one is stopped', CALM_MS);
    const [leaving, staying] = ups;
    const isRenewed = () =>
      leaving && logOf(leaving).some(({ event }) => event === 'lease.renewed');
    await until(isRenewed, { what: 'a renewal' });
    leaving?.signal('SIGTERM');
    const { code, stdout } = (await leaving?.end()) ?? {};
    expect(code, stdout).toBe(0);
    await fleet.untilPolled(ids, 2);
    for (const event of ['lease.acquired', 'lease.extended', 'lease.transferred']) {
      const lines = leaving === undefined ? [] : logOf(leaving);
      const told = lines.filter((line) => line.event === event);
      expect(told.length).toBeGreaterThanOrEqual(3);
      for (const line of told) {
        expect(ids).toContain(line.target);
        expect(line.instance).toMatch(/-\d{19}-[0-9a-f]{8}$/);
        expect(Date.parse(String(line.time))).toBeGreaterThan(0);
      }
    }
    staying?.signal('SIGTERM');
    fleet.unwant(ids);
    expect((await staying?.end())?.code).toBe(0);
  });
});
