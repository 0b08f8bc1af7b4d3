import { describe, expect, it } from 'vitest';
import {
  beginningWith,
  type Held,
  looked,
  partsOf,
  told,
  walked,
} from '../../dashboard/src/views/leases/held.ts';
import type { ApiEvent } from '../../src/client/messages.ts';

const ANA = 'ana-1-00000000';

function happened(event: string, facts: object): ApiEvent {
  const lease = { leaseClass: 'lease', holder: ANA, fence: '8' };
  return { position: '1', at: 1, instance: ANA, event, ...lease, ...facts };
}

function held(...keys: string[]): Held {
  const leases = keys.map((key) => ({ key, holder: ANA, fence: '7', expiresAtMs: 100 }));
  return { leases: new Map(leases.map((lease) => [lease.key, lease])), hasMore: false };
}

describe('leases that are held', () => {
  it('are walked page by page, and kept with the time at which each ends here', async () => {
    const pages = [
      { leases: [{ key: 'b', holder: ANA, fence: '1', expiresInMs: 500 }], cursor: 'x' },
      { leases: [] as never[], cursor: 'y' },
      { leases: [{ key: 'a', holder: ANA, fence: '2', expiresInMs: null }] },
    ];
    let asked = 0;
    const found = await walked(
      async () => pages[asked++] ?? { leases: [] },
      100,
      () => 1_000,
    );
    expect(beginningWith(found, '').map(({ key, expiresAtMs }) => [key, expiresAtMs])).toEqual([
      ['a', Number.POSITIVE_INFINITY],
      ['b', 1_500],
    ]);
    expect(found.hasMore).toBe(false);
  });

  it('stop being walked where there are more than the page lists', async () => {
    const page = { leases: [{ key: 'a', holder: ANA, fence: '1', expiresInMs: 5 }], cursor: 'x' };
    expect(
      (
        await walked(
          async () => page,
          1,
          () => 0,
        )
      ).hasMore,
    ).toBe(true);
  });

  it('come with the log, and go with it', () => {
    const events = [
      happened('lease.acquired', { key: 'new', remainingMs: 400 }),
      happened('lease.released', { key: 'old', fence: '7' }),
    ];
    const after = told(held('old', 'other'), events, 1_000);
    expect([...after.leases.keys()]).toEqual(['other', 'new']);
    expect(after.leases.get('new')).toMatchObject({ fence: '8', expiresAtMs: 1_400 });
  });

  it('are not ended by what is told late of a tenure before', () => {
    const after = told(held('a'), [happened('lease.lost', { key: 'a', fence: '6' })], 0);
    expect(after.leases.has('a')).toBe(true);
  });

  it('leave out targets and workflows, which have views of their own', () => {
    const events = ['poll', 'workflow'].map((leaseClass) =>
      happened('lease.acquired', { key: 'x', leaseClass, remainingMs: 1 }),
    );
    expect(told(held(), events, 0).leases.size).toBe(0);
  });

  it('are as the store says, where one is looked at again', () => {
    const again = { key: 'a', state: 'held', holder: 'ben', fence: '9', expiresInMs: 50 } as const;
    expect(looked(held('a'), again, 100).leases.get('a')).toMatchObject({
      holder: 'ben',
      expiresAtMs: 150,
    });
    const free = { key: 'a', state: 'free', fence: '9' } as const;
    expect(looked(held('a', 'b'), free, 100).leases.has('a')).toBe(false);
  });

  it('are filtered by how their keys begin, and sorted', () => {
    expect(
      beginningWith(held('tuner:2', 'gpu:1', 'tuner:1'), 'tuner:').map(({ key }) => key),
    ).toEqual(['tuner:1', 'tuner:2']);
  });

  it('name an instance, and the session it is for where a worker holds it', () => {
    const session = '70208505-95af-4c46-ad3c-c4f4c2a3142d';
    expect(partsOf(`${ANA}/${session}`)).toEqual({ instance: ANA, session });
    expect(partsOf(`${ANA}/2s`)).toEqual({ instance: ANA, session: null });
    expect(partsOf(ANA)).toEqual({ instance: ANA, session: null });
  });
});
