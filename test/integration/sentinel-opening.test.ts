import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisSentinels, startSentinels } from '../support/redis-sentinel.ts';
import { freePort } from '../support/redis-server.ts';
import { leaveNothingBehind, openAt, take } from './support/holdfasts.ts';
import { hostMs, SHORT } from './support/lease-watch.ts';

leaveNothingBehind();

const CREDENTIALS = { username: 'lessee', password: 'sésame "open" ?' };
const SENTINEL_CREDENTIALS = { username: 'watcher', password: 'barley&rye' };

let watched: RedisSentinels;
beforeAll(async () => {
  watched = await startSentinels({
    credentials: CREDENTIALS,
    sentinelCredentials: SENTINEL_CREDENTIALS,
  });
}, 60_000);
afterAll(() => watched.stop());

const query = ({ username, password } = SENTINEL_CREDENTIALS) =>
  `?sentinelUsername=${username}&sentinelPassword=${encodeURIComponent(password)}`;

const failure = (opening: Promise<unknown>) =>
  opening.then(
    () => null,
    (error: Error) => error,
  );

/** The right the page names for a sentinel's user. */
function documentedRights(): string[] {
  const page = readFileSync(new URL('../../docs/redis.md', import.meta.url), 'utf8');
  const rights = /^ACL SETUSER holdfast-sentinel on >PASSWORD (.*)$/m.exec(page)?.[1];
  if (rights === undefined) throw new Error('docs/redis.md has no rights for sentinels');
  return rights.split(' ');
}

describe('opening through sentinels', () => {
  it('K-16 takes passwords for the servers and for the sentinels, and shows neither', async () => {
    await using holdfast = await openAt({ url: watched.url() + query() });
    expect((await take(holdfast, 'k', SHORT)).isHeld()).toBe(true);
    const { store } = await holdfast.examine();
    expect(store).not.toMatch(/lessee|watcher|barley|sesame/);
  });

  it('K-16 refuses at once what is wrong: the name of the primary, a password', async () => {
    const startMs = hostMs();
    const unnamed = await failure(openAt({ url: watched.url('another') + query() }));
    expect(unnamed).toMatchObject({ code: 'STORE_UNREACHABLE' });
    expect(unnamed?.message).toMatch(/No such master/);
    const wrong = { username: 'watcher', password: 'wheat' };
    const locked = await failure(openAt({ url: watched.url() + query(wrong) }));
    expect(locked?.message).toMatch(/sentinel 127.0.0.1:\d+: WRONGPASS/);
    expect(locked?.message).not.toContain('wheat');
    const url = watched.url().replace('lessee:', 'lessee:not');
    const refused = await failure(openAt({ url: url + query() }));
    expect(refused).toMatchObject({
      code: 'STORE_REFUSED',
      reply: expect.stringMatching('WRONGPASS'),
    });
    expect(hostMs() - startMs).toBeLessThan(4_500);
  });

  it('K-16 needs of a sentinel no more than the right that docs/redis.md names', async () => {
    const user = ['ACL', 'SETUSER', 'asker', 'reset', 'on', '>secret', ...documentedRights()];
    for (const sentinel of watched.sentinels) {
      await sentinel.cli(...user);
      await sentinel.cli('ACL', 'LOG', 'RESET');
    }
    const asker = query({ username: 'asker', password: 'secret' });
    await using holdfast = await openAt({ url: watched.url() + asker });
    expect((await take(holdfast, 'rights', SHORT)).isHeld()).toBe(true);
    for (const sentinel of watched.sentinels) expect(await sentinel.cli('ACL', 'LOG')).toEqual([]);
  });

  it('K-16 asks the next sentinel where one is dead or frozen', async () => {
    const dead = `127.0.0.1:${await freePort()},`;
    const url = watched.url().replace('@', `@${dead}`) + query();
    await using holdfast = await openAt({ url });
    expect((await take(holdfast, 'dead', SHORT)).isHeld()).toBe(true);
    const [first] = watched.sentinels;
    try {
      await first?.freeze();
      const startMs = hostMs();
      await using other = await openAt({ url });
      expect((await take(other, 'frozen', SHORT)).isHeld()).toBe(true);
      expect(hostMs() - startMs).toBeLessThan(4_500);
    } finally {
      await first?.thaw();
    }
  });

  it('K-16 all of them frozen: STORE_UNREACHABLE in time, and a primary that is held on to', async () => {
    await using holdfast = await openAt({ url: watched.url() + query() });
    const lease = await take(holdfast, 'blind', SHORT);
    const startMs = hostMs();
    try {
      await Promise.all(watched.sentinels.map((sentinel) => sentinel.freeze()));
      const error = await failure(openAt({ url: watched.url() + query() }));
      expect(error).toMatchObject({ code: 'STORE_UNREACHABLE' });
      expect(error?.message).toMatch(/sentinel 127.0.0.1:\d+ did not answer/);
      expect(hostMs() - startMs).toBeLessThan(8_000);
    } finally {
      await Promise.all(watched.sentinels.map((sentinel) => sentinel.thaw()));
    }
    expect(lease.isHeld()).toBe(true);
  });
});
