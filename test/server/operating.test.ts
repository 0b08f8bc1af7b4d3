import { describe, expect, it } from 'vitest';
import { serverWorld } from '../support/server-world.ts';

describe('members', () => {
  async function withMembers() {
    const world = await serverWorld();
    const beat = { ttlMs: 30_000, timeoutMs: 1_000 };
    for (const id of ['api-1794735731650762000-c586043d', 'api-1794735731650762001-c586043e'])
      await world.store.members.beat({ id, attributes: { weight: 2, version: '1.2.3' } }, beat);
    return world;
  }

  it('are shown as the command line shows them', async () => {
    const { ask } = await withMembers();
    const got = await ask('GET', '/api/v3/members', { token: 'read' });
    expect(got.status).toBe(200);
    expect(got.json.members).toHaveLength(2);
    expect(got.json.members[0]).toEqual({
      id: 'api-1794735731650762000-c586043d',
      name: 'api',
      weight: 2,
      version: '1.2.3',
      isDraining: false,
      isForeign: false,
      owned: 0,
      quota: 0,
      expiresInMs: 30_000,
      beatTtlMs: null,
      startedAt: 1_794_735_731_650,
      vitals: null,
    });
  });

  it('are drained and let back by administrators', async () => {
    const { ask } = await withMembers();
    const member = 'api-1794735731650762000-c586043d';
    const order = (verb: string, token: 'admin' | 'write' = 'admin') =>
      ask('POST', `/api/v3/members/${member}/${verb}`, { token });
    expect((await order('drain', 'write')).status).toBe(403);
    expect((await order('drain')).json).toEqual({ member, draining: true, changed: true });
    expect((await order('drain')).json).toEqual({ member, draining: true, changed: false });
    expect((await order('undrain')).json).toEqual({ member, draining: false, changed: true });
    expect((await order('undrain')).json).toEqual({ member, draining: false, changed: false });
  });

  it.each(['nobody', 'api', '__proto__', '%F0%9F%90%99'])('are not found as %s', async (id) => {
    const { ask } = await withMembers();
    for (const verb of ['drain', 'undrain']) {
      const got = await ask('POST', `/api/v3/members/${id}/${verb}`);
      expect([got.status, got.json.code]).toEqual([404, 'NOT_FOUND']);
    }
  });

  it.each(['%00', '%7Bx%7D', 'a%0Ab', 'x'.repeat(300), '%80'])(
    'are not even looked for as %.20s',
    async (id) => {
      const { ask, calls } = await withMembers();
      calls.length = 0;
      expect((await ask('POST', `/api/v3/members/${id}/drain`)).status).toBe(400);
      expect(calls).toEqual([]);
    },
  );
});

