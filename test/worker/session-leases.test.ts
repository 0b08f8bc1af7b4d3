import { describe, expect, it } from 'vitest';
import type { Store } from '../../src/store/port/store.ts';
import { workerWorld } from '../support/worker-world.ts';

const CALL = { timeoutMs: 1_000 };
const BEN = { tenant: 'acme', client: 'ben' };

/**
 * The store carries out requests about leases at once, and answers them in order when the test
 * opens it.
 */
function holdAnswers({ leases }: Store): { granted: () => number; open: () => void } {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  let granted = 0;
  const [acquire, read] = [leases.acquire, leases.read];
  leases.acquire = async (...asked) => {
    const replies = await acquire(...asked);
    granted += replies.filter(({ kind }) => kind === 'granted').length;
    await opened;
    return replies;
  };
  leases.read = async (...asked) => {
    await opened;
    return read(...asked);
  };
  return { granted: () => granted, open: () => open() };
}

describe('a start that is stopped while a lease is granted to it', () => {
  it('I-14 I-08 is not ENDED before its slot is released', async () => {
    const world = workerWorld();
    const { worker, store } = await world.worker({
      resources: { tuners: { slots: 1, wait: '60s' } },
    });
    await worker.start();
    const first = await world.start('a');
    await world.reaches(first, 'RUNNING');
    const next = await world.start('b');
    await world.reaches(next, 'STARTING');
    await world.clock.advance(1_000);
    const answers = holdAnswers(store);
    await world.stop(first);
    await world.until(() => answers.granted() > 0, 'the slot is granted');
    await world.stop(next);
    await world.clock.advance(500);
    expect((await world.session(next)).state).toBe('STOPPING');
    answers.open();
    await world.reaches(next, 'ENDED', 1_000);
    expect((await world.lease('tuner:1')).kind).toBe('free');
  });

  it('I-14 I-08 is not ENDED before its channel is released', async () => {
    const world = workerWorld();
    const ended = await world.start('channel-7', 'sd', BEN);
    await world.stop(ended, BEN);
    const held = { key: 'lease:service:channel-7', holder: `another/${ended}` };
    const call = { ...CALL, ttlMs: 60_000, inbox: 'another' };
    const [reply] = await world.store.leases.acquire([held], call);
    if (reply?.kind !== 'granted') throw new Error('it was not granted');
    const { worker, store } = await world.worker();
    await worker.start();
    const next = await world.start('channel-7');
    await world.clock.advance(500);
    const answers = holdAnswers(store);
    await world.store.leases.release([{ ...held, fence: reply.fence }], CALL);
    await world.until(() => answers.granted() > 0, 'the channel is granted');
    await world.stop(next);
    await world.clock.advance(500);
    expect((await world.session(next)).state).toBe('STOPPING');
    answers.open();
    await world.reaches(next, 'ENDED', 1_000);
    expect((await world.lease('service:channel-7')).kind).toBe('free');
  });
});
