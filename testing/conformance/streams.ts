import assert from 'node:assert/strict';
import {
  HIGHEST_PRIORITY,
  LOWEST_PRIORITY,
  streamTopic,
} from '../../src/store/port/stream-store.ts';
import { ack, append, consume, consumeOne, entry, other, shown, stream } from './consumer.ts';
import { CALL, type Check } from './kit.ts';

/** What a store does with what is added to a stream, until it is given out. */
export function streaming(check: Check): void {
  ordering(check);
  ranking(check);
  adding(check);
  sharing(check);
}

function ordering(check: Check): void {
  check('gives out the entries of a lane in the order in which they were added', async (kit) => {
    await append(kit, ['a', 1], ['a', 2]);
    await append(kit, ['a', 3]);
    for (const expected of [1, 2, 3]) {
      const delivery = await consumeOne(kit);
      assert.deepEqual(shown([delivery]), [['a', expected]]);
      assert.equal(delivery.tries, 1);
      await ack(kit, delivery);
    }
    assert.deepEqual(await consume(kit), []);
  });
  check('has one entry of a lane in somebody’s hands at most', async (kit) => {
    await append(kit, ['a', 1], ['a', 2]);
    const first = await consumeOne(kit);
    assert.deepEqual(await consume(kit), []);
    await ack(kit, first);
    assert.deepEqual(shown(await consume(kit)), [['a', 2]]);
  });
  check('W-13 never holds one lane back for another', async (kit) => {
    await append(kit, ['a', 1], ['a', 2], ['b', 3], ['b', 4]);
    const [a, b] = await consume(kit);
    assert(a !== undefined && b !== undefined);
    await ack(kit, b);
    assert.deepEqual(shown(await consume(kit)), [['b', 4]]);
    await ack(kit, a);
    assert.deepEqual(shown(await consume(kit)), [['a', 2]]);
  });
  check('never holds one stream back for another', async (kit) => {
    await append(kit, ['a', 1]);
    await kit.store.streams.append(other(kit), [entry('a', 2)], CALL);
    await consumeOne(kit);
    assert.deepEqual(shown(await consume(kit, { stream: other(kit) })), [['a', 2]]);
  });
}

function ranking(check: Check): void {
  check('gives out entries of the higher priority first', async (kit) => {
    const added = [entry('low', 1, LOWEST_PRIORITY), entry('mid', 2, 5)];
    await kit.store.streams.append(stream(kit), added, CALL);
    const high = entry('high', 3, HIGHEST_PRIORITY);
    await kit.store.streams.append(stream(kit), [high], CALL);
    assert.deepEqual(
      (await consume(kit)).map(({ lane }) => lane),
      ['high', 'mid', 'low'],
    );
  });
  check('ranks a lane by its first entry, whatever comes behind it', async (kit) => {
    const added = [entry('a', 1, 5), entry('a', 2, 10), entry('b', 3, 6)];
    await kit.store.streams.append(stream(kit), added, CALL);
    const [b, a] = await consume(kit);
    assert.deepEqual(shown([b, a]), [
      ['b', 3],
      ['a', 1],
    ]);
    await ack(kit, a);
    await kit.store.streams.append(stream(kit), [entry('c', 4, 9)], CALL);
    assert.deepEqual(shown(await consume(kit)), [
      ['a', 2],
      ['c', 4],
    ]);
  });
  check('gives the turn to the lane that has waited longest, among equals', async (kit) => {
    await append(kit, ['a', 1], ['a', 2], ['b', 3], ['c', 4]);
    const seen: unknown[] = [];
    for (let n = 0; n < 4; n++) {
      const delivery = await consumeOne(kit, { most: 1 });
      seen.push(delivery.value);
      await ack(kit, delivery);
    }
    assert.deepEqual(seen, [1, 3, 4, 2]);
  });
  check('gives out as much as is wanted, of as many lanes', async (kit) => {
    await append(kit, ['a', 1], ['a', 2], ['b', 3], ['c', 4]);
    assert.deepEqual(shown(await consume(kit, { most: 2 })), [
      ['a', 1],
      ['b', 3],
    ]);
    assert.deepEqual(shown(await consume(kit, { most: 2 })), [['c', 4]]);
  });
}

