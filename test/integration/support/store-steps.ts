/** What may be asked of a store, through its port. */

import type { Store } from '../../../src/store/port/store.ts';
import fc from '../../support/fast-check.ts';
import type { Twin } from './redis-twins.ts';

const CALL = { timeoutMs: 5_000 };
const TTL_MS = 60_000;
const WINDOW_MS = 20_000;

const VERBS = [
  ...['acquire', 'refresh', 'raise', 'wait', 'renew', 'reassert', 'restore', 'release', 'transfer'],
  ...['revoke', 'force', 'read', 'wake', 'list', 'put', 'remove', 'get', 'changes', 'discover'],
  ...['beat', 'leave', 'members', 'everybody', 'append', 'follow', 'recall', 'trim', 'publish'],
] as const;

/** One step. `pick` chooses one of the fences, versions or positions told so far, old ones included. */
export const storeStep = fc.record({
  verb: fc.constantFrom(...VERBS),
  keys: fc.array(fc.constantFrom('lease:a', 'lease:b', '{t}c'), { minLength: 1, maxLength: 3 }),
  who: fc.constantFrom('h1', 'h2', 'h3'),
  id: fc.constantFrom('r1', 'r2', 'r3'),
  pick: fc.nat({ max: 40 }),
});
export type StoreStep = typeof storeStep extends fc.Arbitrary<infer S> ? S : never;

export async function takeStoreStep({ store, telling }: Twin, step: StoreStep): Promise<unknown> {
  const fence = telling.micros(step.pick);
  const position = telling.position(step.pick);
  if (isAboutLeases(step.verb)) return aboutLeases(store, step, fence);
  return aboutTheRest(store, step, fence, position);
}

function isAboutLeases(verb: StoreStep['verb']): boolean {
  return VERBS.indexOf(verb) < VERBS.indexOf('put');
}

async function aboutLeases(
  { leases }: Store,
  { verb, keys, who: holder, pick }: StoreStep,
  fence: number,
): Promise<unknown> {
  const holdings = keys.map((key) => ({ key, holder }));
  const tenancies = keys.map((key) => ({ key, holder, fence }));
  const acquire = { ...CALL, ttlMs: TTL_MS, inbox: holder };
  const asked = (more: object) => holdings.map((holding) => ({ ...holding, ...more }));
  const [key = ''] = keys;
  switch (verb) {
    case 'acquire':
      return leases.acquire(holdings, acquire);
    case 'refresh':
      return leases.acquire(tenancies, acquire);
    case 'raise':
      return leases.acquire(asked({ fenceFloor: fence + 10 ** 12 }), acquire);
    case 'wait':
      return leases.acquire(asked({ waitedMs: 60_000.5 * (pick + 1) }), acquire);
    case 'renew':
      return leases.renew(holdings, { ...CALL, ttlMs: TTL_MS });
    case 'reassert':
      return leases.reassert(tenancies, { ...acquire, forgotten: false });
    case 'restore':
      return leases.reassert(tenancies, { ...acquire, forgotten: true });
    case 'release':
      return leases.release(tenancies, CALL);
    case 'transfer':
      return leases.transfer(
        tenancies.map((tenancy) => ({ ...tenancy, successor: 'h2/1' })),
        { ...CALL, windowMs: WINDOW_MS },
      );
    case 'revoke':
    case 'force':
      return leases.revoke(key, { ...CALL, force: verb === 'force', fence });
    case 'read':
      return leases.read(keys, CALL);
    case 'wake':
      return leases.wakeNext(keys, { ...CALL, leaving: holder, most: 2, apartMs: 75 });
    default: {
      const page = await leases.list('lease:', CALL);
      return [...page.leases].sort((a, b) => (a.key < b.key ? -1 : 1));
    }
  }
}

async function aboutTheRest(
  { records, members, log, signals }: Store,
  { verb, who, id, pick }: StoreStep,
  fence: number,
  position: string,
): Promise<unknown> {
  const record = {
    id,
    ...(pick % 3 === 0 && { fence }),
    ...(pick % 5 === 0 && { ifRevision: pick % 4 }),
  };
  const at = pick % 2 === 0 ? {} : { after: position, before: position };
  switch (verb) {
    case 'put':
      return records.put('c', [{ ...record, value: { pick, text: 'ünï😀' } }], CALL);
    case 'remove':
      return records.remove('c', [record], CALL);
    case 'get':
      return records.get('c', ['r1', id], CALL);
    case 'changes':
      return records.changes('c', {
        ...{ ...CALL, since: pick % 3 === 0 ? 0 : fence, most: 1 + (pick % 4) },
        ...(pick % 7 === 0 && { began: fence }),
      });
    case 'discover':
      return records.discover('c', CALL);
    case 'beat':
      return members.beat({ id: who, attributes: { pick } }, { ...CALL, ttlMs: TTL_MS });
    case 'leave':
      return members.leave(who, CALL);
    case 'members':
    case 'everybody': {
      const living = await members.list({ ...CALL, thorough: verb === 'everybody' });
      return living.sort((a, b) => (a.id < b.id ? -1 : 1));
    }
    case 'append':
      return log.append([{ pick }, who], CALL);
    case 'follow':
      return log.read({ ...CALL, ...at, most: 1 + (pick % 5) });
    case 'recall':
      return log.recall({ ...CALL, ...at, most: 1 + (pick % 5) });
    case 'trim':
      // What is kept for a moment would be a race with the clock.
      return log.trim({ ...CALL, keptMs: pick % 4 === 0 ? -TTL_MS : TTL_MS * 1_000 });
    default:
      return signals.publish(who, id);
  }
}
