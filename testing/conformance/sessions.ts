import assert from 'node:assert/strict';
import {
  SESSION_CHANGES_TOPIC,
  SESSION_STATES,
  SESSIONS_PAGE,
  startStream,
} from '../../src/store/port/intent-store.ts';
import {
  HIGHEST_PRIORITY,
  LOWEST_PRIORITY,
  streamTopic,
} from '../../src/store/port/stream-store.ts';
import { Gateway } from './gateway.ts';
import { CALL, type Check, LONG_MS } from './kit.ts';

const START_STREAM = startStream('live');

/** What is no cursor, but might pass for one where numbers or ranges are read from texts. */
const NO_CURSORS = [
  '',
  'garbage',
  '{}',
  'NaN',
  'inf',
  '-inf',
  '(1',
  '+',
  '-',
  '0x',
  '1,2',
  '😀',
  '__proto__',
  'x'.repeat(10_000),
];

/** What a store does with a session once it was asked for. */
export function accounting(check: Check): void {
  advancing(check);
  publishing(check);
  publishingAgain(check);
  listing(check);
  listingSome(check);
  sortingByKind(check);
  listingByKind(check);
  pruning(check);
  pruningStarts(check);
  telling(check);
}

function advancing(check: Check): void {
  check('I-20 changes state and status, and counts the changes', async (kit) => {
    const gateway = new Gateway(kit);
    let before = await gateway.created('a');
    for (const state of SESSION_STATES.slice(1)) {
      await kit.elapse(5);
      const status = `"${state}"`;
      const reply = await gateway.advance('a', { ifRevision: before.revision, state, status });
      assert(reply.kind === 'advanced');
      const { changedAtMs, ...rest } = reply.session;
      const { changedAtMs: beforeMs, revision, ...others } = before;
      assert.deepEqual(rest, { ...others, state, status, revision: revision + 1 });
      assert(changedAtMs > beforeMs);
      before = reply.session;
      assert.deepEqual(await gateway.read('a'), before);
    }
    assert.equal(before.revision, SESSION_STATES.length);
  });
  check('I-20 changes the status alone where the state stays', async (kit) => {
    const gateway = new Gateway(kit);
    await gateway.at('RUNNING', 'a');
    const { state, status, revision } = await gateway.advanced('a', 'RUNNING', '"half"');
    assert.deepEqual([state, status, revision], ['RUNNING', '"half"', 3]);
  });
  check('I-09 changes nothing at another revision, and says what there is', async (kit) => {
    const gateway = new Gateway(kit);
    const before = await gateway.at('RUNNING', 'a');
    for (const ifRevision of [0, 1, 3, -1, 1e9]) {
      const reply = await gateway.advance('a', { ifRevision, state: 'ENDED' });
      assert.deepEqual(reply, { kind: 'conflict', session: before });
    }
    assert.deepEqual(await gateway.read('a'), before);
    assert.deepEqual(await gateway.replayed('a'), before);
  });
  check('I-09 takes one of many changes at the same revision', async (kit) => {
    const gateway = new Gateway(kit);
    await gateway.created('a');
    const change = { ifRevision: 1, state: 'STARTING' as const };
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, n) => gateway.advance('a', { ...change, status: `${n}` })),
    );
    const taken = replies.filter((reply) => reply.kind === 'advanced');
    assert.deepEqual(
      taken.map(({ session }) => session),
      [await gateway.read('a')],
    );
    assert.equal((await gateway.found('a')).revision, 2);
  });
  check('I-20 changes nothing of what has ended', async (kit) => {
    const gateway = new Gateway(kit);
    const ended = await gateway.at('ENDED', 'a');
    for (const state of SESSION_STATES) {
      const reply = await gateway.advance('a', { ifRevision: ended.revision, state });
      assert.deepEqual(reply, { kind: 'conflict', session: ended });
    }
    assert.deepEqual(await gateway.read('a'), ended);
    const none = await gateway.advance('none', { ifRevision: 0, state: 'RUNNING' });
    assert.deepEqual(none, { kind: 'absent' });
    assert.equal(await gateway.read('none'), null);
  });
}

