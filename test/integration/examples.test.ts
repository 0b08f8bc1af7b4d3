import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { startRedis } from '../support/redis-server.ts';
import { privateFolder, startProgram } from './support/cli.ts';
import { END_DEADLINE_MS, example, interrupted, SLOW } from './support/example.ts';
import { expectNoKeys } from './support/no-keys.ts';

const ALL = [
  ...['lease', 'cron', 'node-cron', 'leader', 'express', 'fencing', 'sockets', 'orders', 'tv'],
];
const folder = fileURLToPath(new URL('../../examples/', import.meta.url));
const STAGING = new URL('../../examples/staging/', import.meta.url).href;
const read = (path: string) => readFileSync(`${folder}${path}`, 'utf8');

describe.concurrent('the examples', () => {
  it.each(ALL)('%s explains itself, and says what it does not know', SLOW, async (name) => {
    const help = await example(name, ['--help']);
    expect(help).toMatchObject({ code: 0, stderr: '', left: [] });
    expect(help.stdout).toMatch(new RegExp(`^npm run example:${name} `));
    for (const flag of ['--store URL', '--help']) expect(help.stdout).toContain(flag);
    const wrong = await example(name, ['--shop', 'here']);
    expect(wrong).toMatchObject({ code: 2, stdout: '', left: [] });
    expect(wrong.stderr).toMatch(/^Unknown option '--shop'/);
  });

  it.each(ALL)('%s says so, and ends, where its store can not be reached', SLOW, async (name) => {
    const away = await example(name, ['--store', 'redis://127.0.0.1:1']);
    expect(away).toMatchObject({ code: 1, left: [] });
    expect(away.stderr).toMatch(/^(\S+ )*redis:\/\/127\.0\.0\.1:1 .*unreachable/m);
  });

  it.each([
    ["claim(false, 'pigs fly')", 'pigs fly'],
    ["throw new Error('no pigs')", 'no pigs'],
  ])('end with 1, and say why, where %s', SLOW, async (play, why) => {
    const script = `
      const { stage } = await import('${STAGING}stage.mjs');
      const { claim } = await import('${STAGING}telling.mjs');
      await stage({ name: 'pigs', about: '' }, async () => { ${play}; });`;
    const args = ['--input-type=module', '--eval', script];
    await using running = startProgram(process.execPath, args, { cwd: privateFolder() });
    const { code, stdout } = await running.end('', END_DEADLINE_MS);
    expect(code).toBe(1);
    expect(stdout).toContain(`Not everything was as it should be:\n  ${why}\n`);
  });

  it('leave nothing behind when they are interrupted', SLOW, async () => {
    await using redis = await startRedis();
    const begun: readonly [string, RegExp][] = [
      ['cron', /begins the report/],
      ['leader', /leads, fence/],
      ['express', /ana +\d\d/],
    ];
    const results = await Promise.all(
      begun.map(([name, after]) => interrupted(name, ['--store', redis.url], after)),
    );
    for (const result of results)
      expect(result, result.stdout).toMatchObject({ code: 130, stderr: '', left: [] });
    await expectNoKeys(redis);
  });

  it.each(ALL)('%s has a page that names its command and its files', (name) => {
    const page = read(`${name}/README.md`);
    expect(page).toContain(`npm run example:${name}`);
    const files = [...page.matchAll(/\]\(([\w.-]+)\)/g)].map(([, file = '']) => file);
    expect(files).not.toEqual([]);
    for (const file of files) expect(read(`${name}/${file}`)).not.toBe('');
    const lines = page.trimEnd().split('\n').length;
    expect(lines).toBeGreaterThanOrEqual(10);
    expect(lines).toBeLessThanOrEqual(40);
  });

  it('are all on the list', () => {
    const list = readFileSync(`${folder}../docs/examples.md`, 'utf8');
    for (const name of ALL) expect(list).toContain(`npm run example:${name}`);
  });
});
