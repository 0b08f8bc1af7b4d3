import { expect, it } from 'vitest';
import type { StartRequest } from '../../src/store/port/intent-store.ts';
import { workerWorld } from '../support/worker-world.ts';

const CALL = { timeoutMs: 1_000 };
const WANTED = { kind: 'live', type: 'stream.start', target: 'x', profile: 'hd', bucket: '0' };
const STATUS = { reason: null, outcome: null, worker: 'dead', slot: null };

/** Bodies and statuses that another program has written into a session. */
const GARBAGE: readonly [string, Pick<StartRequest, 'body' | 'status'>][] = [
  ['a body that is no JSON', { body: 'garbage', status: JSON.stringify(STATUS) }],
  ['a body without its fields', { body: '{}', status: JSON.stringify(STATUS) }],
  ['a status that is no object', { body: JSON.stringify(WANTED), status: 'null' }],
  [
    'the process group of the system',
    { body: JSON.stringify(WANTED), status: JSON.stringify({ ...STATUS, group: { group: 1 } }) },
  ],
];

function withBad(world: ReturnType<typeof workerWorld>, garbage: (typeof GARBAGE)[number][1]) {
  const plain = { tenant: 'acme', kind: 'live', label: 'l', client: 'c', priority: 5 };
  return world.store.intents.start({ id: 'bad', keys: ['k'], ...plain, ...garbage }, CALL);
}

it.each(GARBAGE)(
  'P-04 a new session with %s does not keep a worker from the others, and is reported once',
  async (_, garbage) => {
    const world = workerWorld();
    await withBad(world, garbage);
    const { worker, happened } = await world.worker();
    await worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING', 1_000);
    await world.clock.advance(100_000);
    await world.stop(id);
    await world.reaches(id, 'ENDED', 1_000);
    const names = happened.map(({ name }) => name);
    expect(names).not.toContain('worker.stalled');
    expect(names.filter((name) => name === 'session.unreadable')).toHaveLength(1);
    await worker.stop();
  },
);

it.each(GARBAGE)(
  'P-04 a session of a dead worker with %s does not keep a worker from the others of that worker',
  async (_, garbage) => {
    const world = workerWorld();
    const dead = await world.worker({ name: 'box' });
    await dead.worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING');
    await withBad(world, garbage);
    const { status } = garbage;
    await world.store.intents.advance('bad', { ifRevision: 1, state: 'RUNNING', status }, CALL);
    world.hostWorld.dead.add(dead.instanceId);
    dead.faults.refuse = true;
    const next = await world.worker({ name: 'box' });
    await next.worker.start();
    await world.until(
      async () => (await world.session(id)).worker === next.instanceId,
      'the next worker has it',
      5_000,
    );
    expect(next.happened.map(({ name }) => name)).not.toContain('worker.stalled');
    await next.worker.stop();
  },
);

it('P-04 a worker ends the session that it runs, even if its record became garbage meanwhile', async () => {
  const world = workerWorld();
  const { worker, happened } = await world.worker({ resources: { tuners: 1 } });
  await worker.start();
  const id = await world.start('channel-7');
  const { revision } = await world.reaches(id, 'RUNNING');
  const garbled = { ifRevision: revision, state: 'RUNNING', status: 'garbage' } as const;
  await world.store.intents.advance(id, garbled, CALL);
  await world.clock.advance(10_000);
  expect(worker.sessions).toBe(1);
  world.played[0]?.end();
  // The status that it writes at the end is readable again.
  const over = await world.until(() => world.session(id).catch(() => null), 'it ends', 2_000);
  expect(over).toMatchObject({ reason: 'R_PIPELINE_ENDED', slot: 'tuner:1' });
  await world.reaches(id, 'ENDED', 2_000);
  expect(await world.lease('tuner:1')).toMatchObject({ kind: 'free' });
  expect(happened.map(({ name }) => name)).not.toContain('worker.stalled');
  await worker.stop();
});
