import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../../src/core/errors.ts';
import { seededRandom } from '../../../src/core/random.ts';
import { TransferRefusedError } from '../../../src/fleet/errors.ts';
import type { RunContext } from '../../../src/fleet/run/task-scheduler.ts';
import { type CommandTaskOptions, Runner, type RunnerOptions } from '../../../src/fleet/runner.ts';
import type { Target } from '../../../src/fleet/targets/target-source.ts';
import { TargetStore } from '../../../src/fleet/targets/target-store.ts';
import { Fleet } from '../../../src/fleet/watch/fleet.ts';
import { Leases } from '../../../src/lease/leases.ts';
import { createMemoryStore } from '../../../src/store/memory/memory-store.ts';
import { DEFAULT_MAX_TTLS } from '../../../src/store/port/keyspaces.ts';
import { FakeClock } from '../../../testing/fakes/fake-clock.ts';
import { untilTold } from '../../support/run-world.ts';
import { testRuntime } from '../../support/test-runtime.ts';

interface Ran {
  readonly by: string;
  readonly target: string;
  readonly program: string | undefined;
}

/** Instances with commands on one store and one clock. No process is started. TTL 3 s. */
function commandWorld() {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  const running: Ran[] = [];
  const failed: string[] = [];
  const operator = testRuntime({ clock, store, instanceId: 'operator' });
  const targets = new TargetStore(operator);
  const fleet = new Fleet(operator, targets, 'any');

  async function start(name: string, options: RunnerOptions) {
    const instanceId = `${name}-1736598400000000000-a1b2c3d4`;
    const rt = testRuntime({ clock, store, instanceId, random: seededRandom(name.length) });
    rt.events.on('run.exited', ({ target, why }) => failed.push(`${target}: ${why}`));
    const environment = {
      targetIds: 'any' as const,
      commandTasks: ({ commands }: CommandTaskOptions) => ({
        run: async (target: Target, context: RunContext) => {
          const [program] = commands.get(target.command ?? 'default') ?? [];
          const ran = { by: name, target: target.id, program };
          running.push(ran);
          await untilTold(context);
          running.splice(running.indexOf(ran), 1);
        },
        close: async () => {},
      }),
    };
    const given = { ttl: '3s', discovery: 'off' as const, ...options };
    const runner = new Runner(rt, new Leases(rt, DEFAULT_MAX_TTLS), environment, given);
    const starting = runner.start();
    await clock.advance(0);
    await starting;
    return {
      runner,
      id: instanceId,
      owned: () => runner.manager.ownedSessions().sort(),
    };
  }

  const where = () => running.map(({ by, target, program }) => `${target} ${program} ${by}`).sort();
  return { clock, targets, fleet, start, where, failed };
}

const LISTEN = { listen: ['listen.sh'] };
const BOTH = { listen: ['listen.sh'], sync: ['sync.sh'] };

