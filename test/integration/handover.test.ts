import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { leaveNothingBehind, nextEvent, openAt, take, warmUp } from './support/holdfasts.ts';
import { expectRising, hostMs, LeaseWatch, SHORT, SHORT_VALID_MS } from './support/lease-watch.ts';

leaveNothingBehind();

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
  await warmUp(redis);
});
afterAll(() => redis.stop());

const OPTIONS = { ttl: '30s' };

describe.concurrent('a lease that is handed over', () => {
  it('K-09 K-10 reaches a successor that waits for it by a signal, past others in the line, with rising fences', async () => {
    await using from = await openAt(redis);
    await using to = await openAt(redis);
    await using other = await openAt(redis);
    const lease = await take(from, 'given', OPTIONS);
    using watch = new LeaseWatch(lease);
    const bystander = other.acquire('given', { ...OPTIONS, wait: '3s' });
    const inLine = (count: number) => async () =>
      (await redis.cli('ZCARD', 'line:{lease:given}')) === count;
    await until(inLine(1), { what: 'the bystander in line' });
    const successor = `${to.instanceId}/worker`;
    const claiming = take(to, 'given', { ...OPTIONS, holder: successor, wait: '20s' });
    await until(inLine(2), { what: 'the successor in line' });
    const given = await lease.transfer(successor);
    expect(given).toMatchObject({ transferred: true });
    const claimed = await claiming;
    const transferFence = given.transferred ? given.fence : 0;
    expectRising([lease.fence, transferFence, claimed.fence]);
    expect(claimed.isHeld()).toBe(true);
    await until(() => watch.states.at(-1) === 'released', { what: 'the end of the old tenure' });
    expect(await bystander).toMatchObject({ ok: false, reason: 'held' });
  });

  it('K-09 is free for all when the successor never claims', async () => {
    await using from = await openAt(redis);
    await using other = await openAt(redis);
    const lease = await take(from, 'unclaimed', OPTIONS);
    expect(await lease.transfer('nobody', { window: '500ms' })).toMatchObject({
      transferred: true,
    });
    expect(await other.acquire('unclaimed', OPTIONS)).toMatchObject({
      ok: false,
      holder: 'nobody',
    });
    expectRising([
      lease.fence,
      (await take(other, 'unclaimed', { ...OPTIONS, wait: '10s' })).fence,
    ]);
  });
});

describe.concurrent('a lease that is revoked', () => {
  it('K-09 K-05 is lost for its holder at its next renewal, and nobody is granted it while that one may still act', async () => {
    await using holdfast = await openAt(redis);
    await using operator = await openAt(redis);
    const lease = await take(holdfast, 'revoked', SHORT);
    using watch = new LeaseWatch(lease);
    const lost = nextEvent(holdfast, 'lease.lost');
    const revoked = await operator.revoke('revoked', { reason: 'a test' });
    const revokedMs = hostMs();
    expect(revoked).toMatchObject({ revoked: true, holder: lease.holder });
    expect(await operator.acquire('revoked', SHORT)).toMatchObject({
      ok: false,
      reason: 'revoked',
    });
    expect(await lost).toMatchObject({ reason: 'revoked', fence: lease.fence });
    const next = await take(operator, 'revoked', { ...SHORT, wait: '10s' });
    const grantedMs = hostMs();
    await watch.neverPassesAfter(Math.min(grantedMs, revokedMs + SHORT_VALID_MS));
    expect(await holdfast.acquire('revoked', SHORT)).toMatchObject({ ok: false });
    expectRising([lease.fence, revoked.revoked ? revoked.fence : 0, next.fence]);
  });

  it('K-09 K-10 by force is free at once: whoever waits is woken', async () => {
    await using holdfast = await openAt(redis);
    await using other = await openAt(redis);
    const lease = await take(holdfast, 'forced', SHORT);
    const waiting = take(other, 'forced', { ...OPTIONS, wait: '20s' });
    const inLine = async () => (await redis.cli('ZCARD', 'line:{lease:forced}')) === 1;
    await until(inLine, { what: 'the line' });
    const lost = nextEvent(holdfast, 'lease.lost');
    await other.revoke('forced', { reason: 'a test', force: true });
    const next = await waiting;
    expectRising([lease.fence, next.fence]);
    expect(await lost).toMatchObject({ key: 'forced' });
    expect(next.isHeld()).toBe(true);
  });
});
