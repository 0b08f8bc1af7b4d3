/** What a process of the bench of the page can be asked to do. Each task is given `{ url, … }` and facts. */
import { setTimeout as sleep } from 'node:timers/promises';
import { open } from '../dist/index.js';
import { createApp, serve as listen } from '../dist/server/index.js';
import { openSqliteStore } from '../dist/store/sqlite/sqlite-store.js';
import { monotonicMs } from './statistics.mjs';

const LOG_TOPIC = 'log';
const FLEET_TOPIC = 'fleet';
const CALL = { timeoutMs: 10_000 };
/** Longer than the bench: nothing has to be renewed. */
const TTL_MS = 600_000;
const CHUNK = 500;

export const tasks = {
  /** Nothing: resolves when the process runs. */
  async open() {},
  serve,
  settle,
  tell,
  move,
};

/** The address of the page on this store. */
async function serve({ url }, { token }) {
  const holdfast = await open(url, { quarantine: 'off', name: 'page' });
  const tokens = [{ id: 'bench', token, scope: 'v3:admin' }];
  const serving = await listen(createApp(holdfast, { tokens }), { host: '127.0.0.1', port: 0 });
  return serving.url;
}

/** A fleet as the store has it: so many members that live, so many targets, shared out evenly. */
async function settle(state, { members, targets }) {
  const holdfast = await open(state.url, { quarantine: 'off' });
  state.store = openSqliteStore(state.url.replace('sqlite:', ''), { quarantine: 'off' });
  state.store = await state.store;
  state.ids = Array.from({ length: members }, (_, m) => idOf(m));
  state.owners = Array.from({ length: targets }, (_, t) => t % members);
  const attributes = {
    weight: 1,
    draining: false,
    owned: targets / members,
    version: 'bench',
    asks: {},
  };
  for (const id of state.ids)
    await state.store.members.beat({ id, attributes }, { ...CALL, ttlMs: TTL_MS });
  for (let at = 0; at < targets; at += CHUNK) {
    const chunk = state.owners.slice(at, at + CHUNK).map((_, i) => at + i);
    await holdfast.sessions.addAll(
      chunk.map((t) => ({ id: targetOf(t), url: 'http://127.0.0.1:9/' })),
    );
    for (let m = 0; m < members; m++)
      await take(
        state,
        m,
        chunk.filter((t) => state.owners[t] === m),
      );
  }
  await holdfast.close();
}

async function take({ store, ids }, member, targets) {
  if (targets.length === 0) return;
  const requests = targets.map((t) => ({ key: `poll:lease:${targetOf(t)}`, holder: ids[member] }));
  const call = { ...CALL, ttlMs: TTL_MS, inbox: 'bench' };
  const replies = await store.leases.acquire(requests, call);
  if (replies.some(({ kind }) => kind !== 'granted')) throw new Error('a lease was not granted');
  return replies.map(({ fence }) => fence);
}

/** Events that a page can find by their names, at a steady pace: when each was in the store, on the clock that all share. */
async function tell(state, { count, everyMs }) {
  state.store ??= await openSqliteStore(state.url.replace('sqlite:', ''), { quarantine: 'off' });
  const { log, signals } = state.store;
  const times = [];
  for (let n = 0; n < count; n++) {
    const facts = {
      at: Date.now(),
      instance: 'bench-1',
      event: 'session.added',
      session: `told-${n}`,
    };
    await log.append([facts], CALL);
    times.push(Date.now());
    await signals.publish(LOG_TOPIC, '');
    await sleep(everyMs);
  }
  return times;
}

/** Targets change hands at a steady pace, in the store and in the log, as they do when a fleet moves. */
async function move(state, { perSecond, forMs }) {
  const { store, ids, owners } = state;
  const count = Math.round((perSecond * forMs) / 1_000);
  const startMs = monotonicMs();
  for (let n = 0; n < count; n++) {
    const waitMs = startMs + (n * 1_000) / perSecond - monotonicMs();
    if (waitMs > 0) await sleep(waitMs);
    const t = (n * 37) % owners.length;
    const [from, to] = [owners[t], (owners[t] + 1) % ids.length];
    const key = `poll:lease:${targetOf(t)}`;
    const [held] = await store.leases.read([key], CALL);
    await store.leases.release([{ key, holder: ids[from], fence: held.fence }], CALL);
    const [fence] = await take(state, to, [t]);
    owners[t] = to;
    const facts = {
      at: Date.now(),
      instance: ids[to],
      target: targetOf(t),
      fence: String(fence),
      from: ids[from],
    };
    await store.log.append(
      [
        {
          ...facts,
          event: 'target.taken',
          how: 'handover',
          gapMs: TTL_MS + 1,
          silentMs: TTL_MS,
          wakeMs: 0,
          grantMs: 1,
        },
      ],
      CALL,
    );
    await store.signals.publish(LOG_TOPIC, '');
  }
  await store.signals.publish(FLEET_TOPIC, ids[0]);
  return count / ((monotonicMs() - startMs) / 1_000);
}

function idOf(m) {
  return `m${String(m).padStart(2, '0')}-1700000000000000000-${m.toString(16).padStart(8, '0')}`;
}

function targetOf(t) {
  return `target-${String(t).padStart(5, '0')}`;
}
