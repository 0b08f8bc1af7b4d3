import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { Emitter, type EventName } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import { openStore } from '../../src/store/open-store.ts';
import { DEFAULT_MAX_TTLS } from '../../src/store/port/keyspaces.ts';
import { FENCE_RECORD_MS } from '../../src/store/port/lease-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { systemHost } from '../../src/store/sqlite/file/host.ts';
import {
  defaultFile,
  ensureFile,
  identityOf,
  nameCount,
} from '../../src/store/sqlite/file/place.ts';
import { SqliteConnection } from '../../src/store/sqlite/file/sqlite-connection.ts';
import { openSqliteStore, type SqliteStoreOptions } from '../../src/store/sqlite/sqlite-store.ts';
import { CALL, Kit } from '../../testing/conformance/kit.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

const root = mkdtempSync(join(tmpdir(), 'holdfast-'));
afterAll(() => rmSync(root, { recursive: true }));
let made = 0;
const newFolder = () => mkdtempSync(join(root, `${made++}-`));
const newFile = () => join(newFolder(), 'test.db');

const opened: Store[] = [];
afterEach(async () => {
  // One after the other: on a clock that stands still nobody tries a lock again.
  for (const store of opened.splice(0)) await store.close();
});

/** A process of the test's, on a file that others may have, too. */
async function openAt(path: string, options: SqliteStoreOptions & { clock?: FakeClock } = {}) {
  const { clock = new FakeClock(), events = new Emitter() } = options;
  const happened: EventName[] = [];
  const names = [
    'store.forgot',
    'store.quarantined',
    'store.connected',
    'store.disconnected',
    'store.warned',
  ] as const;
  for (const name of names) events.on(name, () => happened.push(name));
  const store = await openSqliteStore(path, { ...options, clock, events });
  opened.push(store);
  const kit = new Kit({ store, elapse: (ms) => clock.advance(ms), dispose: async () => {} });
  return { store, clock, kit, happened };
}

const onBoot = (bootId: string) => ({ ...systemHost(), bootId });

/** What a promise is rejected with. */
const failure = (promise: Promise<unknown>): Promise<{ code?: string; message: string }> =>
  promise.then(
    (value) => ({ message: `resolved: ${JSON.stringify(value)}` }),
    (error: Error) => error,
  );

describe('two files of one name', () => {
  it('I-12 in the folders of two processes are told apart, although both are called the same', async () => {
    const cwd = vi.spyOn(process, 'cwd');
    const stores = [];
    for (const folder of [newFolder(), newFolder()]) {
      cwd.mockReturnValue(realpathSync(folder));
      stores.push(await openAt(join(folder, 'test.db')));
    }
    cwd.mockRestore();
    expect(stores.map(({ store: { name } }) => name)).toEqual(['sqlite:test.db', 'sqlite:test.db']);
    const [one, two] = stores.map(({ store: { identity } }) => identity);
    expect(one).toMatch(/^sqlite:\/.+\/test\.db$/);
    expect(one).not.toBe(two);
  });
});

