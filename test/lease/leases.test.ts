import { describe, expect, it } from 'vitest';
import { world } from '../support/world.ts';

describe('acquiring', () => {
  it('K-01 a grant has a fence, and a refusal names the holder', async () => {
    const { actor } = world();
    const [a, b] = [await actor(), await actor()];
    const lease = await a.take('k');
    expect(lease.holder).toMatch(new RegExp(`^${a.holdfast.instanceId}/`));
    const refused = await b.holdfast.acquire('k');
    expect(refused).toEqual({
      ok: false,
      key: 'k',
      holder: lease.holder,
      fence: lease.fence,
      expiresInMs: 30_000,
      reason: 'held',
      waitedMs: 0,
    });
  });

  it('K-02 the fences of a key strictly increase, whichever holder is granted it', async () => {
    const { clock, actor } = world();
    const actors = [await actor(), await actor()];
    let last = 0;
    for (let n = 0; n < 10; n++) {
      const lease = await actors[n % 2]?.take('k', { ttl: '3s' });
      expect(lease?.fence).toBeGreaterThan(last);
      last = lease?.fence ?? 0;
      if (n % 3 === 0) clock.jumpWall(-60_000);
      await lease?.release();
    }
  });

  it('K-02 a holder whose write was refused acquires again above the fence that the resource has seen', async () => {
    const { actor } = world();
    const { take } = await actor();
    const seen = 4_000_000_000_000_000;
    expect((await take('k', { fenceFloor: seen })).fence).toBe(seen);
  });

  it('K-13 two calls in one process exclude each other', async () => {
    const { actor } = world();
    const { take, holdfast } = await actor();
    await take('k');
    expect((await holdfast.acquire('k')).ok).toBe(false);
  });

  it('K-01 the same named holder waits until its earlier work has ended, and gets a new fence', async () => {
    const { clock, actor } = world();
    const a = await actor();
    const first = await a.take('k', { holder: 'me', ttl: '3s', untilReleased: true });
    expect(await a.holdfast.acquire('k', { holder: 'me' })).toMatchObject({
      ok: false,
      reason: 'held',
      holder: 'me',
    });
    a.faults.hang = true;
    await clock.advance(3_100);
    a.faults.hang = false;
    expect(first.state).toBe('lost');
    expect(await a.holdfast.acquire('k', { holder: 'me' })).toMatchObject({
      ok: false,
      reason: 'unsettled',
    });
    const waiting = a.take('k', { holder: 'me', wait: '10s' });
    await clock.advance(1_000);
    await first.release();
    await clock.advance(0);
    expect((await waiting).fence).toBeGreaterThan(first.fence);
  });

  it('K-05 a release that does not wait for its work leaves the key to expire, and no timer behind', async () => {
    const { clock, actor } = world();
    const { take } = await actor();
    const lease = await take('k');
    const timers = clock.pendingTimers;
    const releasing = lease.release({ settled: new Promise(() => {}), within: 0 });
    expect(clock.pendingTimers).toBeLessThanOrEqual(timers);
    expect(await releasing).toEqual({ released: false, reason: 'unsettled' });
    expect(lease.isHeld()).toBe(false);
  });

  it('K-01 a lost lease that is never released does not keep its named holder from the key', async () => {
    const { clock, store, actor } = world();
    const a = await actor();
    const first = await a.take('k', { holder: 'me', ttl: '3s' });
    const { fence } = first;
    await store.leases.release([{ key: 'lease:k', holder: 'me', fence }], { timeoutMs: 100 });
    const other = await (await actor()).take('k', { ttl: '1s' });
    await clock.advance(1_200);
    expect(first.lossReason).toBe('taken_over');
    await other.release();
    // It was good until its deadline: until then work under it may go on.
    const unsettled = { ok: false, reason: 'unsettled' };
    const refused = await a.holdfast.acquire('k', { holder: 'me' });
    expect(refused).toMatchObject(unsettled);
    const again = a.take('k', { holder: 'me', wait: '10s' });
    await clock.advance(1_900);
    expect((await again).fence).toBeGreaterThan(other.fence);
  });

  it('K-01 a named holder of withLease waits for its function to return, even after a loss', async () => {
    const { clock, actor } = world();
    const a = await actor();
    let finish = () => {};
    const work = new Promise<void>((resolve) => (finish = resolve));
    const options = { holder: 'me', ttl: '3s' };
    const done = a.holdfast.withLease('k', () => work, options);
    await clock.advance(100);
    a.faults.hang = true;
    await clock.advance(10_000);
    a.faults.hang = false;
    const unsettled = { ok: false, reason: 'unsettled' };
    expect(await a.holdfast.acquire('k', options)).toMatchObject(unsettled);
    finish();
    await done;
    expect((await a.take('k', options)).isHeld()).toBe(true);
  });

  it('K-03 a lease that is held for days keeps its fence record', async () => {
    const { clock, actor } = world();
    const { take, holdfast } = await actor({ maxTtl: '12h' });
    const lease = await take('k', { ttl: '12h' });
    await clock.advance(72 * 3_600_000);
    expect(lease.isHeld()).toBe(true);
    expect(await holdfast.inspect('k')).toMatchObject({ kind: 'held', fence: lease.fence });
    await clock.advance(20 * 3_600_000);
    expect(await holdfast.inspect('k')).toMatchObject({ fence: lease.fence });
  });

  it('K-03 a grant whose answer was lost is released by the fence that the key shows', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    a.faults.loseReplies = true;
    const outcome = expect(a.holdfast.acquire('k', { ttl: '30s' })).rejects.toMatchObject({
      code: 'OUTCOME_UNKNOWN',
    });
    await clock.advance(5_000);
    await outcome;
    expect((await b.holdfast.acquire('k')).ok).toBe(false);
    a.faults.loseReplies = false;
    await clock.advance(1_000);
    expect(a.names()).toEqual(['lease.returned']);
    expect((await b.take('k')).isHeld()).toBe(true);
  });

  it('K-03 an acquire that is repeated after a lost answer keeps its lease', async () => {
    const { clock, actor } = world();
    const a = await actor();
    a.faults.loseReplies = true;
    const waiting = a.take('k', { ttl: '3s', wait: '10s' });
    await clock.advance(600);
    a.faults.loseReplies = false;
    await clock.advance(10_000);
    const lease = await waiting;
    expect(lease.isHeld()).toBe(true);
    expect(a.names()).toEqual(['lease.acquired']);
  });

  it('K-07 a request that a blocked event loop has made too late is not sent', async () => {
    const { clock, actor } = world();
    const { holdfast } = await actor();
    // The first request of a turn is sent at once, the others at its end.
    const sent = holdfast.acquire('other', { ttl: '3s' });
    const acquiring = holdfast.acquire('k', { ttl: '3s' });
    clock.block(600);
    expect(await sent).toMatchObject({ ok: true });
    await expect(acquiring).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
    expect(await holdfast.inspect('k')).toMatchObject({ kind: 'free' });
  });

  it('K-14 every grant, refusal and loss emits one event with its facts', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    const { fence, holder } = await a.take('k', { ttl: '3s' });
    await b.holdfast.acquire('k');
    a.faults.refuse = true;
    await clock.advance(2_850);
    const facts = { leaseClass: 'lease', key: 'k', holder, fence };
    expect(a.happened).toEqual([
      {
        name: 'lease.acquired',
        ...facts,
        ttlMs: 3_000,
        remainingMs: 2_850,
        waitedMs: 0,
        tookMs: 0,
      },
      {
        name: 'lease.uncertain',
        ...facts,
        reason: 'renewal_failed',
        remainingMs: expect.any(Number),
      },
      { name: 'lease.lost', ...facts, reason: 'expired', heldForMs: 2_850, lateMs: 0 },
    ]);
    expect(b.happened).toEqual([
      {
        name: 'lease.refused',
        leaseClass: 'lease',
        key: 'k',
        holder: `${b.holdfast.instanceId}/0`,
        by: holder,
        fence,
        reason: 'held',
        expiresInMs: 3_000,
      },
    ]);
  });

  it('B-29 a lease counts as held until its release is sent, however late the answer comes', async () => {
    const { clock, actor } = world();
    const a = await actor();
    const lease = await a.take('k', { ttl: '3s' });
    await clock.advance(400);
    a.faults.loseReplies = true;
    const releasing = lease.release();
    await clock.advance(500);
    await releasing;
    expect(a.happened.at(-1)).toMatchObject({ name: 'lease.abandoned', heldForMs: 400 });
  });

  it('K-14 a listener that throws does not affect leases or other listeners', async () => {
    const { actor } = world();
    const { holdfast, take } = await actor();
    const failures: unknown[] = [];
    holdfast.on('lease.acquired', () => {
      throw new Error('bad logger');
    });
    holdfast.on('listener.failed', (facts) => failures.push(facts));
    expect((await take('k')).isHeld()).toBe(true);
    expect(failures).toMatchObject([{ event: 'lease.acquired' }]);
  });
});

