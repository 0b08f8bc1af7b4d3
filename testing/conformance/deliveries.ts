import assert from 'node:assert/strict';
import { DEAD_PAGE, HIGHEST_PRIORITY, LOWEST_PRIORITY } from '../../src/store/port/stream-store.ts';
import {
  ack,
  append,
  bury,
  buryMany,
  consume,
  consumeOne,
  dead,
  entry,
  other,
  retry,
  sayAll,
  shown,
  stream,
} from './consumer.ts';
import { CALL, type Check, LONG_MS, SHORT_MS } from './kit.ts';

/** Entries that a consumer has claimed. */
export function delivering(check: Check): void {
  claiming(check);
  extending(check);
  hearing(check);
  fencing(check);
  goingFirst(check);
  retrying(check);
  burying(check);
  batching(check);
}

function claiming(check: Check): void {
  check('W-13 gives to the next who asks what was not finished in time', async (kit) => {
    await append(kit, ['a', 1], ['a', 2]);
    const first = await consumeOne(kit, { claimMs: SHORT_MS });
    assert.deepEqual(await consume(kit), []);
    await kit.elapse(SHORT_MS + 10);
    const second = await consumeOne(kit);
    assert.deepEqual([second.lane, second.value, second.tries], ['a', 1, 2]);
    assert(second.fence > first.fence);
    assert.deepEqual(await consume(kit), []);
  });
  check('refuses whatever those say who had it before', async (kit) => {
    await append(kit, ['a', 1], ['a', 2]);
    const late = await consumeOne(kit, { claimMs: SHORT_MS });
    await kit.elapse(SHORT_MS + 10);
    const now = await consumeOne(kit);
    assert.deepEqual(await sayAll(kit, late), ['gone', 'gone', 'gone', 'gone']);
    assert.deepEqual(await consume(kit), []);
    assert.equal((await dead(kit)).entries.length, 0);
    await ack(kit, now);
    assert.deepEqual(shown(await consume(kit)), [['a', 2]]);
  });
}

function extending(check: Check): void {
  check('leaves with a consumer what it says that it is still at', async (kit) => {
    await append(kit, ['a', 1]);
    const delivery = await consumeOne(kit, { claimMs: SHORT_MS });
    const call = { ...CALL, claimMs: LONG_MS };
    assert.deepEqual(await kit.store.streams.extend(stream(kit), [delivery], call), ['done']);
    await kit.elapse(SHORT_MS + 10);
    assert.deepEqual(await consume(kit), []);
    await ack(kit, delivery);
  });
  check('gives it to the next when that time is over, too', async (kit) => {
    await append(kit, ['a', 1]);
    const delivery = await consumeOne(kit);
    const call = { ...CALL, claimMs: SHORT_MS };
    assert.deepEqual(await kit.store.streams.extend(stream(kit), [delivery], call), ['done']);
    await kit.elapse(SHORT_MS + 10);
    assert.equal((await consumeOne(kit)).tries, 2);
  });
}

function hearing(check: Check): void {
  check('is told once that something is done', async (kit) => {
    await append(kit, ['a', 1], ['a', 2]);
    const delivery = await consumeOne(kit);
    await ack(kit, delivery);
    assert.deepEqual(await sayAll(kit, delivery), ['gone', 'gone', 'gone', 'gone']);
    assert.deepEqual(shown(await consume(kit)), [['a', 2]]);
  });
  check('takes nobody’s word on what is in no or in other hands', async (kit) => {
    assert.deepEqual(await sayAll(kit, { lane: 'a', fence: 1 }), ['gone', 'gone', 'gone', 'gone']);
    await append(kit, ['a', 1], ['b', 2]);
    for (const fence of [0, 1])
      assert.deepEqual(await sayAll(kit, { lane: 'a', fence }), ['gone', 'gone', 'gone', 'gone']);
    const [a, b] = await consume(kit);
    assert(a !== undefined && b !== undefined);
    const mixed = { lane: 'a', fence: b.fence };
    assert.deepEqual(await sayAll(kit, mixed), ['gone', 'gone', 'gone', 'gone']);
    const elsewhere = await kit.store.streams.ack(other(kit), [a], CALL);
    assert.deepEqual(elsewhere, ['gone']);
    for (const delivery of [a, b]) await ack(kit, delivery);
  });
}