describe('the file', () => {
  it('K-16 is for this user only, and is examined', async () => {
    const path = newFile();
    const { store } = await openAt(path);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(store.name).toBe(`sqlite:${path}`);
    const { findings } = await store.examine();
    expect(findings.map(({ level }) => level)).toEqual(Array(findings.length).fill('ok'));
    expect(findings.map(({ subject }) => subject)).toEqual(
      expect.arrayContaining([
        'version',
        'format',
        'file system',
        'persistence',
        'rights',
        'clock',
      ]),
    );
  });

  it('K-16 in a folder that everybody may write is warned about, unless nobody can replace it there', async () => {
    const path = join(mkdtempSync(join(root, 'open-')), 'holdfast.db');
    chmodSync(dirname(path), 0o777);
    const { happened, store } = await openAt(path);
    expect(happened).toContain('store.warned');
    const rights = async () =>
      (await store.examine()).findings.find(({ subject }) => subject === 'rights');
    expect(await rights()).toMatchObject({ level: 'warn', fact: expect.stringContaining('0777') });
    for (const mode of [0o1777, 0o770]) {
      chmodSync(dirname(path), mode);
      expect((await rights())?.level).toBe('ok');
    }
  });

  it('K-16 of a later format is refused, with what to do', async () => {
    const path = newFile();
    await (await openAt(path)).store.close();
    const db = new SqliteConnection(path);
    db.exec('PRAGMA user_version = 99');
    db.close();
    const error = await failure(openAt(path));
    expect(error).toMatchObject({ code: 'STORE_UNSUITABLE' });
    expect(error.message).toMatch(/format 99.*knows format 4.*another file/s);
  });

  it('K-16 of another program is refused and not touched', async () => {
    const path = newFile();
    const db = new SqliteConnection(path);
    db.exec('CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)');
    db.close();
    const before = readFileSync(path);
    expect(await failure(openAt(path))).toMatchObject({ code: 'STORE_UNSUITABLE' });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it('K-16 that is no database is refused and not touched', async () => {
    const path = newFile();
    const text = 'Dear diary, today I was taken for a database.\n'.repeat(50);
    writeFileSync(path, text);
    const error = await failure(openAt(path));
    expect(error).toMatchObject({ code: 'STORE_UNSUITABLE' });
    expect(error.message).toMatch(/not a database.*file of its own/s);
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  it('K-16 in a place where a folder is, is refused', async () => {
    expect(await failure(openAt(newFolder()))).toMatchObject({ code: 'STORE_UNSUITABLE' });
  });

  it.each([
    ['NFS', 0x6969],
    ['SMB', 0xff534d42],
    ['Ceph', 0x00c36400],
  ])('K-16 on %s is refused, with what to do', async (name, type) => {
    const error = await failure(openAt(newFile(), { fileSystemType: () => type }));
    expect(error).toMatchObject({ code: 'STORE_UNSUITABLE' });
    expect(error.message).toContain(name);
    expect(error.message).toMatch(/local disk.*Redis/);
  });

  it('K-16 on FUSE is warned about', async () => {
    const { happened, store } = await openAt(newFile(), { fileSystemType: () => 0x65735546 });
    expect(happened).toContain('store.warned');
    const { findings } = await store.examine();
    expect(findings).toContainEqual(
      expect.objectContaining({ level: 'warn', subject: 'file system' }),
    );
  });

  it('is made without what an earlier one of its name has left behind', async () => {
    const path = newFile();
    for (const left of ['-wal', '-shm']) writeFileSync(path + left, 'left behind');
    expect(ensureFile(path)).toBe(true);
    expect(statSync(path).size).toBe(0);
    expect(existsSync(`${path}-wal`)).toBe(false);
    expect(existsSync(`${path}-making`)).toBe(false);
  });

  it('may be opened by many in one process at once, also the first time', async () => {
    const path = newFile();
    const clock = new FakeClock();
    const all = await Promise.all(Array.from({ length: 8 }, () => openAt(path, { clock })));
    const call = { ...CALL, ttlMs: 60_000, inbox: '' };
    const replies = await Promise.all(
      all.map(({ store }, n) => store.leases.acquire([{ key: 'k', holder: `h${n}` }], call)),
    );
    expect(replies.flat().filter(({ kind }) => kind === 'granted')).toHaveLength(1);
  });
});

describe('a file with two names', () => {
  it('K-16 is not refused while another process creates it, whenever the temporary name goes', () => {
    const path = newFile();
    ensureFile(path);
    linkSync(path, `${path}-making`);
    const seenWithTwo = identityOf(path);
    if (seenWithTwo === null) throw new Error('the file is missing');
    expect(seenWithTwo.stats.nlink).toBe(2);
    expect(nameCount(path, seenWithTwo)).toBe(1);
    // By now the temporary name is gone, as if its maker had removed it right after we looked.
    expect(nameCount(path, seenWithTwo)).toBe(1);
  });

  it('K-15 K-16 is refused, with what to do, when it is opened', async () => {
    const path = newFile();
    await (await openAt(path)).store.close();
    linkSync(path, `${path}.link`);
    for (const name of [path, `${path}.link`]) {
      const error = await failure(openAt(name));
      expect(error).toMatchObject({ code: 'STORE_UNSUITABLE', voidsLeases: true });
      expect(error.message).toMatch(/2 names.*share the folder/s);
    }
    expect(existsSync(`${path}.link-wal`)).toBe(false);
  });

  it('K-15 K-16 is refused when the second name is made later, and works again without it', async () => {
    const path = newFile();
    const { kit } = await openAt(path);
    await kit.granted('lease:k', 'a', { ttlMs: 60_000 });
    linkSync(path, `${path}.link`);
    expect(await failure(kit.renew('lease:k', 'a'))).toMatchObject({ voidsLeases: true });
    rmSync(`${path}.link`);
    expect(await kit.renew('lease:k', 'a')).toEqual({ kind: 'renewed' });
  });

  it('is none where the process that made the file was killed before it was done', async () => {
    const path = newFile();
    await (await openAt(path)).store.close();
    linkSync(path, `${path}-making`);
    await (await openAt(path)).kit.granted('lease:k', 'a');
    expect(existsSync(`${path}-making`)).toBe(false);
  });

  it('K-15 one of them a link: both lead to one file, even if the link is older than the file', async () => {
    const path = newFile();
    const link = join(newFolder(), 'link.db');
    symlinkSync(path, link);
    const clock = new FakeClock();
    const one = await openAt(link, { clock });
    await one.kit.granted('lease:k', 'a');
    const two = await openAt(path, { clock });
    expect(await two.kit.acquire('lease:k', 'b')).toMatchObject({ kind: 'busy', reason: 'held' });
    expect([one.store.name, two.store.name]).toEqual([`sqlite:${path}`, `sqlite:${path}`]);
  });

  it('K-15 a link that leads to another file later is refused', async () => {
    const path = newFile();
    const link = join(newFolder(), 'link.db');
    symlinkSync(path, link);
    const { kit } = await openAt(link);
    await kit.granted('lease:k', 'a');
    const other = newFile();
    await (await openAt(other)).kit.granted('lease:k', 'b');
    rmSync(link);
    symlinkSync(other, link);
    const error = await failure(kit.renew('lease:k', 'a'));
    expect(error).toMatchObject({ code: 'STORE_UNSUITABLE', voidsLeases: true });
    expect(error.message).toContain(`${link} led to ${path}`);
  });
});

describe('a log that was removed while it was in use', () => {
  it.each([
    ['-wal and -shm', ['-wal', '-shm']],
    ['-wal', ['-wal']],
    ['-shm', ['-shm']],
  ])(
    'K-15 %s: who uses it is refused, and so is who opens the file in the same process',
    async (_, ends) => {
      const path = newFile();
      const { kit, clock, store } = await openAt(path);
      await kit.granted('lease:k', 'a', { ttlMs: 60_000 });
      for (const end of ends) rmSync(path + end);
      await clock.advance(10);
      const error = await failure(kit.renew('lease:k', 'a'));
      expect(error).toMatchObject({ code: 'STORE_UNSUITABLE', voidsLeases: true });
      expect(error.message).toMatch(
        /test.db-wal or test.db-shm was removed.*Restart every process/s,
      );
      expect(await failure(openAt(path, { clock }))).toMatchObject({ code: 'STORE_UNSUITABLE' });
      await store.close();
      expect(await failure(openAt(path, { clock }))).toMatchObject({ code: 'STORE_UNSUITABLE' });
      for (const end of ends) expect(existsSync(path + end)).toBe(false);
    },
  );

  it('K-15 together with its file is no such case: another file is made', async () => {
    const path = newFile();
    const { kit, happened } = await openAt(path);
    await kit.granted('lease:k', 'a');
    for (const end of ['', '-wal', '-shm']) rmSync(path + end);
    expect(await kit.renew('lease:k', 'a')).toMatchObject({ kind: 'vanished' });
    expect(happened).toContain('store.forgot');
  });
});

describe('where the file is', () => {
  it('in the nearest .holdfast upwards', () => {
    const folder = newFolder();
    mkdirSync(join(folder, '.holdfast'));
    mkdirSync(join(folder, 'a/b'), { recursive: true });
    writeFileSync(join(folder, '.holdfast/holdfast.db'), '');
    expect(defaultFile(join(folder, 'a/b'))).toBe(join(folder, '.holdfast/holdfast.db'));
  });

  it('here if there is none, in a folder for this user only that stays out of version control', async () => {
    const folder = newFolder();
    const before = process.cwd();
    process.chdir(folder);
    try {
      const options = { clock: new FakeClock(), random: seededRandom(1), events: new Emitter() };
      const { store, owned } = await openStore(undefined, options);
      opened.push(store);
      expect(owned).toBe(true);
      expect(store.name).toBe('sqlite:.holdfast/holdfast.db');
      expect(statSync('.holdfast').mode & 0o777).toBe(0o700);
      expect(readFileSync('.holdfast/.gitignore', 'utf8')).toBe('*\n');
      for (const address of [
        'sqlite:a.db',
        'sqlite:./b.db',
        `sqlite:${folder}/c.db`,
        `sqlite://${folder}/d%20e.db`,
      ])
        opened.push((await openStore(address, options)).store);
      for (const name of ['a.db', 'b.db', 'c.db', 'd e.db']) expect(existsSync(name)).toBe(true);
    } finally {
      process.chdir(before);
    }
  });

  it.each(['sqlite:', 'sqlite:folder/', 'sqlite://host/a.db'])('not %s', async (address) => {
    const options = { clock: new FakeClock(), random: seededRandom(1), events: new Emitter() };
    expect(await failure(openStore(address, options))).toMatchObject({ code: 'CONFIG_INVALID' });
  });
});

it('K-02 a host whose clock is set keeps its leases for their time, and fences go on growing', async () => {
  const { clock, kit } = await openAt(newFile());
  const fence = await kit.granted('lease:k', 'a', { ttlMs: 5_000 });
  clock.jumpWall(3_600_000);
  expect(await kit.acquire('lease:k', 'b')).toMatchObject({ kind: 'busy', expiresInMs: 5_000 });
  clock.jumpWall(-7_200_000);
  await clock.advance(4_990);
  expect(await kit.acquire('lease:k', 'b')).toMatchObject({ kind: 'busy' });
  await clock.advance(20);
  expect(await kit.granted('lease:k', 'b')).toBeGreaterThan(fence);
});

it('K-02 two files never give a key the same fence: not at one moment, nor after one of them was deleted', async () => {
  const clock = new FakeClock();
  const [path, other] = [newFile(), newFile()];
  const a = await openAt(path, { clock, quarantine: 'off' });
  const b = await openAt(other, { clock, quarantine: 'off' });
  const fences = [await a.kit.granted('lease:k', 'a'), await b.kit.granted('lease:k', 'b')];
  for (const end of ['', '-wal', '-shm']) rmSync(path + end);
  fences.push(await a.kit.granted('lease:k', 'c'));
  expect(new Set(fences).size).toBe(3);
  expect(fences).toEqual(fences.toSorted((x, y) => x - y));
});

describe('another start of the host', () => {
  it('K-02 voids leases and members, and leaves fences and records', async () => {
    const path = newFile();
    const first = await openAt(path, { host: onBoot('one') });
    // Far ahead of the time: only the record can tell it.
    const fence = await first.kit.granted('lease:k', 'a', { fenceFloor: 3e15, ttlMs: 60_000 });
    await first.store.records.put('c', [{ id: 'r', value: 1 }], CALL);
    await first.store.members.beat({ id: 'm', attributes: {} }, { ...CALL, ttlMs: 60_000 });
    await first.clock.advance(50_000);
    await first.kit.renew('lease:k', 'a', 60_000);
    await first.store.close();
    const second = await openAt(path, { host: onBoot('two') });
    expect(await second.kit.read('lease:k')).toEqual({ kind: 'free', fence });
    expect(await second.store.members.list(CALL)).toEqual([]);
    expect(await second.store.records.get('c', ['r'], CALL)).toMatchObject([{ value: 1 }]);
    expect(await second.kit.granted('lease:k', 'b')).toBe(fence + 1);
    expect(second.happened).toEqual(['store.connected']);
  });

  it('shows by the clock where the host has no id', async () => {
    const path = newFile();
    const first = await openAt(path, { host: onBoot('') });
    await first.clock.advance(100_000);
    await first.kit.granted('lease:k', 'a', { ttlMs: 60_000 });
    await first.store.close();
    const second = await openAt(path, { host: onBoot('') });
    expect((await second.kit.read('lease:k')).kind).toBe('free');
    await second.kit.granted('lease:k', 'b');
  });

  it('K-16 while this one lasts is another host: it is refused', async () => {
    const path = newFile();
    const here = await openAt(path, { host: onBoot('here') });
    await openAt(path, { host: onBoot('there') });
    const error = await failure(here.kit.acquire('lease:k', 'a'));
    expect(error).toMatchObject({ code: 'STORE_UNSUITABLE' });
    expect(error.message).toMatch(/another host.*Redis/);
  });

  it('K-04 K-15 a process in a time namespace sees the same times as the others', async () => {
    const path = newFile();
    const here = await openAt(path);
    await here.kit.granted('lease:k', 'a', { ttlMs: 9_000 });
    for (const clockAheadMs of [100_000, -500]) {
      const clock = new FakeClock();
      clock.block(clockAheadMs);
      const there = await openAt(path, { clock, host: { ...systemHost(), clockAheadMs } });
      expect(await there.kit.acquire('lease:k', 'b')).toMatchObject({
        ...{ kind: 'busy', holder: 'a', expiresInMs: 9_000 },
      });
    }
    expect(await here.kit.renew('lease:k', 'a', 9_000)).toEqual({ kind: 'renewed' });
  });

  it('K-16 a process whose clock is behind the others’ is refused', async () => {
    const path = newFile();
    const ahead = await openAt(path);
    await openAt(path).then(({ store }) => store.close());
    await ahead.clock.advance(3_600_000);
    await ahead.kit.granted('lease:k', 'a');
    const behind = await failure(openAt(path).then(({ kit }) => kit.acquire('lease:k', 'b')));
    expect(behind).toMatchObject({ code: 'STORE_UNSUITABLE' });
    expect(behind.message).toMatch(/36\d{5} ms ahead.*time namespace/s);
  });
});

describe('a file that has gone', () => {
  const remove = (path: string) => {
    for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true });
  };

  it('K-15 grants at once where nobody remembers another', async () => {
    const { kit, happened } = await openAt(newFile());
    await kit.granted('lease:k', 'a');
    expect(happened).toEqual(['store.connected']);
  });

  it('K-15 makes no new grants for the bound and a second, and takes back what vanished', async () => {
    const path = newFile();
    const clock = new FakeClock();
    const maxTtls = { ...DEFAULT_MAX_TTLS, lease: 5_000 };
    const { kit, happened } = await openAt(path, { clock, maxTtls });
    const fence = await kit.granted('lease:k', 'a', { ttlMs: 5_000 });
    await kit.granted('lease:short', 'a', { ttlMs: 1_000 });
    remove(path);
    expect(await kit.acquire('lease:new', 'b', { ttlMs: 1_000 })).toEqual({
      kind: 'busy',
      reason: 'quarantine',
      holder: '',
      fence: 0,
      expiresInMs: 6_000,
    });
    expect(happened).toEqual([
      'store.connected',
      'store.disconnected',
      'store.forgot',
      'store.quarantined',
      'store.connected',
    ]);
    expect(await kit.renew('lease:k', 'a')).toEqual({ kind: 'vanished', fence: 0, revoked: false });
    const back = { forgotten: true, ttlMs: 1_000 };
    expect(await kit.reassert('lease:k', 'a', fence, back)).toBe('reasserted');
    await clock.advance(5_990);
    const short = { ttlMs: 1_000 };
    expect(await kit.acquire('lease:new', 'b', short)).toMatchObject({ reason: 'quarantine' });
    await clock.advance(20);
    expect(await kit.granted('lease:k', 'c', short)).toBeGreaterThan(fence);
  });

  it('K-15 stops grants to one who came after it and took it for a new file, once', async () => {
    const path = newFile();
    const clock = new FakeClock();
    const options = { clock, maxTtls: { ...DEFAULT_MAX_TTLS, lease: 5_000 } };
    const old = await openAt(path, options);
    const other = await openAt(path, options);
    await old.kit.granted('lease:k', 'a', { ttlMs: 5_000 });
    await other.kit.granted('lease:other', 'b', { ttlMs: 5_000 });
    remove(path);
    const newcomer = await openAt(path, options);
    await newcomer.kit.granted('lease:free', 'n', { ttlMs: 1_000 });
    await old.kit.read('lease:k');
    const short = { ttlMs: 1_000 };
    const refused = await newcomer.kit.acquire('lease:other', 'n', short);
    expect(refused).toMatchObject({ reason: 'quarantine' });
    expect(newcomer.happened).toContain('store.quarantined');
    await clock.advance(3_000);
    // The second who notices does not begin it anew.
    await other.kit.read('lease:other');
    expect(other.happened).not.toContain('store.forgot');
    await clock.advance(3_001);
    await newcomer.kit.granted('lease:other', 'n', short);
  });

  it('K-15 a copy in its place counts as one that has forgotten', async () => {
    const path = newFile();
    const clock = new FakeClock();
    const first = await openAt(path, { clock });
    await first.kit.granted('lease:k', 'a', { ttlMs: 5_000 });
    await first.store.close();
    const copy = readFileSync(path);
    remove(path);
    writeFileSync(`${path}.copy`, 'another inode');
    writeFileSync(path, copy);
    const second = await openAt(path, { clock });
    expect(second.happened).toContain('store.forgot');
    expect(await second.kit.acquire('lease:free', 'b')).toMatchObject({ reason: 'quarantine' });
  });

  it('K-15 without quarantine grants at once, and takes nothing back', async () => {
    const path = newFile();
    const { kit } = await openAt(path, { quarantine: 'off' });
    const fence = await kit.granted('lease:k', 'a');
    remove(path);
    expect(await kit.reassert('lease:k', 'a', fence, { forgotten: true })).toBe('refused');
    await kit.granted('lease:k', 'b');
  });

  it('K-15 a lease that vanished with its fence record stops all grants before it is put back', async () => {
    const path = newFile();
    const clock = new FakeClock();
    const { kit } = await openAt(path, { clock });
    const other = await openAt(path, { clock });
    const fence = await kit.granted('lease:k', 'a');
    const db = new SqliteConnection(path);
    db.exec('DELETE FROM leases; DELETE FROM fences');
    db.close();
    expect(await kit.reassert('lease:k', 'a', fence, { forgotten: true })).toBe('reasserted');
    expect(await other.kit.acquire('lease:new', 'b')).toMatchObject({ reason: 'quarantine' });
  });
});

describe('two stores on one file', () => {
  it('K-10 hear each other’s releases and messages', async () => {
    const path = newFile();
    const clock = new FakeClock();
    const [a, b] = [await openAt(path, { clock }), await openAt(path, { clock })];
    const fence = await a.kit.granted('lease:k', 'a', { ttlMs: 60_000 });
    const inbox = await b.kit.inbox('b');
    await b.kit.acquire('lease:k', 'b', { waitedMs: 0, inbox: 'b' });
    await a.kit.release('lease:k', 'a', fence);
    await a.store.signals.publish(b.kit.topic('b'), 'hello');
    await clock.advance(50);
    expect(inbox.messages).toEqual(['lease:k', 'hello']);
  });

  it('K-10 tell those who listen when messages may have been lost', async () => {
    const path = newFile();
    const clock = new FakeClock();
    const { store } = await openAt(path, { clock });
    let gaps = 0;
    await store.signals.subscribe('t', { onMessage: () => {}, onGap: () => gaps++ });
    clock.block(10_000);
    await clock.advance(200);
    expect(gaps).toBe(1);
    for (const end of ['', '-wal', '-shm']) rmSync(path + end);
    await clock.advance(2_000);
    expect(gaps).toBe(2);
    await store.close();
    expect(clock.pendingTimers).toBe(0);
  });

  it('with different prefixes never meet', async () => {
    const path = newFile();
    const clock = new FakeClock();
    const a = await openAt(path, { clock, prefix: 'a:' });
    const b = await openAt(path, { clock, prefix: 'b:' });
    await a.kit.granted('lease:k', 'holder');
    await b.kit.granted('lease:k', 'other');
    await a.store.members.beat({ id: 'm', attributes: {} }, { ...CALL, ttlMs: 1_000 });
    await a.store.records.put('c', [{ id: 'r', value: 1 }], CALL);
    const { leases } = await b.store.leases.list('lease:', CALL);
    expect(leases).toMatchObject([{ key: 'lease:k', holder: 'other' }]);
    expect(await b.store.members.list(CALL)).toEqual([]);
    expect(await b.store.records.get('c', ['r'], CALL)).toEqual([{ kind: 'absent' }]);
  });
});

it('sweeps out what has expired, a few rows at a time', async () => {
  const path = newFile();
  const { kit, clock, store } = await openAt(path);
  const rows = (table: string) => {
    const db = new SqliteConnection(path);
    const count = Number(db.value(`SELECT count(*) FROM ${table}`));
    db.close();
    return count;
  };
  for (let n = 0; n < 100; n++) await kit.granted(`lease:${n}`, 'a');
  await kit.put('gone', 1);
  await kit.remove('gone');
  const { version } = await kit.changes(0);
  await clock.advance(FENCE_RECORD_MS + 1);
  expect([rows('leases'), rows('fences'), rows('records')]).toEqual([100, 100, 1]);
  for (let n = 0; n < 5; n++) {
    await kit.granted('lease:now', 'a', { ttlMs: 60_000 });
    await clock.advance(60);
  }
  expect([rows('leases'), rows('fences'), rows('records')]).toEqual([1, 1, 0]);
  expect((await kit.changes(version - 1)).reset).toBe(true);
  await store.close();
  expect(await failure(kit.acquire('lease:now', 'a'))).toMatchObject({ code: 'CLOSED' });
});
