import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import type { Store } from '../../src/store/port/store.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { storeConformance } from '../../testing/conformance/conformance.ts';
import { type Child, spawnChild } from '../support/child.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
const file = join(folder, 'holdfast.db');
let others: Child[] = [];
let calls = 0;

beforeAll(async () => {
  others = [1, 2].map(() => spawnChild('store-host.mjs', { args: [file] }));
  await Promise.all(others.map((other) => other.next('ready', 20_000)));
});
afterAll(async () => {
  await Promise.all(others.map((other) => other.kill()));
  rmSync(folder, { recursive: true });
});

/** A part of the store of which every verb is done by this process, then by another one, then by a third, in turn. */
function inTurns<T extends object>(own: T, part: string): T {
  return new Proxy(own, {
    get: (_, verb) => {
      const ownVerb = Reflect.get(own, verb);
      if (typeof ownVerb !== 'function' || verb === 'subscribe') return bound(own, ownVerb);
      return (...args: unknown[]) => {
        const id = calls++;
        const other = others[(id % (others.length + 1)) - 1];
        return other === undefined
          ? ownVerb.apply(own, args)
          : ask(other, { id, part, verb: String(verb), args });
      };
    },
  });
}

function bound(own: object, value: unknown): unknown {
  return typeof value === 'function' ? value.bind(own) : value;
}

async function ask(
  other: Child,
  call: { id: number; part: string; verb: string; args: unknown[] },
): Promise<unknown> {
  other.send({ do: 'call', ...call });
  const { result, error } = await other.next(`answer ${call.id}`);
  if (error !== undefined) throw Object.assign(new Error(), error);
  return result;
}

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

storeConformance(
  'SQLite conforms, with three processes at the file that take turns',
  {
    open: async () => {
      const own = await openSqliteStore(file, { quarantine: 'off' });
      const store: Store = {
        ...own,
        name: own.name,
        leases: inTurns(own.leases, 'leases'),
        members: inTurns(own.members, 'members'),
        records: inTurns(own.records, 'records'),
        signals: inTurns(own.signals, 'signals'),
        log: inTurns(own.log, 'log'),
        streams: inTurns(own.streams, 'streams'),
        workflows: inTurns(own.workflows, 'workflows'),
        intents: inTurns(own.intents, 'intents'),
      };
      return { store, elapse: wait, dispose: () => own.close() };
    },
  },
  { describe, it: it.concurrent },
);
