import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { createMemoryStore, open } from '../../src/index.ts';
import { Redlock, type RedlockClient } from '../../src/redlock/index.ts';
import { failure } from './support/lockers.ts';

/** A store that tells of its end, as the clients of Redis do. */
function client(): EventEmitter & RedlockClient {
  return Object.assign(new EventEmitter(), createMemoryStore());
}
/** The instance that has a lock. */
const instanceOf = ({ value }: { value: string }) => value.slice(0, value.indexOf('/'));
const ONCE = { retryCount: 0 };

describe('a client', () => {
  it('has one Holdfast and one listener, however many Redlocks are made with it', async () => {
    const shared = client();
    const redlocks = Array.from({ length: 100 }, () => new Redlock([shared], ONCE));
    const locking = redlocks.map((redlock, i) => redlock.acquire([`r${i}`], 5_000));
    const locks = await Promise.all(locking);
    expect(new Set(locks.map(instanceOf)).size).toBe(1);
    expect([shared.listenerCount('end'), shared.listenerCount('ready')]).toEqual([1, 1]);
    // They exclude each other as before.
    await failure(new Redlock([shared], ONCE).acquire(['r0'], 5_000));
    await redlocks[0]?.quit();
  });

  it('has another Holdfast for other options, and for another client', async () => {
    const shared = client();
    const [plain, same] = [new Redlock([shared]), new Redlock([shared], {}, { name: undefined })];
    const [named, other] = [new Redlock([shared], {}, { name: 'n' }), new Redlock([client()])];
    const all = [plain, same, named, other];
    const locks = await Promise.all(all.map((redlock, i) => redlock.acquire([`r${i}`], 5_000)));
    const instances = locks.map(instanceOf);
    expect(instances[0]).toBe(instances[1]);
    expect(new Set(instances).size).toBe(3);
    await Promise.all(all.map((redlock) => redlock.quit()));
  });

  it('that ends takes its Holdfast along, and grants again when it is ready again', async () => {
    const shared = client();
    const redlock = new Redlock([shared], ONCE);
    const lock = await redlock.acquire(['r'], 5_000);
    const lost = new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
    shared.emit('end');
    await lost;
    expect(lock.isHeld()).toBe(false);
    const error = await failure(redlock.acquire(['s'], 5_000));
    expect(error.message).toBe(
      'The operation was unable to achieve a quorum during its retry window. Connection is closed.',
    );
    shared.emit('ready');
    const again = await redlock.acquire(['s'], 5_000);
    expect(instanceOf(again)).not.toBe(instanceOf(lock));
    await redlock.quit();
  });

  it('that has ended before it was passed grants nothing', async () => {
    const ended = Object.assign(client(), { status: 'end' });
    const error = await failure(new Redlock([ended], ONCE).acquire(['r'], 5_000));
    expect(error.message).toMatch(/Connection is closed\.$/);
  });

  it('counts extensions of every Redlock, on a Holdfast of the caller too', async () => {
    await using holdfast = await open('memory:');
    const redlocks = [new Redlock(holdfast), new Redlock(holdfast)];
    const counts = redlocks.map((redlock, i) =>
      redlock.using([`r${i}`], 700, { automaticExtensionThreshold: 500 }, async (_, context) => {
        await new Promise((resolve) => holdfast.on('lease.extended', resolve));
        return context.extensions;
      }),
    );
    for (const count of await Promise.all(counts)) expect(count).toBeLessThanOrEqual(1);
  });
});
