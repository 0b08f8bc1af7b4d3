import { afterAll, describe, expect, it, vi } from 'vitest';
import type { IntentSession } from '../../src/intents/intent-session.ts';
import { until } from '../support/until.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { redisGrounds, sqliteGrounds } from './support/intent-ground.ts';
import {
  RECOVERY_MS,
  SOON_MS,
  type Strike,
  type WorkerProcess,
  WorkerWorld,
} from './support/worker-ground.ts';

leaveNothingBehind();
// Leases run out in real time, one after the other, on a machine that may be busy.
vi.setConfig({ testTimeout: 90_000 });

const GROUNDS = [sqliteGrounds(), redisGrounds()];
afterAll(() => Promise.all(GROUNDS.map((kind) => kind.end())));

const SIGNALS = ['SIGKILL', 'SIGSTOP'] as const;
const PLACES = GROUNDS.flatMap((kind) => SIGNALS.map((signal) => ({ kind, signal })));
/** More than it takes until both workers have had one. */
const MOST_STARTS = 40;
const LONG_MS = 600_000;

type Point = Omit<Strike, 'signal'>;

const STARTING: readonly (readonly [string, Point])[] = [
  [
    'it was given the start, before it has said so',
    { verb: 'intents.advance', saying: '"state":"STARTING"', when: 'before' },
  ],
  [
    'it has said that it starts, before the delivery is acknowledged',
    { verb: 'intents.advance', saying: '"state":"STARTING"', when: 'after' },
  ],
  ['the delivery is acknowledged', { verb: 'streams.ack', when: 'after' }],
  [
    'it has the lease of the channel',
    { verb: 'leases.acquire', saying: 'service:', when: 'after' },
  ],
  ['it has its slot', { verb: 'leases.acquire', saying: 'tuner:', when: 'after' }],
  [
    'the pipeline was started, before it has said so',
    { verb: 'intents.advance', saying: '"state":"RUNNING"', when: 'before' },
  ],
  [
    'it has said that it runs',
    { verb: 'intents.advance', saying: '"state":"RUNNING"', when: 'after' },
  ],
];

const STOPPING: readonly (readonly [string, Point])[] = [
  ['its pipeline has ended', { verb: 'leases.release', saying: 'tuner:', when: 'before' }],
  ['its slot is released', { verb: 'leases.release', saying: 'tuner:', when: 'after' }],
  [
    'the lease of its channel is released',
    { verb: 'leases.release', saying: 'service:', when: 'after' },
  ],
  [
    'it has said that it has ended',
    { verb: 'intents.advance', saying: '"state":"ENDED"', when: 'after' },
  ],
];

interface Pair {
  /** Stands still, or is killed, at a step. */
  readonly doomed: WorkerProcess;
  readonly healthy: WorkerProcess;
}

async function startPair(world: WorkerWorld, strikes: Strike): Promise<Pair> {
  const resources = { tuners: MOST_STARTS };
  const pipelines = { live: world.smallPipeline(LONG_MS, LONG_MS) };
  const [doomed, healthy] = await Promise.all([
    world.worker({ resources, pipelines, strikes }),
    world.worker({ resources, pipelines }),
  ]);
  return { doomed, healthy };
}

/** Starts channels until the doomed one has been given one, or was struck by it: that one comes last. */
async function startUntil(
  world: WorkerWorld,
  { doomed, healthy }: Pair,
  isIt: (session: IntentSession) => boolean,
): Promise<string[]> {
  const isOver = (session: IntentSession) => doomed.told('struck').length > 0 || isIt(session);
  const ids: string[] = [];
  while (ids.length < MOST_STARTS) {
    const id = await world.start(`channel-${ids.length}`);
    ids.push(id);
    const look = async () => {
      const session = await world.session(id);
      const isTheirs = healthy.hasTaken(session) && session.state === 'RUNNING';
      return isOver(session) || isTheirs ? session : null;
    };
    const session = await until(look, { what: `${id} to be taken`, deadlineMs: SOON_MS });
    if (isOver(session)) return ids;
  }
  throw new Error(`${MOST_STARTS} channels were started, and the doomed worker was given none`);
}

/** It wakes late, finds that all was done without it, and does no harm. */
async function wakeLate(world: WorkerWorld, { doomed }: Pair): Promise<void> {
  const [sessions, leases] = [await world.sessions(), await world.leases()];
  await doomed.child.thaw();
  const isIdle = async () => (await doomed.status()).sessions === 0;
  await until(isIdle, { what: 'it to find that it has nothing', deadlineMs: SOON_MS });
  expect(await doomed.status()).toMatchObject({ state: 'running', held: 0 });
  expect(await world.sessions()).toEqual(sessions);
  const now = await world.leases();
  expect(now.map(({ key, fence }) => [key, fence])).toEqual(
    leases.map(({ key, fence }) => [key, fence]),
  );
}

/** Nothing is left of what was started, and it was never done twice at once. */
async function windUp(world: WorkerWorld, ids: readonly string[]): Promise<void> {
  await Promise.all(ids.map((id) => world.stop(id)));
  const ended = await Promise.all(ids.map((id) => world.ends(id)));
  for (const session of ended)
    expect(session).toMatchObject({ reason: 'R_STOPPED', outcome: 'STOPPED' });
  await world.expectAllFree();
  world.expectSound();
}

/** It runs, and the store says so, and as which processes. */
async function runsAtOther(world: WorkerWorld, { healthy }: Pair, id: string): Promise<void> {
  const isThere = async () => {
    const session = await world.session(id);
    const isTheirs = healthy.hasTaken(session) && session.state === 'RUNNING';
    // What the store says of processes may be of those before, which are dead.
    return isTheirs && world.survivors().includes(session.group?.group ?? 0);
  };
  await until(isThere, { what: `${id} to run at the other one`, deadlineMs: RECOVERY_MS });
}

describe.concurrent.each(PLACES)(
  '$signal of a worker during a start, over $kind.name, when',
  ({ kind, signal }) => {
    it.each(STARTING)('I-13 %s: the session runs at the other one', async (_, point) => {
      await using world = await WorkerWorld.on(kind);
      const strikes = { ...point, signal };
      const pair = await startPair(world, strikes);
      const ids = await startUntil(world, pair, () => false);
      await pair.doomed.isStruck(strikes);
      const id = ids.at(-1) ?? '';
      await runsAtOther(world, pair, id);
      if (signal === 'SIGSTOP') await wakeLate(world, pair);
      await windUp(world, ids);
    });
  },
);

describe.concurrent.each(PLACES)(
  '$signal of a worker during a stop, over $kind.name, when',
  ({ kind, signal }) => {
    it.each(STOPPING)('I-13 %s: the session is ended by the other one', async (_, point) => {
      await using world = await WorkerWorld.on(kind);
      const strikes = { ...point, signal };
      const pair = await startPair(world, strikes);
      const isDoomed = (session: IntentSession) =>
        pair.doomed.hasTaken(session) && session.state === 'RUNNING';
      const ids = await startUntil(world, pair, isDoomed);
      const id = ids.at(-1) ?? '';
      await world.begins(id);
      await world.stop(id);
      await pair.doomed.isStruck(strikes);
      const ended = await world.ends(id, RECOVERY_MS);
      expect(ended).toMatchObject({ reason: 'R_STOPPED', outcome: 'STOPPED' });
      if (signal === 'SIGSTOP') await wakeLate(world, pair);
      expect(world.pipelines().filter(({ session }) => session === id)).toHaveLength(1);
      await windUp(world, ids);
    });
  },
);
