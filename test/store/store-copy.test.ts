import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { copyStore } from '../../src/store/store-copy.ts';
import { contentOf, drained, drawOf, fill } from '../support/store-content.ts';

const CALL = { timeoutMs: 5_000 };
const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const opened: Store[] = [];
afterAll(() => Promise.all(opened.map((store) => store.close())));

async function open(path = join(folder, `${files++}.db`), prefix = ''): Promise<Store> {
  const store = await openSqliteStore(path, { prefix, unfinished: true });
  opened.push(store);
  return store;
}

describe('a copy of a store', () => {
  it('has the content of the store, in order, whatever that is', async () => {
    for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
      const [from, to] = [await open(undefined, 'a:'), await open()];
      await fill(from, drawOf(seed));
      const report = await copyStore(from, to);
      expect(report.counts.workflows, `seed ${seed}`).toBeGreaterThan(2);
      expect(await contentOf(to)).toEqual(await contentOf(from));
      for (const name of ['letters', 'intent:start:kind-0', 'intent:start:kind-1'])
        expect(await drained(to, name)).toEqual(await drained(from, name));
    }
  });

  it('grants every key with a higher fence than the store before', async () => {
    const [from, to] = [await open(), await open()];
    const call = { ...CALL, ttlMs: 5_000, inbox: 'i' };
    const ahead = Date.now() * 1_000 - 1;
    const request = { key: 'lease:a', holder: 'h', fenceFloor: ahead };
    const [granted] = await from.leases.acquire([request], call);
    const fence = granted?.kind === 'granted' ? granted.fence : 0;
    await from.leases.release([{ ...request, fence }], CALL);
    await copyStore(from, to);
    expect(await to.leases.read(['lease:a'], CALL)).toEqual([{ kind: 'free', fence }]);
    const [next] = await to.leases.acquire([{ key: 'lease:a', holder: 'h' }], call);
    expect(next?.kind === 'granted' && next.fence).toBeGreaterThan(fence);
  });

  it('is refused while the clock of the new store is behind the fences of the old one', async () => {
    const [from, to] = [await open(), await open()];
    const floor = (Date.now() + 60_000) * 1_000;
    const request = { key: 'lease:a', holder: 'h', fenceFloor: floor };
    const [granted] = await from.leases.acquire([request], { ...CALL, ttlMs: 5_000, inbox: 'i' });
    const fence = granted?.kind === 'granted' ? granted.fence : 0;
    await from.leases.release([{ ...request, fence }], CALL);
    await expect(copyStore(from, to)).rejects.toThrow(/clock is .* behind the highest fence/);
    expect(await to.copies?.isUnfinished(CALL)).toBe(false);
  });

  it('is refused while a process may still use the store, and names what is in use', async () => {
    const [from, to] = [await open(), await open()];
    const call = { ...CALL, ttlMs: 5_000, inbox: 'i' };
    await from.members.beat({ id: 'api-1', attributes: {} }, { ...CALL, ttlMs: 5_000 });
    await expect(copyStore(from, to)).rejects.toThrow(/in use by instance api-1\. Stop every/);
    await from.members.leave('api-1', CALL);
    const [granted] = await from.leases.acquire([{ key: 'lease:a', holder: 'h' }], call);
    const fence = granted?.kind === 'granted' ? granted.fence : 0;
    await expect(copyStore(from, to)).rejects.toThrow(/lease 'lease:a' \(held by h, expires in/);
    await from.leases.revoke('lease:a', { ...CALL, force: false, fence });
    await expect(copyStore(from, to)).rejects.toThrow(/lease 'lease:a' \(revoked, expires in/);
    const [revoked] = await from.leases.read(['lease:a'], CALL);
    const forced = { ...CALL, force: true, fence: revoked?.kind === 'revoked' ? revoked.fence : 0 };
    await from.leases.revoke('lease:a', forced);
    await from.streams.append('s', [{ lane: 'l', priority: 1, value: 1 }], CALL);
    const taking = { ...CALL, consumer: 'c', most: 1, claimMs: 5_000 };
    const [taken] = await from.streams.consume('s', taking);
    await expect(copyStore(from, to)).rejects.toThrow(/'l' in s \(claimed, expires in 5 s\)/);
    if (taken) await from.streams.retry('s', [{ ...taken, afterMs: 0 }], CALL);
    expect((await copyStore(from, to)).counts).toMatchObject({ streams: 1, lanes: 1 });
  });

  it('is refused by a store that is not empty, which stays as it is', async () => {
    const [from, to] = [await open(), await open()];
    await to.records.put('session', [{ id: 'a', value: 1 }], CALL);
    await expect(copyStore(from, to)).rejects.toThrow(/not empty: it has 1 records\. Copy into an/);
    expect(await to.copies?.isUnfinished(CALL)).toBe(false);
  });

  it('begins again after an interruption, without what was left', async () => {
    const path = join(folder, `${files++}.db`);
    const [from, to] = [await open(), await open(path)];
    await fill(from, drawOf(9));
    const stops = ['fences', 'records', 'workflows', 'sessions', 'streams', 'lanes', 'dead'];
    for (const stop of stops) {
      const onProgress = ({ noun }: { noun: string }) => {
        if (noun === stop) throw new Error('interrupted');
      };
      await expect(copyStore(from, to, { onProgress })).rejects.toThrow('interrupted');
      await expect(openSqliteStore(path)).rejects.toThrow(/copy into it has begun and has not/);
      await from.records.put('record', [{ id: stop, value: stop }], CALL);
      await from.records.remove('record', [{ id: `record-ä-0` }], CALL);
    }
    await copyStore(from, to);
    await (await openSqliteStore(path)).close();
    expect(await contentOf(to)).toEqual(await contentOf(from));
  });

  it('is left unfinished if the source changes meanwhile', async () => {
    const [from, to] = [await open(), await open()];
    await from.records.put('session', [{ id: 'a', value: 1 }], CALL);
    let late: Promise<unknown> | undefined;
    const onProgress = () => {
      late ??= from.records.put('session', [{ id: 'b', value: 2 }], CALL);
    };
    await expect(copyStore(from, to, { onProgress })).rejects.toThrow(/records changed during/);
    await late;
    expect(await to.copies?.isUnfinished(CALL)).toBe(true);
  });

  it('writes nothing in a dry run, and needs no target', async () => {
    const [from, to] = [await open(), await open()];
    await from.records.put('session', [{ id: 'a', value: 1 }], CALL);
    expect(await copyStore(from, to, { dryRun: true })).toMatchObject({
      counts: { records: 1, fences: 0 },
      digest: null,
    });
    expect(await to.records.get('session', ['a'], CALL)).toEqual([{ kind: 'absent' }]);
    expect(await copyStore(from, null, { dryRun: true })).toMatchObject({ digest: null });
  });

  it('leaves the data of other prefixes alone', async () => {
    const [a, b] = [join(folder, `${files++}.db`), join(folder, `${files++}.db`)];
    const [from, other] = [await open(a), await open(a, 'team:')];
    const [to, beside] = [await open(b), await open(b, 'team:')];
    await fill(from, drawOf(10));
    await fill(other, drawOf(11));
    await fill(beside, drawOf(12));
    const before = await contentOf(beside);
    await copyStore(from, to);
    expect(await contentOf(to)).toEqual(await contentOf(from));
    expect(await contentOf(beside)).toEqual(before);
  });

  it('is refused for a memory store', async () => {
    await expect(copyStore(createMemoryStore(), await open())).rejects.toThrow(/FROM.*memory:/);
  });
});
