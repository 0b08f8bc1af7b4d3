import { describe, expect, it } from 'vitest';
import { backoff } from '../../src/core/backoff.ts';
import { ConfigError, StoreUnreachableError } from '../../src/core/errors.ts';
import { seededRandom } from '../../src/core/random.ts';
import { retryStore } from '../../src/core/retry.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

describe('backoff', () => {
  it('doubles its pauses from minMs to maxMs, and starts again after reset', () => {
    const pauses = backoff({ minMs: 100, maxMs: 500 });
    expect([1, 2, 3, 4, 5].map(() => pauses.nextMs())).toEqual([100, 200, 400, 500, 500]);
    pauses.reset();
    expect(pauses.nextMs()).toBe(100);
  });

  it('shortens each pause by up to a tenth when it has a source of chance', () => {
    const pauses = backoff({ minMs: 100, maxMs: 100 }, seededRandom(1));
    for (let i = 0; i < 100; i++) {
      const pauseMs = pauses.nextMs();
      expect(pauseMs).toBeGreaterThan(90);
      expect(pauseMs).toBeLessThanOrEqual(100);
    }
  });
});

describe('retryStore', () => {
  const unreachable = () =>
    new StoreUnreachableError({ store: 'redis', operation: 'read', why: 'no route' });

  it('retries until the store answers', async () => {
    const clock = new FakeClock();
    let tries = 0;
    const answer = retryStore({ clock, random: seededRandom(1) }, never(), async () => {
      tries += 1;
      if (tries < 4) throw unreachable();
      return 'an answer';
    });
    await clock.advance(1_000);
    await expect(answer).resolves.toBe('an answer');
    expect(tries).toBe(4);
  });

  it('rethrows an error that waiting does not cure', async () => {
    const error = new ConfigError({ field: 'a', value: 1, rule: 'it is 2' });
    const failing = retryStore(
      { clock: new FakeClock(), random: seededRandom(1) },
      never(),
      async () => {
        throw error;
      },
    );
    await expect(failing).rejects.toBe(error);
  });

  it("rejects with the signal's reason when it fires during a pause", async () => {
    const clock = new FakeClock();
    const stopped = new AbortController();
    const failing = retryStore({ clock, random: seededRandom(1) }, stopped.signal, async () => {
      throw unreachable();
    });
    const rejected = expect(failing).rejects.toBe('stopped');
    await clock.advance(10);
    stopped.abort('stopped');
    await rejected;
  });
});

function never(): AbortSignal {
  return new AbortController().signal;
}