function publishing(check: Check): void {
  check('I-13 puts a session once into the stream of starts, in its own lane', async (kit) => {
    const gateway = new Gateway(kit);
    const { id } = await gateway.created('a');
    await gateway.replayed('a');
    await gateway.replayed('b', { keys: ['a'], client: 'other' });
    const delivery = await gateway.consumeOne();
    const { lane, value, tries } = delivery;
    assert.deepEqual([lane, value, tries], [id, { session: id }, 1]);
    await gateway.replayed('a');
    await gateway.ack(delivery);
    // Had there been another in the lane, it would be there now.
    assert.deepEqual(await gateway.consume(), []);
    assert((await kit.store.streams.names(CALL)).includes(START_STREAM));
  });
  check('I-13 gives out first what is to be started first', async (kit) => {
    const gateway = new Gateway(kit);
    await gateway.consume();
    await gateway.created('low', { priority: LOWEST_PRIORITY });
    await gateway.created('middle');
    await gateway.created('high', { priority: HIGHEST_PRIORITY });
    const given = await gateway.consume();
    assert.deepEqual(
      given.map(({ lane }) => lane),
      ['high', 'middle', 'low'].map((name) => gateway.id(name)),
    );
  });
}

function publishingAgain(check: Check): void {
  check('I-13 puts back into the stream what that has lost', async (kit) => {
    const gateway = new Gateway(kit);
    await gateway.created('a', { priority: LOWEST_PRIORITY });
    await gateway.created('b', { priority: HIGHEST_PRIORITY });
    await gateway.created('c');
    await gateway.ack(...(await gateway.consume()));
    const lost = ['a', 'b'].map((name) => gateway.id(name));
    assert.deepEqual(await gateway.republish('a', 'b'), lost);
    assert.deepEqual(await gateway.republish('a', 'b'), []);
    const given = await gateway.consume();
    assert.deepEqual(
      given.map(({ lane, value }) => [lane, value]),
      [...lost].reverse().map((id) => [id, { session: id }]),
    );
    await gateway.ack(...given);
    assert.deepEqual(await gateway.consume(), []);
    assert.equal((await gateway.found('a')).revision, 1);
  });
  check('I-13 puts nothing back that waits, is in hands, or rests', async (kit) => {
    const gateway = new Gateway(kit);
    await gateway.created('a');
    assert.deepEqual(await gateway.republish('a'), []);
    await gateway.consumeOne(1);
    assert.deepEqual(await gateway.republish('a'), []);
    await kit.elapse(20);
    assert.deepEqual(await gateway.republish('a'), []);
    const delivery = await gateway.consumeOne();
    assert.equal(delivery.tries, 2);
    const later = [{ ...delivery, afterMs: LONG_MS }];
    await kit.store.streams.retry(START_STREAM, later, CALL);
    assert.deepEqual(await gateway.republish('a'), []);
    assert.deepEqual(await gateway.consume(), []);
  });
  check('I-13 puts back what was put aside while it was NEW', async (kit) => {
    const gateway = new Gateway(kit);
    const { id } = await gateway.created('a');
    const burial = { ...(await gateway.consumeOne()), reason: 'nobody could start it' };
    await kit.store.streams.bury(START_STREAM, [burial], CALL);
    assert.deepEqual(await gateway.republish('a'), [id]);
    assert.equal((await gateway.consumeOne()).lane, id);
  });
  check('I-13 puts back nothing that is not NEW any more, or never was', async (kit) => {
    const gateway = new Gateway(kit);
    for (const state of SESSION_STATES) await gateway.at(state, state);
    await gateway.ack(...(await gateway.consume()));
    const names = ['none', ...SESSION_STATES, 'NEW'];
    assert.deepEqual(await gateway.republish(...names), [gateway.id('NEW')]);
    assert.equal((await gateway.consumeOne()).lane, gateway.id('NEW'));
    assert.deepEqual(await gateway.republish(), []);
  });
  check('I-13 puts back once what many find to be lost', async (kit) => {
    const gateway = new Gateway(kit);
    await gateway.created('a');
    await gateway.ack(await gateway.consumeOne());
    const sweeps = await Promise.all(Array.from({ length: 10 }, () => gateway.republish('a')));
    assert.deepEqual(sweeps.flat(), [gateway.id('a')]);
    await gateway.ack(await gateway.consumeOne());
    assert.deepEqual(await gateway.consume(), []);
  });
}

