/** A store in quarantine is not a key that another holds: callers that treat them alike skip work that no process does. */
import { describe, expect, it } from 'vitest';
import { LeaseHeldError, StoreQuarantinedError } from '../../src/core/errors.ts';
import type { BusyReply } from '../../src/store/port/lease-store.ts';
import { world } from '../support/world.ts';

const LEFT_MS = 20_000;
const BUSY: BusyReply = {
  ...{ kind: 'busy', reason: 'quarantine', holder: '', fence: 0, expiresInMs: LEFT_MS },
};

async function quarantined() {
  const { store, actor } = world();
  const { holdfast } = await actor();
  store.leases.acquire = async (requests) => requests.map(() => BUSY);
  return holdfast;
}

describe('a store in quarantine', () => {
  it('K-15 is a result of its own, without a holder', async () => {
    const holdfast = await quarantined();
    expect(await holdfast.acquire('k')).toEqual({
      ...{ ok: false, key: 'k', reason: 'quarantine', expiresInMs: LEFT_MS, waitedMs: 0 },
    });
  });

  it.each([
    ['withLease', 'k', (holdfast: Holdfast) => holdfast.withLease('k', () => 1)],
    ['acquireAll', 'k', (holdfast: Holdfast) => holdfast.acquireAll(['k'])],
    ['workflows.claim', 'w', (holdfast: Holdfast) => holdfast.workflows.claim('w')],
    [
      'withSlot',
      'pool',
      (holdfast: Holdfast) => holdfast.pool('pool', { slots: 1 }).withSlot(() => 1),
    ],
  ])('K-15 is STORE_QUARANTINED for %s, with how long', async (_, key, call) => {
    const error: unknown = await call(await quarantined()).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(StoreQuarantinedError);
    expect(error).not.toBeInstanceOf(LeaseHeldError);
    expect(error).toMatchObject({ code: 'STORE_QUARANTINED', key, expiresInMs: LEFT_MS });
    expect((error as Error).message).toContain(`quarantine for ${LEFT_MS / 1_000} s more`);
  });
});

type Holdfast = Awaited<ReturnType<typeof quarantined>>;
