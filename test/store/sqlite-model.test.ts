import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import fc from '../support/fast-check.ts';
import { LEASE_VERBS, type LeaseStep, LeaseSteps, stepOf, TTL_MS } from '../support/lease-steps.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
afterAll(() => rmSync(folder, { recursive: true }));

const CALL = { timeoutMs: 5_000 };

const step = stepOf([
  ...LEASE_VERBS,
  ...['wait', 'wake', 'list', 'elapse', 'put', 'remove', 'changes', 'beat', 'leave'],
]);

/** Plays the steps on a store, and tells everything that came of them. */
async function play(
  store: Store,
  clock: FakeClock,
  steps: readonly LeaseStep[],
): Promise<unknown[]> {
  const told: unknown[] = [];
  const leases = new LeaseSteps(store);
  const versions = [0];
  for (const inbox of ['h1', 'h2'])
    await store.signals.subscribe(inbox, {
      onMessage: (message) => told.push({ inbox, message }),
      onGap: () => {},
    });
  for (const each of steps) {
    const reply = await take(store, clock, each, leases, versions);
    const { version } = factsOf(reply);
    if (version !== undefined) versions.push(version);
    told.push(reply);
    // Messages are told in a moment.
    await clock.advance(0);
  }
  return told;
}

function factsOf(reply: unknown): { version?: number } {
  const found: unknown = Array.isArray(reply) ? reply[0] : reply;
  return typeof found === 'object' && found !== null ? found : {};
}

async function take(
  store: Store,
  clock: FakeClock,
  each: LeaseStep,
  steps: LeaseSteps,
  versions: number[],
): Promise<unknown> {
  const { verb, who: holder, pick } = each;
  const { leases, records, members } = store;
  const key = `lease:${each.key}`;
  const fence = steps.fences[pick % Math.max(1, steps.fences.length)] ?? 1;
  const acquire = { ...CALL, ttlMs: TTL_MS, inbox: holder };
  const record = {
    id: each.key,
    ...(pick % 3 === 0 && { fence }),
    ...(pick % 5 === 0 && { ifRevision: pick % 4 }),
  };
  const verbs: Record<string, () => Promise<unknown>> = {
    wait: () => leases.acquire([{ key, holder, waitedMs: pick }], acquire),
    wake: () => leases.wakeNext([key], { ...CALL, leaving: holder, most: 2, apartMs: 75 }),
    list: async () => {
      const page = await leases.list('lease:', CALL);
      return { leases: [...page.leases].sort((a, b) => (a.key < b.key ? -1 : 1)) };
    },
    elapse: () => clock.advance(pick * 20),
    put: () => records.put('c', [{ ...record, value: pick }], CALL),
    remove: () => records.remove('c', [record], CALL),
    changes: () => records.changes('c', { ...CALL, since: versions[pick % versions.length] ?? 0 }),
    beat: () => members.beat({ id: holder, attributes: { pick } }, { ...CALL, ttlMs: TTL_MS }),
    leave: async () => {
      await members.leave(holder, CALL);
      return (await members.list(CALL)).sort((a, b) => (a.id < b.id ? -1 : 1));
    },
  };
  const other = verbs[verb];
  return (await (other === undefined ? steps.take(each) : other())) ?? null;
}

it('K-01 K-02 K-03 K-10 B-25 memory and SQLite give the same answers and send the same signals', async () => {
  let files = 0;
  const property = fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
    const [one, two] = [new FakeClock(), new FakeClock()];
    const store = await openSqliteStore(join(folder, `${files++}.db`), { clock: one });
    try {
      const expected = await play(createMemoryStore({ clock: two }), two, steps);
      expect(await play(store, one, steps)).toEqual(expected);
    } finally {
      await store.close();
    }
  });
  await fc.assert(property, { numRuns: 50 });
});