function listing(check: Check): void {
  check('reads many sessions in order, and nothing where there is none', async (kit) => {
    const gateway = new Gateway(kit);
    const [a, b] = [await gateway.created('a'), await gateway.at('ENDED', 'b')];
    const ids = ['b', 'none', 'a', 'b'].map((name) => gateway.id(name));
    assert.deepEqual(await gateway.store.read(ids, CALL), [b, null, a, b]);
    assert.deepEqual(await gateway.store.read([], CALL), []);
  });
  check('lists sessions page by page, the latest made first', async (kit) => {
    const gateway = new Gateway(kit);
    const names = Array.from({ length: 12 }, (_, n) => `x${n}`);
    for (const name of names) await gateway.created(name);
    // What happens to a session does not change when it was made.
    for (const name of ['x3', 'x7']) await gateway.advanced(name, 'RUNNING');
    await gateway.advanced('x5', 'ENDED');
    const ids = names.map((name) => gateway.id(name)).reverse();
    for (const most of [1, 5, 6, 11, 12, 13]) assert.deepEqual(await gateway.listed({ most }), ids);
    const page = await gateway.list();
    assert.equal(page.cursor, undefined);
    assert.deepEqual(page.sessions, await gateway.store.read(ids, CALL));
    const ofAll = await gateway.store.list({ ...CALL, most: 12 });
    assert.deepEqual(ofAll.sessions, page.sessions);
  });
  check('goes on with the next page whatever has been made since', async (kit) => {
    const gateway = new Gateway(kit);
    for (const name of ['a', 'b', 'c', 'd']) await gateway.created(name);
    const first = await gateway.list({ most: 2 });
    assert(first.cursor !== undefined);
    for (const name of ['e', 'f', 'g']) await gateway.created(name);
    await gateway.advanced('b', 'ENDED');
    const { cursor } = first;
    const second = await gateway.list({ most: 2, cursor });
    assert.deepEqual(
      [...first.sessions, ...second.sessions].map(({ id }) => id),
      ['d', 'c', 'b', 'a'].map((name) => gateway.id(name)),
    );
    assert.equal(second.cursor, undefined);
    const open = await gateway.list({ cursor, isOpen: true });
    assert.deepEqual(
      open.sessions.map(({ id }) => id),
      [gateway.id('a')],
    );
  });
  check('begins at the beginning with what is no cursor', async (kit) => {
    const gateway = new Gateway(kit);
    for (const name of ['a', 'b', 'c']) await gateway.created(name);
    const first = await gateway.list({ most: 2 });
    for (const cursor of NO_CURSORS)
      assert.deepEqual(await gateway.list({ most: 2, cursor }), first, cursor.slice(0, 20));
  });
}

function listingSome(check: Check): void {
  check('lists the sessions of one tenant, and nobody else’s', async (kit) => {
    const [a, b] = [new Gateway(kit, 'a'), new Gateway(kit, 'b')];
    for (const n of [1, 2, 3]) {
      await a.created(`a${n}`);
      await b.created(`b${n}`);
    }
    assert.deepEqual(
      await a.listed({ most: 2 }),
      ['a3', 'a2', 'a1'].map((name) => a.id(name)),
    );
    assert.deepEqual(
      await b.listed({ isOpen: true }),
      ['b3', 'b2', 'b1'].map((name) => b.id(name)),
    );
    for (const tenant of ['', kit.topic(''), `${a.tenant}:`, '*'])
      assert.deepEqual(await a.listed({ tenant }), []);
  });
  check('lists what has not ended, if only that is asked for', async (kit) => {
    const gateway = new Gateway(kit);
    for (const state of SESSION_STATES) await gateway.at(state, state);
    await gateway.created('stopped');
    await gateway.stop('stopped');
    const open = ['STOPPING', 'RUNNING', 'STARTING', 'NEW'].map((name) => gateway.id(name));
    assert.deepEqual(await gateway.listed({ isOpen: true }), open);
    assert.deepEqual(await gateway.listed({ isOpen: true, most: 1 }), open);
    assert.equal((await gateway.listed({ isOpen: false })).length, SESSION_STATES.length + 1);
    const ofAll = await gateway.store.list({ ...CALL, isOpen: true, most: 4 });
    assert.deepEqual(
      ofAll.sessions.map(({ id }) => id),
      open,
    );
  });
  check('lists no more on a page than a page has', async (kit) => {
    const gateway = new Gateway(kit);
    const names = Array.from({ length: SESSIONS_PAGE + 1 }, (_, n) => `x${n}`);
    for (let at = 0; at < names.length; at += 250)
      await Promise.all(names.slice(at, at + 250).map((name) => gateway.created(name)));
    const page = await gateway.list({ most: 10 * SESSIONS_PAGE });
    assert.equal(page.sessions.length, SESSIONS_PAGE);
    assert.equal((await gateway.list()).sessions.length, SESSIONS_PAGE);
    const all = await gateway.listed();
    assert.deepEqual([all.length, new Set(all).size], [SESSIONS_PAGE + 1, SESSIONS_PAGE + 1]);
    // Nobody else has to go through so much.
    for (let given = await gateway.consume(); given.length > 0; given = await gateway.consume())
      await gateway.ack(...given);
  });
}