function adding(check: Check): void {
  check('gives nothing out of a stream that is empty, or that nobody knows', async (kit) => {
    assert.deepEqual(await consume(kit), []);
    await append(kit, ['a', 1]);
    await ack(kit, await consumeOne(kit));
    assert.deepEqual(await consume(kit), []);
    await append(kit, ['a', 2]);
    assert.deepEqual(shown(await consume(kit)), [['a', 2]]);
  });
  check('carries any JSON in a stream, and lanes of any name', async (kit) => {
    const values = [null, 1.5, 'ä\u0000"', [], {}, { deep: [{ x: false }] }, 1e21, ''];
    for (const value of values) await append(kit, ['ä lane: {of} "any" name', value]);
    for (const value of values) {
      const delivery = await consumeOne(kit);
      assert.deepEqual([delivery.lane, delivery.value], ['ä lane: {of} "any" name', value]);
      await ack(kit, delivery);
    }
  });
  check('adds all entries or none', async (kit) => {
    const bad = [entry('a', 1), entry('b', undefined)];
    await assert.rejects(async () => kit.store.streams.append(stream(kit), bad, CALL));
    await append(kit);
    assert.deepEqual(await consume(kit), []);
  });
  check('carries hundreds of entries at once', async (kit) => {
    const lanes = Array.from({ length: 300 }, (_, n) => `lane-${n}`);
    const added = lanes.flatMap((lane) => [entry(lane, 1), entry(lane, 2)]);
    await kit.store.streams.append(stream(kit), added, CALL);
    for (const round of [1, 2]) {
      const found = await consume(kit, { most: 1_000 });
      assert.deepEqual(
        shown(found),
        lanes.map((lane) => [lane, round]),
      );
      const replies = await kit.store.streams.ack(stream(kit), found, CALL);
      assert(replies.length === 300 && replies.every((reply) => reply === 'done'));
    }
    assert.deepEqual(await consume(kit), []);
  });
  check('tells who listens what is added to a stream', async (kit) => {
    const inbox = await kit.inbox(streamTopic('stream'));
    await append(kit, ['a', 1], ['b', 2]);
    assert.equal(await inbox.next(), stream(kit));
    await append(kit, ['a', 3]);
    assert.equal(await inbox.next(), stream(kit));
    inbox.unsubscribe();
  });
  check('names all streams that anything was ever added to, in order', async (kit) => {
    const [second, first, never] = ['b', 'a', 'never'].map((name) => kit.topic(`${name}-stream`));
    assert(second !== undefined && first !== undefined && never !== undefined);
    for (const name of [second, first]) await kit.store.streams.append(name, [entry('a', 1)], CALL);
    await consume(kit, { stream: never });
    const [delivery] = await consume(kit, { stream: first });
    assert(delivery !== undefined);
    await kit.store.streams.ack(first, [delivery], CALL);
    const names = await kit.store.streams.names(CALL);
    assert.deepEqual(
      names.filter((name) => [second, first, never].includes(name)),
      [first, second],
    );
  });
}

function sharing(check: Check): void {
  check('gives no entry to two of many that ask at once', async (kit) => {
    const lanes = Array.from({ length: 40 }, (_, n) => `lane-${n}`);
    await append(kit, ...lanes.map((lane): [string, number] => [lane, 1]));
    const found = await Promise.all(
      Array.from({ length: 20 }, (_, n) => consume(kit, { consumer: `c${n}`, most: 3 })),
    );
    const given = found.flat().map(({ lane }) => lane);
    assert.deepEqual(given.sort(), [...lanes].sort());
    assert.equal(new Set(found.flat().map(({ fence }) => fence)).size, 40);
  });
  check('gives every entry out, in the order of its lane, to consumers that race', async (kit) => {
    const perLane = 10;
    const numbers = Array.from({ length: perLane }, (_, n) => n);
    const lanes = ['a', 'b', 'c'];
    await append(kit, ...lanes.flatMap((lane) => numbers.map((n): [string, number] => [lane, n])));
    const seen = new Map(lanes.map((lane): [string, unknown[]] => [lane, []]));
    let left = lanes.length * perLane;
    const work = async (consumer: string) => {
      while (left > 0)
        for (const delivery of await consume(kit, { consumer, most: 2 })) {
          seen.get(delivery.lane)?.push(delivery.value);
          left--;
          await ack(kit, delivery);
        }
    };
    await Promise.all(['x', 'y', 'z'].map(work));
    for (const lane of lanes) assert.deepEqual(seen.get(lane), numbers);
  });
}
