import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Holdfast } from '../../src/index.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { cli, privateFolder, startCli } from './support/cli.ts';
import { leaveNothingBehind, openAt } from './support/holdfasts.ts';
import { startUp } from './support/instances.ts';

leaveNothingBehind();

/** What is polled here answers at once, and always the same. */
const POLL = `poll: ({ id }) => ({ status: 200, id })`;

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const stores = [
  ['SQLite', () => ({ url: `sqlite:${join(privateFolder(), 'holdfast.db')}` })],
  ['Redis', () => ({ url: redis.url })],
] as const;

/** Some twenty commands, each a process of its own: on a machine that does something else, too, that takes a while. */
const SLOW = { timeout: 90_000 };

/** Waits until the store shows how many targets each instance owns, the fewest first. */
function split(holdfast: Holdfast, ...owned: number[]) {
  const look = async () => {
    const { members } = await holdfast.fleet.view();
    const found = members.map((member) => member.owned).sort((a, b) => a - b);
    return String(found) === String(owned);
  };
  return until(look, { what: `the targets to be split ${owned}`, deadlineMs: 10_000 });
}

describe.concurrent.each(stores)('a fleet on %s, from the command line', (_, place) => {
  it('P-02 P-06 is filled, looked at, explained, drained, watched and stopped', SLOW, async () => {
    const at = place();
    const json = async (...args: string[]) => {
      const { code, stdout, stderr } = await cli([...args, '--json'], { at });
      expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' });
      return JSON.parse(stdout);
    };
    const text = async (...args: string[]) => (await cli(args, { at })).stdout;
    await using holdfast = await openAt(at);
    await using watch = startCli(['watch', '--since', '1m', '--json'], { at });

    const file = join(privateFolder(), 'targets.json');
    const urls = Array.from({ length: 4 }, (_, i) => ({ id: `device-${i}`, url: 'http://x/' }));
    writeFileSync(file, JSON.stringify(urls));
    expect(await json('targets', 'add', '--file', file)).toMatchObject({ existing: [] });
    const more = JSON.stringify(['http://user:canary@x/', { id: 'device-3' }]);
    const piped = await startCli(['targets', 'add', '--json', '--file', '-'], { at }).end(more);
    expect(JSON.parse(piped.stdout)).toEqual({
      added: [expect.stringMatching(/^[0-9a-f-]{36}$/)],
      existing: ['device-3'],
    });
    await json('targets', 'add', 'http://y/', '--id', 'device-9', '--every', '300ms', '--paused');

    await using ana = startUp('ana', { at, config: POLL });
    await ana.says(/^is up: 5 targets for 1 instance$/);
    await using ben = startUp('ben', { at, config: POLL });
    await split(holdfast, 2, 3);

    await until(async () => (await holdfast.fleet.results(['device-0'])).size, {
      what: 'a result of device-0',
    });
    const [map, members, ls, got] = await Promise.all([
      text('map'),
      text('members'),
      text('targets', 'ls'),
      json('targets', 'get', 'device-0'),
    ]);
    expect(map).toMatch(/^5 targets on 2 instances\n\nana-[0-9a-f]{8} +█+ +\d of \d\n/);
    expect(members).toMatch(
      /^ben-[0-9a-f]{8} +up +\d +\d +1 +\d+ m?s ago +\d+ m?s +(-|\d+ m?s) +\d+\.\d+\.\d+ +ben-\d+-/m,
    );
    expect(ls).toMatch(
      /^device-0 +polled +(ana|ben)-\S+ +200 in \d+ ms, \d+ m?s ago +http:\/\/x\/$/m,
    );
    expect(ls).toMatch(/^device-9 +paused +- +- +http:\/\/y\/$/m);
    expect(ls).toContain('http://***@x/');
    expect(got).toMatchObject({
      ...{ id: 'device-0', state: 'polled', result: { ok: true, value: { id: 'device-0' } } },
    });

    await json('targets', 'resume', 'device-9');
    await split(holdfast, 3, 3);
    // Instances write down what happened a moment later.
    const story = /ago +\S+ +resumed device-9\n(.* carried out .*\n)?.* ago +\S+ +took device-9\n/;
    const explained = () => text('explain', 'device-9').then((found) => story.test(found) && found);
    const told = await until(explained, { what: 'the story of device-9' });
    expect(told).toMatch(/^device-9: (ana|ben)-[0-9a-f]{8} keeps this target/);
    await json('targets', 'pause', 'device-9');
    await split(holdfast, 2, 3);
    expect(await text('explain', 'device-9')).toContain('it is paused, so no instance polls it');
    const removed = await cli(['targets', 'rm', 'device-9', 'device-10'], { at });
    expect(removed).toMatchObject({ code: 1, stdout: 'device-9 removed.\n' });
    expect(removed.stderr).toContain("target 'device-10' does not exist");
    expect(await cli(['explain', 'device-9'], { at })).toMatchObject({
      ...{ code: 1, stdout: expect.stringMatching(/does not exist[\s\S]*removed device-9/) },
    });

    const drained = await cli(['drain', 'ana'], { at });
    expect(drained).toMatchObject({ code: 0, stderr: '' });
    expect(drained.stdout).toMatch(/^ana-\S+ handed over \d targets in .*, and owns none now\./);
    await split(holdfast, 0, 5);
    expect(await json('undrain', 'ana')).toMatchObject({ draining: false, changed: true });
    await split(holdfast, 2, 3);

    const mine = (await holdfast.fleet.view()).targets.find(({ owner }) => owner === ana.id);
    const { target = '' } = mine ?? {};
    const moved = await cli(['transfer', target, 'ben', '--reason', 'nearer'], { at });
    expect(moved).toMatchObject({ code: 0, stderr: '' });
    expect(moved.stdout).toMatch(/^ben-\S+ owns \S+, after \d+ m?s, and keeps it\.\nUndo: /);
    await split(holdfast, 2, 3);
    expect(await text('explain', target)).toMatch(
      /: ben-\S+ keeps this target, because an operator moved it there\./,
    );
    expect(await cli(['transfer', target, 'nobody'], { at })).toMatchObject({ code: 1 });
    expect(await cli(['transfer', 'nothing', 'ben'], { at })).toMatchObject({ code: 1 });
    expect(await json('unpin', target)).toEqual({ target, changed: true });
    expect(await json('transfer', target, 'ana', '--no-wait')).toEqual({
      ...{ target, from: ben.id, to: ana.id },
    });
    await split(holdfast, 2, 3);

    ben.running.signal('SIGTERM');
    expect(await ben.running.end()).toMatchObject({ code: 0, stderr: '' });
    expect(ben.log.at(-1)?.msg).toMatch(/^handed over [23] targets in \d+ ms$/);
    await split(holdfast, 5);

    const events = () =>
      watch.stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
    const said = ['session.added', 'session.paused', 'session.removed', 'member.joined'];
    const wanted = [...said, 'member.draining', 'member.undrained', 'lease.acquired'];
    // Each instance writes down what happened to it a moment later: the end of one may be there before the other's news.
    const isOver = () => {
      const seen = events();
      const isThere = (name: string) => seen.some(({ event }) => event === name);
      const isGone = seen.some(({ event, member }) => event === 'member.left' && member === ben.id);
      return isGone && [...wanted, 'lease.transferred'].every(isThere);
    };
    await until(isOver, { what: 'the end of ben, and all that came before it, to be seen' });
    watch.signal('SIGINT');
    expect(await watch.end()).toMatchObject({ code: 0, stderr: '' });
    const names = new Set(events().map(({ event }) => event));
    expect(names).not.toContain('lease.renewed');
    const lost = await startCli(['watch', '--since', '1m', '--event', 'member'], { at });
    await until(() => /ben-\S+ +joined\n/.test(lost.stdout), { what: 'ben to have joined' });
    expect(lost.stdout).not.toContain('took');
    await lost[Symbol.asyncDispose]();
    expect(`${watch.stdout}${ana.running.stdout}`).not.toContain('canary');
  });
});