function fencing(check: Check): void {
  check('gives fences that grow over all streams, from the time in microseconds', async (kit) => {
    const fences: number[] = [];
    for (const name of [stream(kit), other(kit), stream(kit), other(kit)]) {
      await kit.store.streams.append(name, [entry(`lane-${fences.length}`, 1)], CALL);
      const [delivery] = await consume(kit, { stream: name });
      fences.push(delivery?.fence ?? 0);
    }
    assert((fences[0] ?? 0) > 1_600_000_000_000_000);
    for (const [i, fence] of fences.entries())
      assert(Number.isSafeInteger(fence) && fence > (fences[i - 1] ?? 0), fences.join());
  });
}

function goingFirst(check: Check): void {
  check('gives out first what others did not finish, or what has rested enough', async (kit) => {
    const added = [entry('left', 1, LOWEST_PRIORITY), entry('rested', 2, LOWEST_PRIORITY)];
    await kit.store.streams.append(stream(kit), added, CALL);
    const [, rested] = await consume(kit, { claimMs: SHORT_MS });
    assert(rested !== undefined);
    await retry(kit, rested, SHORT_MS);
    await kit.store.streams.append(stream(kit), [entry('new', 3, HIGHEST_PRIORITY)], CALL);
    await kit.elapse(SHORT_MS + 100);
    const found = (await consume(kit, { most: 2 })).map(({ lane }) => lane);
    assert.deepEqual(found.sort(), ['left', 'rested']);
    assert.deepEqual(shown(await consume(kit)), [['new', 3]]);
  });
}

function retrying(check: Check): void {
  check('holds a lane back while its first entry rests, and no other', async (kit) => {
    await append(kit, ['a', 1], ['a', 2]);
    await retry(kit, await consumeOne(kit), SHORT_MS);
    assert.deepEqual(await consume(kit), []);
    await append(kit, ['b', 3]);
    assert.deepEqual(shown(await consume(kit)), [['b', 3]]);
    await kit.elapse(SHORT_MS + 10);
    const again = await consumeOne(kit);
    assert.deepEqual([again.lane, again.value, again.tries], ['a', 1, 2]);
    await ack(kit, again);
    const next = await consumeOne(kit);
    assert.deepEqual([next.value, next.tries], [2, 1]);
  });
  check('takes out of its hands what is to be tried again', async (kit) => {
    await append(kit, ['a', 1]);
    const delivery = await consumeOne(kit);
    await retry(kit, delivery, LONG_MS);
    assert.deepEqual(await sayAll(kit, delivery), ['gone', 'gone', 'gone', 'gone']);
    assert.deepEqual(await consume(kit), []);
  });
  check('gives out again at once what need not rest, with a higher fence', async (kit) => {
    await append(kit, ['a', 1]);
    let last = 0;
    for (const tries of [1, 2, 3]) {
      const delivery = await consumeOne(kit);
      assert.equal(delivery.tries, tries);
      assert(delivery.fence > last);
      last = delivery.fence;
      await retry(kit, delivery, 0);
    }
  });
}

