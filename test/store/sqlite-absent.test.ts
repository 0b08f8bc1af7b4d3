import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { open } from '../../src/holdfast.ts';
import { SqliteConnection } from '../../src/store/sqlite/file/sqlite-connection.ts';

const root = mkdtempSync(join(tmpdir(), 'holdfast-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const LOOK = { observe: true, create: false };

describe('a process that only looks', () => {
  it('K-16 is refused a file that does not exist, and makes neither file nor folder', async () => {
    const folder = join(root, 'wrong');
    await expect(open(`sqlite:${join(folder, 'path.db')}`, LOOK)).rejects.toMatchObject({
      code: 'STORE_UNREACHABLE',
      message: expect.stringMatching(/the file does not exist.* Start what uses it, .*--store/),
    });
    expect(existsSync(folder)).toBe(false);
  });

  it('K-16 is refused an empty file, and leaves it empty', async () => {
    const folder = mkdtempSync(join(root, 'empty-'));
    const path = join(folder, 'empty.db');
    writeFileSync(path, '');
    await expect(open(`sqlite:${path}`, LOOK)).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
    expect(readdirSync(folder)).toEqual(['empty.db']);
  });

  it('K-16 is refused a database that is not a store, and leaves it as it was', async () => {
    const folder = mkdtempSync(join(root, 'foreign-'));
    const path = join(folder, 'foreign.db');
    const foreign = new SqliteConnection(path);
    foreign.exec('CREATE TABLE t (a); DROP TABLE t');
    foreign.close();
    const before = readFileSync(path);
    await expect(open(`sqlite:${path}`, LOOK)).rejects.toMatchObject({ code: 'STORE_UNSUITABLE' });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it('K-16 looks at a store that another process has made, and sees leases of every class', async () => {
    const path = join(mkdtempSync(join(root, 'made-')), 'made.db');
    await using maker = await open(`sqlite:${path}`);
    for (const kind of ['lease', 'poll', 'workflow'] as const) {
      await maker.acquire(`of-${kind}`, { class: kind });
    }
    await using looker = await open(`sqlite:${path}`, LOOK);
    for (const kind of ['lease', 'poll', 'workflow'] as const) {
      const { leases } = await looker.list(undefined, { class: kind });
      expect(leases.map(({ key }) => key)).toEqual([`of-${kind}`]);
    }
  });
});
