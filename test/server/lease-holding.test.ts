import { describe, expect, it } from 'vitest';
import { EventLog } from '../../src/telemetry/event-log.ts';
import { type ServerWorld, serverWorld, type TokenName } from '../support/server-world.ts';

const PATH = '/api/v3/leases/camera-3';

function client({ ask }: ServerWorld, holder: string, token: TokenName = 'write') {
  const post = (path: string, body: object) => ask('POST', path, { token, body });
  return {
    acquire: (more: object = {}) => post(PATH, { holder, ...more }),
    renew: (fence: string, more: object = {}) => post(`${PATH}/renew`, { holder, fence, ...more }),
    release: (fence: string) => post(`${PATH}/release`, { holder, fence }),
    transfer: (fence: string, successor: string) =>
      post(`${PATH}/transfer`, { holder, fence, successor }),
  };
}

describe('a lease over HTTP', () => {
  it('B-26 belongs to the client: the API process neither holds nor renews it', async () => {
    const world = await serverWorld();
    const a = client(world, 'a');
    const { status, json } = await a.acquire();
    expect({ status, json }).toEqual({
      status: 200,
      json: { key: 'camera-3', holder: 'a', fence: expect.stringMatching(/^\d+$/), ttlMs: 30_000 },
    });
    expect(world.holdfast.held).toBe(0);
    await world.clock.advance(29_999);
    expect(await world.holdfast.inspect('camera-3')).toMatchObject({ kind: 'held', holder: 'a' });
    await world.clock.advance(2);
    expect(await world.holdfast.inspect('camera-3')).toMatchObject({ kind: 'free' });
    expect((await a.renew(json.fence)).json).toMatchObject({
      code: 'LEASE_NOT_HELD',
      current: null,
      currentFence: json.fence,
    });
  });

  it('B-26 is renewed and released by any API process, by holder and fence', async () => {
    const world = await serverWorld();
    const other = await serverWorld({ storeOn: async () => world.store });
    const [here, there] = [client(world, 'a'), client(other, 'a')];
    const { fence } = (await here.acquire({ ttl: '10s' })).json;
    await world.clock.advance(9_000);
    expect((await there.renew(fence, { ttl: '10s' })).json).toMatchObject({ fence, ttlMs: 10_000 });
    await world.clock.advance(9_000);
    expect(await world.holdfast.inspect('camera-3')).toMatchObject({ kind: 'held', holder: 'a' });
    expect((await there.release(fence)).json).toEqual({ key: 'camera-3', released: true });
    expect((await here.release(fence)).json).toEqual({ key: 'camera-3', released: false });
  });

  it('B-26 has its release in the shared log, whichever API process it reached, and a repeated one only once', async () => {
    const world = await serverWorld({ history: 'on' });
    const other = await serverWorld({ storeOn: async () => world.store, history: 'on' });
    const { fence } = (await client(world, 'a').acquire()).json;
    for (let i = 0; i < 2; i++) await client(other, 'a').release(fence);
    const next = (await client(world, 'b').acquire()).json;
    await client(other, 'b').transfer(next.fence, 'c');
    for (const { clock } of [world, other]) await clock.advance(250);
    const { entries } = await new EventLog(world).read();
    const told = entries.filter(({ event }) => /released|transferred/.test(event));
    const lines = told.map(({ event, holder, successor }) => [event, holder, successor].join(' '));
    expect(lines.sort()).toEqual([
      'lease.released a ',
      'lease.transferred a a',
      'lease.transferred b b',
      'lease.transferred b c',
    ]);
  });

  it('is refused while another client has it, with who and for how long', async () => {
    const world = await serverWorld();
    const { fence } = (await client(world, 'a').acquire()).json;
    const b = await client(world, 'b').acquire();
    expect(b.status).toBe(409);
    expect(b.json).toMatchObject({
      code: 'LEASE_HELD',
      holder: 'a',
      fence,
      expiresInMs: 30_000,
    });
    expect(b.headers.get('retry-after')).toBe('30');
  });

  it('is granted to a client that waits as soon as it is released', async () => {
    const world = await serverWorld();
    const { fence } = (await client(world, 'a').acquire()).json;
    const waiting = client(world, 'b').acquire({ wait: '20s' });
    await world.clock.advance(1_000);
    await client(world, 'a').release(fence);
    await world.clock.advance(50);
    expect((await waiting).json).toMatchObject({ holder: 'b' });
    expect(Number((await waiting).json.fence)).toBeGreaterThan(Number(fence));
  });

  it('is handed to a successor, which claims it under its own name', async () => {
    const world = await serverWorld();
    const { fence } = (await client(world, 'a').acquire()).json;
    const { json } = await client(world, 'a').transfer(fence, 'b');
    expect(json).toEqual({ key: 'camera-3', successor: 'b', windowMs: 2_000 });
    expect((await client(world, 'c').acquire()).status).toBe(409);
    expect((await client(world, 'a').renew(fence)).status).toBe(409);
    expect((await client(world, 'b').acquire()).status).toBe(200);
    expect((await client(world, 'a').transfer(fence, 'b')).status).toBe(409);
  });

  it('is not renewed with the fence of an earlier tenure of the same holder', async () => {
    const world = await serverWorld();
    const a = client(world, 'a');
    const first = (await a.acquire()).json;
    const second = (await a.acquire()).json;
    expect(Number(second.fence)).toBeGreaterThan(Number(first.fence));
    expect((await a.renew(first.fence)).status).toBe(409);
    expect((await a.release(first.fence)).json.released).toBe(false);
    expect((await a.renew(second.fence)).status).toBe(200);
  });

  it('is a key of the tenant: two tenants may use the same name', async () => {
    const world = await serverWorld();
    expect((await client(world, 'a', 'acme').acquire()).status).toBe(200);
    const { json } = await client(world, 'b', 'beta').acquire();
    expect(json).toMatchObject({ key: 'camera-3', holder: 'b' });
    expect((await client(world, 'a').acquire()).status).toBe(200);
    const { leases } = await world.holdfast.list();
    expect(leases.map(({ key }) => key).sort()).toEqual([
      'camera-3',
      'tenant:acme:camera-3',
      'tenant:beta:camera-3',
    ]);
  });

  it.each([
    ['a holder is missing', { holder: undefined }, 'holder'],
    ['a holder begins with !', { holder: '!x' }, 'holder'],
    ['the ttl is longer than maxTtl', { ttl: '31s' }, 'ttl'],
    ['the ttl is no duration', { ttl: 'soon' }, 'ttl'],
    ['the wait is longer than a long poll', { wait: '31s' }, 'wait'],
    ['the fence floor is negative', { fenceFloor: '-1' }, 'fenceFloor'],
    ['a field is unknown', { owner: 'x' }, 'owner'],
  ])(
    'is refused with the field and the rule if %s, and nothing is asked of the store',
    async (_, more, field) => {
      const world = await serverWorld();
      const { status, json } = await client(world, 'a').acquire(more);
      expect(status).toBe(400);
      expect(json.errors).toMatchObject([{ field }]);
      expect(world.calls).toEqual([]);
    },
  );

  it('needs the scope to write', async () => {
    const world = await serverWorld();
    expect((await client(world, 'a', 'read').acquire()).status).toBe(403);
    expect(world.calls).toEqual([]);
  });
});