function sortingByKind(check: Check): void {
  check('B-12 puts a start into the stream of its kind, and into no other', async (kit) => {
    const gateway = new Gateway(kit);
    const { id } = await gateway.created('a', { kind: 'transcode' });
    assert.deepEqual(await gateway.consume(), []);
    const call = { ...CALL, consumer: 'worker', most: 1_000, claimMs: LONG_MS };
    const given = await kit.store.streams.consume(startStream('transcode'), call);
    assert.deepEqual(
      given.filter(({ lane }) => lane === id).map(({ value }) => value),
      [{ session: id }],
    );
    await gateway.advanced('a', 'ENDED');
  });
  check('B-12 puts a lost start back into the stream of its kind', async (kit) => {
    const gateway = new Gateway(kit);
    const { id } = await gateway.created('a', { kind: 'lost-kind' });
    const call = { ...CALL, consumer: 'worker', most: 1_000, claimMs: LONG_MS };
    const stream = startStream('lost-kind');
    const given = await kit.store.streams.consume(stream, call);
    await kit.store.streams.ack(stream, given, CALL);
    assert.deepEqual(await gateway.republish('a'), [id]);
    assert.deepEqual(await gateway.republish('a'), []);
    const again = await kit.store.streams.consume(stream, call);
    assert.deepEqual(
      again.map(({ lane }) => lane),
      [id],
    );
  });
}

function listingByKind(check: Check): void {
  check('B-14 lists sessions by kind, label, tenant and state, over pages', async (kit) => {
    const [a, b] = [new Gateway(kit, 'ta'), new Gateway(kit, 'tb')];
    const kinds = ['one', 'two'];
    const made: { id: string; tenant: string; kind: string; label: string; isOpen: boolean }[] = [];
    for (let n = 0; n < 24; n++) {
      const gateway = n % 3 === 0 ? b : a;
      const kind = `${kinds[n % 2]}-of-listing`;
      const label = `label ${n % 4}:ü{}`;
      const { id, tenant } = await gateway.created(`x${n}`, { kind, label });
      const isOpen = n % 5 !== 0;
      if (!isOpen) await gateway.advanced(`x${n}`, 'ENDED');
      made.unshift({ id, tenant, kind, label, isOpen });
    }
    for (const kind of kinds.map((name) => `${name}-of-listing`))
      for (const label of [undefined, 'label 0:ü{}', 'label 1:ü{}', 'none'])
        for (const tenant of [a.tenant, b.tenant])
          for (const isOpen of [false, true])
            for (const most of [2, 100]) {
              const due = made.filter(
                (one) =>
                  one.kind === kind &&
                  one.tenant === tenant &&
                  (label === undefined || one.label === label) &&
                  (one.isOpen || !isOpen),
              );
              const found = await a.listed({ tenant, kind, label, isOpen, most });
              assert.deepEqual(
                found,
                due.map(({ id }) => id),
              );
            }
  });
  check(
    'B-14 keeps kind and label in every state, and forgets both with the session',
    async (kit) => {
      const gateway = new Gateway(kit);
      const listed = { kind: 'kept', label: 'a label' };
      await gateway.created('a', { ...listed, client: 'x' });
      await gateway.shared('a', ['y']);
      await gateway.advanced('a', 'RUNNING');
      await gateway.stop('a', { force: true });
      const { kind, label, state } = await gateway.found('a');
      assert.deepEqual([kind, label, state], ['kept', 'a label', 'STOPPING']);
      const { changedAtMs } = await gateway.advanced('a', 'ENDED');
      assert.deepEqual(await gateway.listed(listed), [gateway.id('a')]);
      await gateway.prune(changedAtMs + 1);
      assert.deepEqual(await gateway.listed(listed), []);
    },
  );
}

