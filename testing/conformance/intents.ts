import assert from 'node:assert/strict';
import {
  CLIENTS_MOST,
  SESSION_STATES,
  type StoredSession,
} from '../../src/store/port/intent-store.ts';
import { Gateway } from './gateway.ts';
import { CALL, type Check } from './kit.ts';

/** JSON texts that are hard to store as text. */
const TEXTS = [
  JSON.stringify({ a: [1e21, 0.1, null, 'ä\u0000"\n {} 😀'], b: {}, c: [] }),
  '{"__proto__":{"x":1},"constructor":"\'); DROP TABLE sessions; --"}',
  '"\\ud800 %s $1 KEYS[1] ]] \\u0000"',
  '[]',
  'null',
  `"${'x'.repeat(10_000)}"`,
];

/** What a store does for who wants a session to be, or not to be any more. */
export function accepting(check: Check): void {
  starting(check);
  rotating(check);
  outliving(check);
  sharing(check);
  stopping(check);
  stoppingAgain(check);
}

function starting(check: Check): void {
  check('I-01 makes a session that is NEW, with the client who asked for it', async (kit) => {
    const gateway = new Gateway(kit);
    assert.equal(await gateway.read('a'), null);
    const made = await gateway.created('a');
    const { createdAtMs, changedAtMs, ...rest } = made;
    assert.deepEqual(rest, {
      id: gateway.id('a'),
      tenant: gateway.tenant,
      kind: 'live',
      label: 'a',
      state: 'NEW',
      revision: 1,
      body: '{"of":"a"}',
      status: '"to be started"',
      clients: 1,
    });
    assert(createdAtMs > 1_600_000_000_000 && changedAtMs === createdAtMs);
    assert.deepEqual(await gateway.read('a'), made);
  });
  check('I-07 finds the session when the same is asked for again, as it was', async (kit) => {
    const gateway = new Gateway(kit);
    const made = await gateway.created('a');
    const again = { keys: ['a'], body: '"other"', status: '"other"', priority: 9 };
    assert.deepEqual(await gateway.replayed('b', again), made);
    assert.deepEqual(await gateway.replayed('a'), made);
    assert.equal(await gateway.read('b'), null);
  });
  check('I-07 makes one session of many that start it at once', async (kit) => {
    const gateway = new Gateway(kit);
    const names = Array.from({ length: 50 }, (_, n) => `x${n}`);
    const starts = names.map((client) => gateway.start(client, { keys: ['same'], client }));
    const replies = await Promise.all(starts);
    assert.equal(replies.filter(({ kind }) => kind === 'created').length, 1);
    assert.equal(replies.filter(({ kind }) => kind === 'replayed').length, 49);
    const [id, ...others] = new Set(replies.map(({ session }) => session.id));
    assert.deepEqual(others, []);
    assert.deepEqual(await gateway.listed(), [id]);
    const [found] = await gateway.store.read([id ?? ''], CALL);
    assert.equal(found?.clients, 50);
    assert.equal((await gateway.consumeOne()).lane, id);
  });
  check('I-10 makes as many sessions as there are keys, however alike', async (kit) => {
    const gateway = new Gateway(kit);
    const keys = ['key', 'KEY', 'key ', 'key:1', 'key\u0000', 'kéy', 'ke\u0301y', '__proto__'];
    for (const [n, key] of keys.entries()) await gateway.created(`x${n}`, { keys: [key] });
    for (const [n, key] of keys.entries()) {
      const found = await gateway.replayed('y', { keys: [key] });
      assert.equal(found.id, gateway.id(`x${n}`));
    }
  });
  check('I-01 keeps what a session is about, whatever stands in it', async (kit) => {
    const gateway = new Gateway(kit, '__proto__');
    for (const [n, text] of TEXTS.entries()) {
      const client = n % 2 === 0 ? '__proto__' : 'constructor';
      const made = await gateway.created(`x${n}`, { body: text, status: text, client });
      assert.deepEqual([made.body, made.status, made.clients], [text, text, 1]);
      assert.deepEqual(await gateway.read(`x${n}`), made);
      const changed = await gateway.advanced(`x${n}`, 'RUNNING', `[${text}]`);
      assert.deepEqual([changed.body, changed.status], [text, `[${text}]`]);
      assert.deepEqual(await gateway.read(`x${n}`), changed);
    }
    const { sessions } = await gateway.list();
    assert.deepEqual(
      sessions.map(({ body }) => body),
      [...TEXTS].reverse(),
    );
  });
}