describe('leases', () => {
  it('are listed with fences as text', async () => {
    const { ask, holdfast } = await serverWorld();
    const taken = await holdfast.acquire('devices/7', { holder: 'ana' });
    if (!taken.ok) throw new Error('not granted');
    const got = await ask('GET', '/api/v3/leases', { token: 'read' });
    const fence = String(taken.lease.fence);
    const lease = { key: 'devices/7', holder: 'ana', fence, expiresInMs: 30_000 };
    expect(got.json).toEqual({ leases: [lease] });
    const one = await ask('GET', '/api/v3/leases/devices%2F7', { token: 'read' });
    expect(one.json).toEqual({ ...lease, state: 'held' });
  });

  it('that nobody holds are free, not unknown', async () => {
    const { ask } = await serverWorld();
    const got = await ask('GET', '/api/v3/leases/nobody%20has%20it');
    expect([got.status, got.json]).toEqual([
      200,
      { key: 'nobody has it', state: 'free', fence: '0' },
    ]);
  });

  it('come in pages whose cursors are text that can go into a URL', async () => {
    const { ask, holdfast } = await serverWorld();
    const asked: (string | undefined)[] = [];
    holdfast.list = async (cursor) => {
      asked.push(cursor);
      return cursor === undefined ? { leases: [], cursor: '10.0.0.1:6379 17' } : { leases: [] };
    };
    const first = await ask('GET', '/api/v3/leases');
    expect(first.json.cursor).toMatch(/^[\w-]+$/);
    const second = await ask('GET', `/api/v3/leases?cursor=${first.json.cursor}`);
    expect(second.json).toEqual({ leases: [] });
    expect(asked).toEqual([undefined, '10.0.0.1:6379 17']);
  });

  it.each(['cursor=', 'cursor=%00', 'cursor=AAAA', `cursor=${'QUJD'.repeat(1_000)}`, 'limit=1'])(
    'are not listed for ?%.20s',
    async (search) => {
      const { ask, calls } = await serverWorld();
      expect((await ask('GET', `/api/v3/leases?${search}`)).status).toBe(400);
      expect(calls).toEqual([]);
    },
  );

  it('are taken away by administrators, with a reason', async () => {
    const { ask, holdfast } = await serverWorld();
    const taken = await holdfast.acquire('device', { holder: 'ana' });
    if (!taken.ok) throw new Error('not granted');
    const revoke = (body: object, token: 'admin' | 'write' = 'admin') =>
      ask('POST', '/api/v3/leases/device/revoke', { body, token });
    expect((await revoke({ reason: 'stuck' }, 'write')).status).toBe(403);
    expect((await ask('GET', '/api/v3/leases/device')).json.state).toBe('held');
    const got = await revoke({ reason: 'stuck' });
    expect(got.json).toEqual({
      key: 'device',
      revoked: true,
      holder: 'ana',
      fence: expect.stringMatching(/^\d+$/),
      mayActForMs: 30_000,
    });
    expect(BigInt(got.json.fence)).toBeGreaterThan(BigInt(taken.lease.fence));
    expect((await ask('GET', '/api/v3/leases/device')).json).toMatchObject({ state: 'revoked' });
    const again = await revoke({ reason: 'again' });
    expect(again.json).toMatchObject({ key: 'device', revoked: false, holder: null });
  });

  it('K-09 one that was taken over meanwhile is left alone, and its holder is named', async () => {
    const { ask, holdfast } = await serverWorld();
    const first = await holdfast.acquire('device', { holder: 'ana' });
    if (!first.ok) throw new Error('not granted');
    const { fence } = first.lease;
    await first.lease.release();
    const next = await holdfast.acquire('device', { holder: 'bob' });
    if (!next.ok) throw new Error('not granted');
    const body = { reason: 'stuck', force: true, fence: String(fence) };
    const got = await ask('POST', '/api/v3/leases/device/revoke', { body, token: 'admin' });
    const now = { holder: 'bob', fence: String(next.lease.fence) };
    expect(got.json).toEqual({ key: 'device', revoked: false, ...now });
    expect(await next.lease.renew()).toBe(true);
  });

  it.each(['x', '-1', '1.5', 7, '99999999999999999999'])('refuse the fence %j', async (fence) => {
    const { ask } = await serverWorld();
    const body = { reason: 'stuck', fence };
    const got = await ask('POST', '/api/v3/leases/device/revoke', { body, token: 'admin' });
    expect(got.status).toBe(400);
  });

  it.each([
    [{}, 'reason'],
    [{ reason: '' }, 'reason'],
    [{ reason: ' ' }, 'reason'],
    [{ reason: 7 }, 'reason'],
    [{ reason: 'a\nb' }, 'reason'],
    [{ reason: 'x'.repeat(513) }, 'reason'],
    [{ reason: 'stuck', force: 'yes' }, 'force'],
    [{ reason: 'stuck', fence: 7 }, 'fence'],
  ])('are not taken away for %.40j', async (body, field) => {
    const { ask, calls } = await serverWorld();
    const got = await ask('POST', '/api/v3/leases/device/revoke', { body });
    expect(got.status).toBe(400);
    expect(got.json.errors[0].field).toBe(field);
    expect(calls).toEqual([]);
  });

  it('cannot be read while the store is unavailable', async () => {
    const { ask, faults } = await serverWorld();
    faults.refuse = true;
    for (const path of ['/api/v3/leases', '/api/v3/leases/x', '/api/v3/members']) {
      const got = await ask('GET', path);
      expect([got.status, got.json.code]).toEqual([503, 'STORE_UNAVAILABLE']);
    }
  });
});
