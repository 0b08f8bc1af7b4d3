import assert from 'node:assert/strict';
import { LOG_PAGE, type LogReadCall, type LogRecallCall } from '../../src/store/port/log-store.ts';
import { CALL, type Check, inTurn, type Kit, SHORT_MS } from './kit.ts';

/**
 * The log of a store is one for all, so each test looks at the entries of its own; and one of them
 * drops those of others.
 */
export function logging(check: Check): void {
  const next = inTurn(check);
  appending(next);
  following(next);
  recalling(next);
  trimming(next);
}

function appending(check: Check): void {
  check('keeps entries of a log in the order in which they were added', async (kit) => {
    const after = await newest(kit);
    await append(kit, ['a', 'b']);
    await append(kit, ['c']);
    assert.deepEqual(await readAll(kit, after), ['a', 'b', 'c']);
  });
  check('keeps any JSON in a log', async (kit) => {
    const after = await newest(kit);
    const values = [null, 1.5, 'ä\u0000"', [], { deep: [{ x: false }] }];
    await append(kit, values);
    assert.deepEqual(await readAll(kit, after), values);
  });
  check('adds nothing to a log where there is nothing to add', async (kit) => {
    const after = await newest(kit);
    await append(kit, []);
    await append(kit, ['a']);
    assert.deepEqual(await readAll(kit, after), ['a']);
  });
  check('adds a thousand entries to a log at once, and gives them in pages', async (kit) => {
    const after = await newest(kit);
    const values = Array.from({ length: LOG_PAGE }, (_, n) => n);
    await append(kit, values);
    await append(kit, ['last']);
    assert.deepEqual(await readAll(kit, after), [...values, 'last']);
    const page = await read(kit, { after, most: 10 * LOG_PAGE });
    assert.deepEqual([page.entries.length, page.more], [LOG_PAGE, true]);
  });
}

function following(check: Check): void {
  check('reads a log on from any position, as much as is wanted', async (kit) => {
    const after = await newest(kit);
    await append(kit, ['a', 'b', 'c']);
    const found: unknown[] = [];
    for (let position = after; found.length < 3; ) {
      const page = await read(kit, { after: position, most: 1 });
      assert.deepEqual([page.entries.length, page.gap], [1, false]);
      found.push(...own(kit, page.entries));
      if (found.length < 3) assert.equal(page.more, true);
      position = page.entries[0]?.position ?? '';
    }
    assert.deepEqual(found, ['a', 'b', 'c']);
  });
  check('has nothing behind the newest entry of a log, and no gap', async (kit) => {
    await append(kit, ['a']);
    for (let after = await newest(kit); ; ) {
      const page = await read(kit, { after });
      assert.equal(page.gap, false);
      // Others may be adding: at the end there is nothing more.
      if (page.entries.length === 0) return assert.equal(page.more, false);
      after = page.entries.at(-1)?.position ?? '';
    }
  });
  check('tells of a gap to who comes with a position that is none of the log’s', async (kit) => {
    await append(kit, ['a']);
    const [newer] = (await recall(kit, { most: 1 })).entries;
    const future = newer?.position.replace(/\d+$/, '8000000000000000') ?? '';
    for (const after of ['garbage', '1', '0-0', '1-1', '-5', '9'.repeat(40), '', future]) {
      const page = await read(kit, { after });
      assert.equal(page.gap, true, `'${after}'`);
      assert(page.entries.length > 0, `the page for '${after}' begins with what there is`);
    }
  });
}

function recalling(check: Check): void {
  check('recalls a log from the newest entry backwards, page by page', async (kit) => {
    await append(kit, ['a', 'b', 'c']);
    const found: unknown[] = [];
    let page = await recall(kit, { most: 2 });
    for (;;) {
      found.push(...own(kit, page.entries));
      const last = page.entries.at(-1)?.position;
      if (found.length >= 3 || !page.more || last === undefined) break;
      page = await recall(kit, { before: last, most: 2 });
      assert.equal(page.gap, false);
    }
    assert.deepEqual(found.slice(0, 3), ['c', 'b', 'a']);
  });
  check('reads a log on from where recalling it began', async (kit) => {
    await append(kit, ['a']);
    const after = await newest(kit);
    await append(kit, ['b']);
    assert.deepEqual(await readAll(kit, after), ['b']);
  });
  check('has nothing before a position that is none of the log’s', async (kit) => {
    await append(kit, ['a']);
    const page = await recall(kit, { before: 'garbage' });
    assert.deepEqual(page, { entries: [], more: false, gap: true });
  });
}

function trimming(check: Check): void {
  check('drops what is older than it is told from a log, and nothing else', async (kit) => {
    await append(kit, ['a']);
    const old = await newest(kit);
    await kit.elapse(2 * SHORT_MS);
    await append(kit, ['b']);
    const dropped = await trim(kit, SHORT_MS);
    assert(dropped > 0, 'it says how many it dropped');
    const page = await read(kit, { after: old });
    assert.deepEqual([page.gap, own(kit, page.entries)], [false, ['b']]);
    const { entries } = await read(kit, {});
    assert.deepEqual(own(kit, entries), ['b']);
  });
  check('shows all of a log that has not been dropped, however old it is', async (kit) => {
    const after = await newest(kit);
    await append(kit, ['a']);
    await kit.elapse(2 * SHORT_MS);
    assert.equal(await kit.store.log.trim({ ...CALL, keptMs: 3_600_000 }), 0);
    assert.deepEqual(await readAll(kit, after), ['a']);
  });
}

interface Own {
  readonly by: string;
  readonly value: unknown;
}

function entry(kit: Kit, value: unknown): Own {
  return { by: kit.topic('log'), value };
}

function append(kit: Kit, values: readonly unknown[]): Promise<void> {
  return kit.store.log.append(
    values.map((value) => entry(kit, value)),
    CALL,
  );
}

function own(kit: Kit, entries: readonly { value: unknown }[]): unknown[] {
  return entries.flatMap(({ value }) => {
    const { by, value: found } = value as Own;
    return by === kit.topic('log') ? [found] : [];
  });
}

function read(kit: Kit, call: Omit<LogReadCall, 'timeoutMs'>) {
  return kit.store.log.read({ ...CALL, ...call });
}

function recall(kit: Kit, call: Omit<LogRecallCall, 'timeoutMs'>) {
  return kit.store.log.recall({ ...CALL, ...call });
}

/** Until there is nothing left to drop; says how many that were. */
async function trim(kit: Kit, keptMs: number): Promise<number> {
  let count = 0;
  for (;;) {
    const dropped = await kit.store.log.trim({ ...CALL, keptMs });
    count += dropped;
    if (dropped === 0) return count;
  }
}

/** The position of the newest entry of any test. Adds an entry if there is none. */
async function newest(kit: Kit): Promise<string> {
  const find = async () => (await recall(kit, { most: 1 })).entries[0]?.position;
  const found = await find();
  if (found !== undefined) return found;
  await kit.store.log.append([{ by: 'nobody' }], CALL);
  return (await find()) ?? '';
}

/** All entries of ours after a position. */
async function readAll(kit: Kit, after: string): Promise<unknown[]> {
  const found: unknown[] = [];
  for (let position = after; ; ) {
    const page = await read(kit, { after: position });
    assert.equal(page.gap, false);
    found.push(...own(kit, page.entries));
    position = page.entries.at(-1)?.position ?? position;
    if (!page.more) return found;
  }
}