function burying(check: Check): void {
  check('W-13 puts aside what is not to be tried again; the next has its turn', async (kit) => {
    await append(kit, ['a', { n: 1 }], ['a', 2]);
    await retry(kit, await consumeOne(kit), 0);
    const delivery = await consumeOne(kit);
    await bury(kit, delivery, 'too often\u0000é');
    const next = await consumeOne(kit);
    assert.deepEqual([next.value, next.tries], [2, 1]);
    assert.deepEqual(await sayAll(kit, delivery), ['gone', 'gone', 'gone', 'gone']);
    const { entries, more } = await dead(kit);
    const [found] = entries;
    assert(found !== undefined && entries.length === 1 && !more);
    const { id, atMs, ...rest } = found;
    assert.deepEqual(rest, { lane: 'a', value: { n: 1 }, tries: 2, reason: 'too often\u0000é' });
    assert(id !== '' && atMs > 1_600_000_000_000, `${atMs} ms`);
  });
  check('has no dead in a stream where nothing was put aside', async (kit) => {
    assert.deepEqual(await dead(kit), { entries: [], more: false });
    await append(kit, ['a', 1]);
    await ack(kit, await consumeOne(kit));
    assert.deepEqual(await dead(kit), { entries: [], more: false });
  });
  check('shows the dead in pages, the oldest first', async (kit) => {
    const count = DEAD_PAGE + 5;
    await buryMany(kit, count);
    const page = await dead(kit, { most: 10 * DEAD_PAGE });
    assert.deepEqual([page.entries.length, page.more], [DEAD_PAGE, true]);
    const rest = await dead(kit, { after: page.entries.at(-1)?.id ?? '', most: 5 });
    assert.deepEqual([rest.entries.length, rest.more], [5, false]);
    assert.deepEqual(
      [...page.entries, ...rest.entries].map(({ value }) => value),
      Array.from({ length: count }, (_, n) => n),
    );
    const [first] = (await dead(kit, { most: 1 })).entries;
    assert.equal(first?.value, 0);
  });
  check('throws away the dead it is told to, and says how many there were', async (kit) => {
    await buryMany(kit, 3);
    const ids = (await dead(kit)).entries.map(({ id }) => id);
    const [first = '', , last = ''] = ids;
    assert.equal(await kit.store.streams.drop(other(kit), ids, CALL), 0);
    assert.equal(await kit.store.streams.drop(stream(kit), [first, 'nobody', last], CALL), 2);
    assert.equal(await kit.store.streams.drop(stream(kit), [first], CALL), 0);
    assert.equal(await kit.store.streams.drop(stream(kit), [], CALL), 0);
    assert.deepEqual(
      (await dead(kit)).entries.map(({ value }) => value),
      [1],
    );
  });
}

function batching(check: Check): void {
  check('answers what is said of many lanes in order, one by one', async (kit) => {
    const { streams } = kit.store;
    const lanes = ['a', 'b', 'c'];
    await append(kit, ...lanes.flatMap((lane): [string, number][] => [1, 2].map((n) => [lane, n])));
    const [a, b, c] = await consume(kit);
    assert(a !== undefined && b !== undefined && c !== undefined);
    const stranger = { lane: 'b', fence: b.fence - 1 };
    const call = { ...CALL, claimMs: LONG_MS };
    const mixed = [c, stranger, { lane: 'nobody', fence: 1 }, a];
    const expected = ['done', 'gone', 'gone', 'done'];
    assert.deepEqual(await streams.extend(stream(kit), mixed, call), expected);
    assert.deepEqual(await streams.ack(stream(kit), mixed, CALL), expected);
    const [next, last] = await consume(kit);
    assert(next !== undefined && last !== undefined);
    const later = [stranger, next].map((held) => ({ ...held, afterMs: LONG_MS }));
    assert.deepEqual(await streams.retry(stream(kit), later, CALL), ['gone', 'done']);
    const burials = [stranger, last, b].map((held) => ({ ...held, reason: 'why' }));
    assert.deepEqual(await streams.bury(stream(kit), burials, CALL), ['gone', 'done', 'done']);
    assert.deepEqual(shown(await consume(kit)), [['b', 2]]);
    assert.equal((await dead(kit)).entries.length, 2);
  });
  check('says nothing to nothing', async (kit) => {
    const { streams } = kit.store;
    await append(kit, ['a', 1]);
    assert.deepEqual(await streams.ack(stream(kit), [], CALL), []);
    assert.deepEqual(await streams.extend(stream(kit), [], { ...CALL, claimMs: LONG_MS }), []);
    assert.deepEqual(await streams.retry(stream(kit), [], CALL), []);
    assert.deepEqual(await streams.bury(stream(kit), [], CALL), []);
  });
}