function rotating(check: Check): void {
  check('I-05 finds by the previous key what was made with it, then by both', async (kit) => {
    const gateway = new Gateway(kit);
    const made = await gateway.created('a', { keys: ['old'] });
    assert.deepEqual(await gateway.replayed('b', { keys: ['new', 'old'] }), made);
    for (const keys of [['new'], ['old'], ['newest', 'new']])
      assert.deepEqual(await gateway.replayed('b', { keys }), made);
    assert.deepEqual(await gateway.replayed('b', { keys: ['newest'] }), made);
  });
  check('I-05 finds by either key what was made with both', async (kit) => {
    const gateway = new Gateway(kit);
    const made = await gateway.created('a', { keys: ['new', 'old'] });
    for (const key of ['old', 'new'])
      assert.deepEqual(await gateway.replayed('b', { keys: [key] }), made);
  });
  check('I-05 makes one session of many starts while a secret is changed', async (kit) => {
    const gateway = new Gateway(kit);
    const known = [['old'], ['new', 'old'], ['new', 'old'], ['old']];
    const starts = Array.from({ length: 40 }, (_, n) =>
      gateway.start(`x${n}`, { keys: known[n % known.length] ?? [], client: `c${n % 10}` }),
    );
    const replies = await Promise.all(starts);
    assert.equal(new Set(replies.map(({ session }) => session.id)).size, 1);
    assert.equal(replies.filter(({ kind }) => kind === 'created').length, 1);
    assert.equal((await gateway.replayed('y', { keys: ['new'] })).clients, 11);
    await gateway.consumeOne();
  });
  check('I-05 goes by the first of the keys that leads anywhere', async (kit) => {
    const gateway = new Gateway(kit);
    await gateway.created('a');
    const second = await gateway.created('b');
    assert.deepEqual(await gateway.replayed('c', { keys: ['none', 'b', 'a'] }), second);
    // The key of the other one has come to lead to this one, so it stays when that ends.
    await gateway.advanced('a', 'ENDED');
    for (const key of ['none', 'a', 'b'])
      assert.deepEqual(await gateway.replayed('c', { keys: [key] }), second);
    await gateway.advanced('b', 'ENDED');
    await gateway.created('c', { keys: ['none', 'a', 'b'] });
  });
}

function outliving(check: Check): void {
  check('I-06 finds a session in every state but the last', async (kit) => {
    const gateway = new Gateway(kit);
    for (const state of SESSION_STATES.filter((each) => each !== 'ENDED')) {
      const made = await gateway.at(state, state);
      assert.deepEqual(await gateway.replayed('again', { keys: [state] }), made);
    }
    await gateway.at('ENDED', 'a');
    const next = await gateway.created('b', { keys: ['a'] });
    assert.deepEqual([next.state, next.revision], ['NEW', 1]);
    assert.deepEqual(await gateway.replayed('c', { keys: ['a'] }), next);
  });
  check('I-06 finds no session by any of its keys once it has ended', async (kit) => {
    const gateway = new Gateway(kit);
    const keys = ['k1', 'k2', 'k3', 'k4'];
    await gateway.created('a', { keys: keys.slice(0, 2) });
    await gateway.replayed('a', { keys: keys.slice(1, 3) });
    await gateway.replayed('a', { keys: ['k4', 'k3'] });
    await gateway.advanced('a', 'RUNNING');
    await gateway.advanced('a', 'ENDED');
    for (const key of keys) await gateway.created(key, { keys: [key] });
  });
  check('I-06 finds no session that was stopped before it was begun', async (kit) => {
    const gateway = new Gateway(kit);
    await gateway.created('a', { keys: ['new', 'old'] });
    await gateway.stop('a');
    await gateway.created('b', { keys: ['old'] });
    await gateway.created('c', { keys: ['new'] });
    assert.equal((await gateway.found('a')).state, 'ENDED');
  });
  check('I-06 gives nobody a session that has ended, also at that moment', async (kit) => {
    const gateway = new Gateway(kit);
    for (let n = 0; n < 10; n++) {
      const { revision } = await gateway.at('RUNNING', `a${n}`, { keys: ['same'] });
      const change = { ifRevision: revision, state: 'ENDED' as const };
      const [, ...replies] = await Promise.all([
        gateway.advance(`a${n}`, change),
        ...['x', 'y', 'z'].map((name) => gateway.start(`${name}${n}`, { keys: ['same'] })),
      ]);
      for (const { session } of replies) assert.notEqual(session.state, 'ENDED');
      const last = await gateway.start(`last${n}`, { keys: ['same'] });
      const stop = { id: last.session.id, force: true };
      assert.equal((await gateway.stop('', stop)).kind, 'found');
      assert.notEqual(last.session.id, gateway.id(`a${n}`));
    }
  });
}