describe('releasing', () => {
  it('K-08 a release keeps and renews the lease until the work has ended', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    const lease = await a.take('k', { ttl: '3s' });
    let settle = () => {};
    const settled = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const releasing = lease.release({ settled });
    expect(lease.state).toBe('releasing');
    await clock.advance(10_000);
    expect((await b.holdfast.acquire('k')).ok).toBe(false);
    expect(() => lease.assertHeld()).not.toThrow();
    settle();
    expect(await releasing).toEqual({ released: true });
    expect((await b.take('k')).fence).toBeGreaterThan(lease.fence);
  });

  it('K-08 work that does not end is never handed over: its key is left to expire', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    const lease = await a.take('k', { ttl: '3s' });
    const releasing = lease.release({ settled: new Promise(() => {}), within: '1s' });
    await clock.advance(1_000);
    expect(await releasing).toEqual({ released: false, reason: 'unsettled' });
    expect((await b.holdfast.acquire('k')).ok).toBe(false);
    await clock.advance(3_000);
    expect((await b.take('k')).isHeld()).toBe(true);
    expect(a.names()).toEqual(['lease.acquired', 'lease.releasing', 'lease.abandoned']);
  });

  it('K-08 a release that waits for its work without a limit can be given up, and close gives it up', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    const [first, second] = [await a.take('k', { ttl: '3s' }), await a.take('l', { ttl: '3s' })];
    const settled = new Promise(() => {});
    const [released, transferred] = [
      first.release({ settled }),
      second.transfer('somebody', { settled }),
    ];
    await clock.advance(10_000);
    expect((await b.holdfast.acquire('k')).ok).toBe(false);
    first.giveUp();
    expect(await released).toEqual({ released: false, reason: 'unsettled' });
    await clock.advance(3_000);
    expect((await b.take('k')).isHeld()).toBe(true);
    expect((await b.holdfast.acquire('l')).ok).toBe(false);
    const closing = Promise.all([a, b].map(({ holdfast }) => holdfast.close({ within: '1s' })));
    await clock.advance(1_000);
    await closing;
    expect(await transferred).toEqual({ transferred: false, reason: 'unsettled' });
    expect(clock.pendingTimers).toBe(0);
  });

  it('K-08 a release after a loss does nothing: the new holder keeps its lease', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    const lease = await a.take('k', { ttl: '3s' });
    a.faults.hang = true;
    await clock.advance(3_100);
    const newer = await b.take('k', { ttl: '3s' });
    a.faults.hang = false;
    expect(await lease.release()).toEqual({ released: false, reason: 'expired' });
    await clock.advance(5_000);
    expect(newer.isHeld()).toBe(true);
  });

  it('K-08 a release that the store did not answer is repeated later', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    const lease = await a.take('k', { ttl: '30s' });
    a.faults.refuse = true;
    expect(await lease.release()).toEqual({ released: false, reason: 'unknown' });
    a.faults.refuse = false;
    await clock.advance(1_000);
    expect(a.names()).toEqual([
      'lease.acquired',
      'lease.releasing',
      'lease.abandoned',
      'lease.returned',
    ]);
    expect((await b.take('k')).isHeld()).toBe(true);
  });

  it('K-03 no renewal follows a release, so the key is not restored', async () => {
    const { clock, store, actor } = world();
    const a = await actor();
    const lease = await a.take('k', { ttl: '3s' });
    await clock.advance(950);
    await lease.release();
    await clock.advance(60_000);
    expect(await store.leases.read(['lease:k'], { timeoutMs: 1 })).toMatchObject([
      { kind: 'free' },
    ]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('K-08 a lease is released once, however often release is called', async () => {
    const { clock, actor } = world();
    const a = await actor();
    const lease = await a.take('k');
    await expect(lease.release({ within: 'soon' })).rejects.toMatchObject({ field: 'within' });
    await expect(lease.transfer('!no')).rejects.toMatchObject({ field: 'successor' });
    expect(lease.isHeld()).toBe(true);
    expect(await Promise.all([lease.release(), lease.release()])).toEqual([
      { released: true },
      { released: true },
    ]);
    expect(await lease.transfer('b')).toEqual({ transferred: false, reason: 'released' });
    const other = await a.take('j');
    await other.transfer('b');
    expect(await other.release()).toEqual({ released: false, reason: 'released' });
    await clock.advance(60_000);
    expect(a.names().filter((name) => name === 'lease.released')).toHaveLength(1);
  });

  it('K-13 await using releases the lease at the end of the block', async () => {
    const { actor } = world();
    const { take, holdfast } = await actor();
    {
      await using lease = await take('k');
      expect(lease.isHeld()).toBe(true);
    }
    expect(await holdfast.inspect('k')).toMatchObject({ kind: 'free' });
  });

  it('K-13 withLease passes signal and fence to the work, and releases the lease after it', async () => {
    const { actor } = world();
    const { holdfast } = await actor();
    const fence = await holdfast.withLease('k', async (held) => {
      held.assertHeld();
      expect(held.isHeld()).toBe(true);
      expect(held.signal.aborted).toBe(false);
      await expect(holdfast.withLease('k', () => 1)).rejects.toMatchObject({
        code: 'LEASE_HELD',
        reason: 'held',
      });
      return held.fence;
    });
    expect(await holdfast.inspect('k')).toEqual({ kind: 'free', fence });
  });

  it('K-13 an error of the release never masks the error of the work', async () => {
    const { clock, actor } = world();
    const { holdfast, faults } = await actor();
    const failing = holdfast.withLease('k', () => {
      faults.refuse = true;
      throw new Error('mine');
    });
    await expect(failing).rejects.toThrow('mine');
    await clock.advance(60_000);
  });

  it('K-09 transfer names the successor, which claims with a fence of its own', async () => {
    const { clock, actor } = world();
    const [a, b, c] = [await actor(), await actor(), await actor()];
    const lease = await a.take('k');
    const waiting = b.take('k', { holder: `${b.holdfast.instanceId}/me`, wait: '20s' });
    await clock.advance(100);
    const result = await lease.transfer(`${b.holdfast.instanceId}/me`);
    expect(result.transferred).toBe(true);
    expect((await c.holdfast.acquire('k')).ok).toBe(false);
    await clock.advance(0);
    const claimed = await waiting;
    expect(result.transferred && claimed.fence > result.fence && result.fence > lease.fence).toBe(
      true,
    );
    expect(lease.state).toBe('released');
  });

  it('K-09 a key that its successor does not claim is free after the claim window', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    await (await a.take('k')).transfer('nobody');
    await clock.advance(1_999);
    expect((await b.holdfast.acquire('k')).ok).toBe(false);
    await clock.advance(1);
    expect((await b.take('k')).isHeld()).toBe(true);
  });

  it('K-09 revoke leaves a tombstone, and the revoked instance does not ask for the key for one TTL', async () => {
    const { clock, actor } = world();
    const [a, b, operator] = [await actor(), await actor(), await actor()];
    const lease = await a.take('k', { ttl: '3s' });
    expect(await operator.holdfast.revoke('k', { reason: 'stuck' })).toMatchObject({
      revoked: true,
      holder: lease.holder,
      mayActForMs: 3_000,
    });
    expect(await b.holdfast.acquire('k')).toMatchObject({ ok: false, reason: 'revoked' });
    await clock.advance(1_100);
    expect(lease.state).toBe('lost');
    expect(a.happened.at(-1)).toMatchObject({ name: 'lease.lost', reason: 'revoked' });
    await clock.advance(1_900);
    expect(await a.holdfast.acquire('k')).toMatchObject({
      ok: false,
      reason: 'revoked',
      expiresInMs: expect.any(Number),
    });
    const newer = await b.take('k');
    expect(newer.fence).toBeGreaterThan(lease.fence);
    await newer.release();
    await clock.advance(3_000);
    expect((await a.take('k')).isHeld()).toBe(true);
  });

  it('K-09 a forced revocation frees the key at once, and returns for how long two holders may act', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    const lease = await a.take('k', { ttl: '3s' });
    expect(await b.holdfast.revoke('k', { reason: 'now', force: true })).toMatchObject({
      mayActForMs: 3_000,
    });
    const newer = await b.take('k');
    await newer.release();
    await clock.advance(1_100);
    expect(lease.state).toBe('lost');
    const again = await b.holdfast.revoke('k', { reason: 'again' });
    expect(again).toMatchObject({ revoked: false, holder: null });
  });

  it('K-09 a revocation by fence does not touch the next holder, and names it', async () => {
    const { actor } = world();
    const [a, b, operator] = [await actor(), await actor(), await actor()];
    const first = await a.take('k');
    await first.release();
    const next = await b.take('k');
    const options = { reason: 'stuck', force: true, fence: first.fence };
    expect(await operator.holdfast.revoke('k', options)).toEqual({
      ...{ revoked: false, holder: next.holder, fence: next.fence },
    });
    expect(next.isHeld()).toBe(true);
    expect(await next.renew()).toBe(true);
  });

  it('K-09 the error of a revocation without an answer names the fence to repeat it with', async () => {
    const { clock, actor } = world();
    const [a, b, operator] = [await actor(), await actor(), await actor()];
    const { fence } = await a.take('k');
    const once = { reason: 'stuck', force: true, fence };
    operator.faults.loseReplies = true;
    const outcome = expect(operator.holdfast.revoke('k', once)).rejects.toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      message: expect.stringContaining(`pass fence ${fence}`),
    });
    await clock.advance(10_000);
    await outcome;
    operator.faults.loseReplies = false;
    const next = await b.take('k');
    expect(await operator.holdfast.revoke('k', once)).toMatchObject({ holder: next.holder });
    expect(await next.renew()).toBe(true);
  });

  it('K-08 close asks the work to stop, waits for it, and leaves no timer behind', async () => {
    const { clock, actor } = world();
    const a = await actor();
    const lease = await a.take('k');
    const waiting = expect(a.holdfast.acquire('k', { wait: '60s' })).rejects.toMatchObject({
      code: 'CLOSED',
    });
    lease.signal.addEventListener('abort', () => void lease.release());
    await clock.advance(100);
    await a.holdfast.close();
    await waiting;
    expect(a.names()).toEqual(['lease.acquired', 'lease.releasing', 'lease.released']);
    await expect(a.holdfast.acquire('k')).rejects.toMatchObject({ code: 'CLOSED' });
    expect(clock.pendingTimers).toBe(0);
  });

  it('K-08 close waits no longer than its limit for work that continues, and hands no key over', async () => {
    const { clock, store, actor } = world();
    const a = await actor();
    const lease = await a.take('k');
    const closing = a.holdfast.close({ within: '1s' });
    await clock.advance(1_000);
    await closing;
    expect(lease.signal.aborted).toBe(true);
    expect(a.names()).toEqual(['lease.acquired', 'lease.abandoned']);
    expect(await store.leases.read(['lease:k'], { timeoutMs: 1 })).toMatchObject([
      { kind: 'held' },
    ]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('K-11 a record refuses a write with an older fence than it has seen', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    const old = await a.take('k', { ttl: '3s' });
    a.faults.hang = true;
    await clock.advance(3_100);
    const young = await b.take('k', { ttl: '3s' });
    await b.holdfast.records.put('report', { by: 'young' }, { fence: young.fence });
    a.faults.hang = false;
    const late = a.holdfast.records.put('report', { by: 'old' }, { fence: old.fence });
    await expect(late).rejects.toMatchObject({
      code: 'FENCE_STALE',
      fence: old.fence,
      seen: young.fence,
    });
    expect(await b.holdfast.records.get('report')).toMatchObject({ value: { by: 'young' } });
  });
});
