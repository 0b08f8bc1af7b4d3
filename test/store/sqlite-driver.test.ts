import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Driver } from '../../src/store/sqlite/driver/driver.ts';
import { libsqlDriver } from '../../src/store/sqlite/driver/libsql.ts';
import { nodeDriver } from '../../src/store/sqlite/driver/node-sqlite.ts';
import { isBroken, isBusy } from '../../src/store/sqlite/file/failures.ts';

const root = mkdtempSync(join(tmpdir(), 'holdfast-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

// Node 20 has one driver. A file of its own for each: two libraries on one file of one process drop each other's locks.
const drivers = [libsqlDriver(), nodeDriver()].filter((driver) => driver !== null);

let files = 0;
function newFile(): string {
  files += 1;
  return join(root, `${files}.db`);
}

/** Gives two connections to one new file, with a log and one table. */
function two(driver: Driver) {
  const path = newFile();
  const [one, other] = [driver.open(path), driver.open(path)];
  one.exec('PRAGMA journal_mode = WAL');
  one.exec('CREATE TABLE t (id TEXT PRIMARY KEY, n INTEGER, x REAL)');
  return { path, one, other };
}

function thrown(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}

describe.each(drivers)('the driver $name', (driver) => {
  it('returns rows as arrays, and numbers as they were put, up to the largest fence', () => {
    const { one, other } = two(driver);
    const put = one.prepare('INSERT INTO t VALUES (?, ?, ?) RETURNING id, n');
    expect(put.row(['a', Number.MAX_SAFE_INTEGER, 0.5])).toEqual(['a', Number.MAX_SAFE_INTEGER]);
    expect(put.row(['b', null, -1])).toEqual(['b', null]);
    expect(other.prepare('SELECT id, n, x FROM t ORDER BY id').rows([])).toEqual([
      ['a', Number.MAX_SAFE_INTEGER, 0.5],
      ['b', null, -1],
    ]);
    expect(other.prepare('SELECT id FROM t WHERE n = ?').row([7])).toBeUndefined();
    expect(one.prepare('UPDATE t SET x = ?').run([1])).toBe(2);
    expect(one.prepare('SELECT id FROM t ORDER BY id LIMIT ?').rows([1])).toEqual([['a']]);
    one.close();
    other.close();
  });

  it.each(['', 'ä€😀', "quote ' and \\", '{"json":"\\u0000"}', 'x'.repeat(100_000)])(
    'returns the text that was put (%#)',
    (text) => {
      const { one, other } = two(driver);
      one.prepare('INSERT INTO t (id) VALUES (?)').run([text]);
      expect(other.prepare('SELECT id FROM t').row([])).toEqual([text]);
      one.close();
      other.close();
    },
  );

  it('meets a lock with an error at once, and takes it when it is free', () => {
    const { one, other } = two(driver);
    one.exec('BEGIN IMMEDIATE');
    expect([one.inTransaction, other.inTransaction]).toEqual([true, false]);
    const error = thrown(() => other.exec('BEGIN IMMEDIATE'));
    expect([isBusy(error), isBroken(error)]).toEqual([true, false]);
    expect(other.inTransaction).toBe(false);
    one.exec('ROLLBACK');
    expect(one.inTransaction).toBe(false);
    other.exec('BEGIN IMMEDIATE');
    other.exec('COMMIT');
    one.close();
    other.close();
  });

  it('tells a file that it cannot open from a lock', () => {
    const error = thrown(() => driver.open(join(root, 'no', 'such', 'folder.db')));
    expect([isBusy(error), isBroken(error)]).toEqual([false, true]);
  });

  it('runs statements on another thread, and tells of their failure', async () => {
    const { path, one, other } = two(driver);
    await driver.execAside(path, "INSERT INTO t (id) VALUES ('aside')", 50);
    expect(one.prepare('SELECT id FROM t').row([])).toEqual(['aside']);
    await expect(driver.execAside(path, 'INSERT INTO missing VALUES (1)', 50)).rejects.toThrow();
    one.exec('BEGIN IMMEDIATE');
    await expect(driver.execAside(path, 'DELETE FROM t', 5)).rejects.toSatisfy(isBusy);
    one.exec('ROLLBACK');
    one.close();
    other.close();
  });
});