function sharing(check: Check): void {
  check('I-14 has each client once, however often it asks', async (kit) => {
    const gateway = new Gateway(kit);
    const made = await gateway.created('a', { client: 'x' });
    const clients = Array.from({ length: 30 }, (_, n) => ['x', 'y', 'X'][n % 3] ?? '');
    const { clients: count, ...rest } = await gateway.shared('a', clients);
    assert.equal(count, 3);
    // Who wants it is no change of what it is.
    assert.deepEqual({ ...rest, clients: 1 }, made);
  });
  check('I-14 takes no more clients than a session may have', async (kit) => {
    const gateway = new Gateway(kit);
    const clients = Array.from({ length: CLIENTS_MOST }, (_, n) => `c${n}`);
    const full = await gateway.shared('a', clients);
    assert.equal(full.clients, CLIENTS_MOST);
    const crowded = { kind: 'crowded', session: full };
    assert.deepEqual(await gateway.start('b', { keys: ['a'], client: 'more' }), crowded);
    assert.deepEqual(await gateway.replayed('a', { client: 'c7' }), full);
    await gateway.stop('a', { client: 'c7' });
    assert.deepEqual(await gateway.replayed('a', { client: 'more' }), full);
    assert.deepEqual(await gateway.start('a', { client: 'c7' }), crowded);
    const ended = await gateway.stop('a', { force: true });
    assert(ended.kind === 'found' && ended.session.clients === 0 && ended.changed);
  });
}

/** Nothing of a session is another now. */
async function assertSame(gateway: Gateway, name: string, before: StoredSession): Promise<void> {
  assert.deepEqual(await gateway.read(name), before);
}