function pruning(check: Check): void {
  check('I-06 forgets what ended before a time, and nothing else', async (kit) => {
    const gateway = new Gateway(kit);
    const open = SESSION_STATES.filter((state) => state !== 'ENDED');
    for (const state of open) await gateway.at(state, state);
    await gateway.created('early', { client: 'x' });
    await gateway.shared('early', ['y', 'z']);
    const { changedAtMs } = await gateway.advanced('early', 'ENDED');
    await kit.elapse(5);
    const late = await gateway.at('ENDED', 'late');
    // The earliest there can be, so that no other is counted below.
    while ((await gateway.prune(changedAtMs)) > 0);
    assert.equal((await gateway.found('early')).changedAtMs, changedAtMs);
    assert.equal(await gateway.prune(changedAtMs + 1), 1);
    assert.equal(await gateway.read('early'), null);
    assert.deepEqual(
      await gateway.listed(),
      ['late', ...[...open].reverse()].map((name) => gateway.id(name)),
    );
    const tenant = null;
    assert.deepEqual(await gateway.stop('early', { tenant, force: true }), { kind: 'absent' });
    const change = { ifRevision: 2, state: 'NEW' as const };
    assert.deepEqual(await gateway.advance('early', change), { kind: 'absent' });
    assert.equal(await gateway.prune(late.changedAtMs + LONG_MS), 1);
    assert.equal((await gateway.listed()).length, open.length);
  });
  check('I-14 knows nothing of the clients of a session that was forgotten', async (kit) => {
    const gateway = new Gateway(kit);
    await gateway.created('a', { client: 'x' });
    await gateway.shared('a', ['y', 'z']);
    const { changedAtMs } = await gateway.advanced('a', 'ENDED');
    while ((await gateway.prune(changedAtMs + 1)) > 0);
    const { clients } = await gateway.created('a', { client: 'x' });
    assert.equal(clients, 1);
    assert.equal((await gateway.replayed('a', { client: 'y' })).clients, 2);
  });
  check('forgets no more than it is told to, what ended first before others', async (kit) => {
    const gateway = new Gateway(kit);
    const names = ['c', 'a', 'd', 'b', 'e'];
    for (const name of [...names].sort()) await gateway.created(name);
    let endedAtMs = 0;
    for (const name of names) {
      ({ changedAtMs: endedAtMs } = await gateway.advanced(name, 'ENDED'));
      if (name === 'c') while ((await gateway.prune(endedAtMs)) > 0);
      await kit.elapse(2);
    }
    assert.equal(await gateway.prune(endedAtMs + 1, 2), 2);
    assert.deepEqual(
      await gateway.listed(),
      ['e', 'd', 'b'].map((name) => gateway.id(name)),
    );
    assert.equal(await gateway.prune(endedAtMs + 1, 2), 2);
    assert.equal(await gateway.prune(endedAtMs + 1, 2), 1);
    assert.equal(await gateway.prune(endedAtMs + 1, 2), 0);
  });
}

function pruningStarts(check: Check): void {
  check('I-13 forgets the start of a session with the session', async (kit) => {
    const gateway = new Gateway(kit);
    const claimMs = 20;
    await gateway.created('taken');
    await gateway.consumeOne(claimMs);
    for (const name of ['waiting', 'kept']) await gateway.created(name);
    for (const name of ['taken', 'waiting']) await gateway.stop(name);
    const { changedAtMs } = await gateway.found('waiting');
    while ((await gateway.prune(changedAtMs + 1)) > 0);
    // After this time the claim on the first may have expired, and it would be given out again.
    await kit.elapse(2 * claimMs);
    assert.equal((await gateway.consumeOne()).lane, gateway.id('kept'));
    await gateway.created('waiting');
    assert.equal((await gateway.consumeOne()).lane, gateway.id('waiting'));
  });
}

function telling(check: Check): void {
  check('I-10 tells who listens of every change of state', async (kit) => {
    const gateway = new Gateway(kit);
    const ids = ['a', 'b'].map((name) => gateway.id(name));
    const ear = await gateway.ear(SESSION_CHANGES_TOPIC, (message) => ids.includes(message));
    await gateway.created('a');
    for (const state of ['STARTING', 'RUNNING'] as const) {
      await gateway.advanced('a', state);
      assert.equal(await ear.next(), ids[0]);
    }
    await gateway.stop('a');
    assert.equal(await ear.next(), ids[0]);
    await gateway.advanced('a', 'ENDED');
    assert.equal(await ear.next(), ids[0]);
    await gateway.created('b');
    await gateway.stop('b');
    assert.equal(await ear.next(), ids[1]);
    ear.unsubscribe();
  });
  check('I-13 tells who listens that there is something to start', async (kit) => {
    const gateway = new Gateway(kit);
    const ear = await gateway.ear(streamTopic(START_STREAM), () => true);
    await gateway.created('a');
    assert.equal(await ear.next(), START_STREAM);
    await gateway.ack(await gateway.consumeOne());
    await gateway.republish('a');
    assert.equal(await ear.next(), START_STREAM);
    ear.unsubscribe();
  });
}