describe('targets with commands', () => {
  it('B-04 each target has its own command, and only instances that have it own the target', async () => {
    const world = commandWorld();
    await world.targets.addAll([
      { id: 'l1', command: 'listen' },
      { id: 'l2', command: 'listen' },
      { id: 's1', command: 'sync' },
      { id: 's2', command: 'sync' },
      { id: 'plain' },
    ]);
    const a = await world.start('a', { commands: LISTEN });
    const b = await world.start('b', { command: ['main.sh'], commands: { sync: ['sync.sh'] } });
    await world.clock.advance(10_000);
    expect(world.where()).toEqual([
      'l1 listen.sh a',
      'l2 listen.sh a',
      'plain main.sh b',
      's1 sync.sh b',
      's2 sync.sh b',
    ]);
    expect([a.owned(), b.owned()]).toEqual([
      ['l1', 'l2'],
      ['plain', 's1', 's2'],
    ]);
  });

  it('B-04 a target whose command no instance has is run by none, and explain says so', async () => {
    const world = commandWorld();
    await world.targets.addAll([{ id: 'x', command: 'lsten' }, { id: 'plain' }]);
    const a = await world.start('a', { commands: LISTEN });
    await world.clock.advance(10_000);
    expect(world.where()).toEqual([]);
    expect(a.runner.explain('x')).toMatchObject({ owner: null, reason: 'unplaced' });
    expect(a.runner.explain('x')?.text).toContain("no instance has its command 'lsten'");
    expect(a.runner.explain('plain')?.text).toContain('it names no command');
    const { targets } = await world.fleet.view();
    expect(targets.find(({ target }) => target === 'x')?.text).toContain(
      "no instance has its command 'lsten'. Declare it as runner.commands.lsten",
    );
    expect(await a.runner.manager.tryAcquire('x')).toBe(false);
    await world.start('b', { commands: { lsten: ['x.sh'] } });
    await world.clock.advance(5_000);
    expect(world.where()).toEqual(['x x.sh b']);
  });

  it('B-04 an instance that joins gets its share of the targets that it has the command for', async () => {
    const world = commandWorld();
    const ids = [0, 1, 2, 3, 4, 5];
    await world.targets.addAll(ids.map((i) => ({ id: `l${i}`, command: 'listen' })));
    await world.targets.addAll(ids.map((i) => ({ id: `p${i}` })));
    const a = await world.start('a', { commands: LISTEN });
    const b = await world.start('b', { command: ['main.sh'] });
    await world.clock.advance(5_000);
    expect([a.owned().length, b.owned().length]).toEqual([6, 6]);
    const c = await world.start('c', { command: ['main.sh'], commands: BOTH });
    await world.clock.advance(20_000);
    expect([a, b, c].map(({ owned }) => owned().length)).toEqual([3, 3, 6]);
    expect(c.owned().filter((id) => id.startsWith('l'))).toHaveLength(3);
    expect(world.where()).toHaveLength(12);
  });

  it('B-07 an instance that drains or stops hands its targets only to one that has their command', async () => {
    const world = commandWorld();
    await world.targets.addAll([
      { id: 'l1', command: 'listen' },
      { id: 'l2', command: 'listen' },
    ]);
    const a = await world.start('a', { commands: LISTEN });
    const b = await world.start('b', { command: ['main.sh'] });
    await world.clock.advance(3_000);
    const c = await world.start('c', { commands: BOTH });
    await world.fleet.drain(a.id);
    await world.clock.advance(10_000);
    expect([a.owned(), b.owned(), c.owned()]).toEqual([[], [], ['l1', 'l2']]);
    const stopping = c.runner.stop();
    await world.clock.advance(10_000);
    await stopping;
    expect([a.owned(), b.owned()]).toEqual([[], []]);
    await world.fleet.undrain(a.id);
    await world.clock.advance(5_000);
    expect(a.owned()).toEqual(['l1', 'l2']);
  });

  it('B-04 a change of the command acts at once, and moves the target if its owner lacks the new one', async () => {
    const world = commandWorld();
    await world.targets.add({ id: 't', command: 'listen' });
    await world.start('a', { commands: { ...LISTEN, watch: ['watch.sh'] } });
    await world.start('b', { commands: { sync: ['sync.sh'] } });
    await world.clock.advance(3_000);
    expect(world.where()).toEqual(['t listen.sh a']);
    await world.targets.update('t', { command: 'watch' });
    await world.clock.advance(1_000);
    expect(world.where()).toEqual(['t watch.sh a']);
    await world.targets.update('t', { command: 'sync' });
    await world.clock.advance(3_000);
    expect(world.where()).toEqual(['t sync.sh b']);
    await world.targets.update('t', { command: 'nothing' });
    await world.clock.advance(3_000);
    expect(world.where()).toEqual([]);
    expect(world.failed).toEqual([]);
  });

  it('B-04 a target is not moved by hand to an instance without its command', async () => {
    const world = commandWorld();
    await world.targets.add({ id: 't', command: 'listen' });
    await world.start('a', { commands: LISTEN });
    const b = await world.start('b', { commands: { sync: ['sync.sh'] } });
    await world.clock.advance(1_000);
    const refused = world.fleet.transfer('t', b.id);
    await expect(refused).rejects.toThrow(TransferRefusedError);
    await expect(refused).rejects.toMatchObject({ why: 'command' });
  });

  it('B-04 checkCommand names the commands of the instances that run, and accepts any if none runs', async () => {
    const world = commandWorld();
    await world.fleet.checkCommand('lsten');
    await world.start('a', { commands: BOTH });
    await world.fleet.checkCommand('sync');
    const refused = world.fleet.checkCommand('lsten');
    await expect(refused).rejects.toThrow(ConfigError);
    await expect(refused).rejects.toMatchObject({
      field: 'command',
      value: 'lsten',
      rule: expect.stringContaining('They have listen, sync.'),
    });
  });

  it.each([
    ['a program instead of a name', './evil.sh'],
    ['a list', ['sh', '-c', 'evil']],
    ['the name that stands for none', 'default'],
    ['empty text', ''],
    ['an object', { command: ['sh'] }],
  ])('B-04 a target cannot bring a command: %s is refused', async (_, command) => {
    const world = commandWorld();
    const refused = world.targets.add({ id: 't', command: command as string });
    await expect(refused).rejects.toMatchObject({ code: 'CONFIG_INVALID', field: 'command' });
    expect(await world.targets.get('t')).toBeNull();
  });

  it.each<[string, RunnerOptions, string]>([
    ['commands', { commands: {} }, 'commands'],
    ['commands.default', { commands: { default: ['x'] } }, 'commands.default'],
    ['commands.a', { commands: { a: [] } }, 'commands.a'],
    ['commands.a b', { commands: { 'a b': ['x'] } }, 'commands.a b'],
    ['run beside command', { run: () => {}, command: ['x'], commands: LISTEN }, 'run'],
    ['nothing', {}, 'run'],
  ])('B-04 options are checked: %s', async (_, options, field) => {
    const world = commandWorld();
    await expect(world.start('a', options)).rejects.toMatchObject({ field });
  });
});