function stopping(check: Check): void {
  check('I-14 goes on while there is a client left', async (kit) => {
    const gateway = new Gateway(kit);
    await gateway.at('RUNNING', 'a', { client: 'x' });
    const before = await gateway.shared('a', ['x', 'y', 'z']);
    const session = { ...before, clients: 2 };
    const stayed = { kind: 'found', session, changed: false };
    assert.deepEqual(await gateway.stop('a', { client: 'x' }), stayed);
    // It is not among them any more.
    assert.deepEqual(await gateway.stop('a', { client: 'x' }), stayed);
    assert.deepEqual(await gateway.stop('a', { client: 'stranger' }), stayed);
    await assertSame(gateway, 'a', session);
    assert.deepEqual(await gateway.replayed('a', { client: 'x' }), before);
  });
  check('I-14 is to stop when the last client goes', async (kit) => {
    const gateway = new Gateway(kit);
    for (const state of ['STARTING', 'RUNNING'] as const) {
      const before = await gateway.at(state, state);
      await kit.elapse(5);
      const reply = await gateway.stop(state);
      assert(reply.kind === 'found' && reply.changed);
      const { changedAtMs, ...rest } = reply.session;
      const { changedAtMs: beforeMs, revision, ...others } = before;
      const stopping = { state: 'STOPPING', revision: revision + 1, clients: 0 };
      assert.deepEqual(rest, { ...others, ...stopping });
      assert(changedAtMs > beforeMs);
      await assertSame(gateway, state, reply.session);
    }
  });
  check('I-14 has ended when the last client goes before it was begun', async (kit) => {
    const gateway = new Gateway(kit);
    const before = await gateway.created('a');
    await kit.elapse(5);
    const reply = await gateway.stop('a', { ending: '{"reason":"{}😀"}' });
    assert(reply.kind === 'found' && reply.changed);
    const { changedAtMs, ...rest } = reply.session;
    const { changedAtMs: beforeMs, ...others } = before;
    const ended = { state: 'ENDED', status: '{"reason":"{}😀"}', revision: 2, clients: 0 };
    assert.deepEqual(rest, { ...others, ...ended });
    assert(changedAtMs > beforeMs);
    await assertSame(gateway, 'a', reply.session);
  });
  check('I-14 is stopped by one of many clients that go at once', async (kit) => {
    const gateway = new Gateway(kit);
    const clients = Array.from({ length: 20 }, (_, n) => `c${n}`);
    await gateway.at('RUNNING', 'a', { client: 'c0' });
    const { revision } = await gateway.shared('a', clients);
    const replies = await Promise.all(clients.map((client) => gateway.stop('a', { client })));
    const changes = replies.filter((reply) => reply.kind === 'found' && reply.changed);
    assert.equal(changes.length, 1);
    const { state, clients: left, revision: after } = await gateway.found('a');
    assert.deepEqual([state, left, after], ['STOPPING', 0, revision + 1]);
  });
  check('I-14 is stopped for all by who may force it', async (kit) => {
    const gateway = new Gateway(kit);
    const expected = { NEW: 'ENDED', STARTING: 'STOPPING', RUNNING: 'STOPPING' } as const;
    for (const state of ['NEW', 'STARTING', 'RUNNING'] as const) {
      await gateway.at(state, state);
      await gateway.shared(state, ['x', 'y']);
      const reply = await gateway.stop(state, { client: 'stranger', force: true });
      assert(reply.kind === 'found' && reply.changed);
      assert.deepEqual([reply.session.state, reply.session.clients], [expected[state], 0]);
      await assertSame(gateway, state, reply.session);
    }
  });
}

function stoppingAgain(check: Check): void {
  check('I-14 leaves as it is what is stopping or has ended', async (kit) => {
    const gateway = new Gateway(kit);
    for (const state of ['STOPPING', 'ENDED'] as const) {
      await gateway.created(state);
      await gateway.shared(state, ['x', 'y']);
      const before = await gateway.advanced(state, state);
      for (const more of [{ client: 'x' }, { client: 'stranger' }, { force: true }]) {
        const stayed = { kind: 'found', session: before, changed: false };
        assert.deepEqual(await gateway.stop(state, more), stayed);
      }
      await assertSame(gateway, state, before);
    }
  });
  check('I-14 stops no session of another tenant, unless for who may stop any', async (kit) => {
    const gateway = new Gateway(kit);
    const before = await gateway.created('a');
    for (const tenant of [kit.topic('other'), '', `${gateway.tenant}:`]) {
      for (const force of [false, true])
        assert.deepEqual(await gateway.stop('a', { tenant, force }), { kind: 'absent' });
    }
    await assertSame(gateway, 'a', before);
    const reply = await gateway.stop('a', { tenant: null });
    assert(reply.kind === 'found' && reply.changed);
  });
  check('I-14 knows nothing of a session that there is not', async (kit) => {
    const gateway = new Gateway(kit);
    for (const tenant of [gateway.tenant, null])
      assert.deepEqual(await gateway.stop('none', { tenant, force: true }), { kind: 'absent' });
    assert.equal(await gateway.read('none'), null);
  });
}
