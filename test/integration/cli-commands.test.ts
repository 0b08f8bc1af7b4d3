import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Holdfast, Lease } from '../../src/index.ts';
import { freePort, type RedisServer, startRedis } from '../support/redis-server.ts';
import { BIN, cli, privateFolder, type Result, startProgram } from './support/cli.ts';
import { leaveNothingBehind, openAt, take } from './support/holdfasts.ts';

leaveNothingBehind();

const NASTY = '\u001b]0;owned\u0007\u001b[31m\u009b31m\u202e';

let redis: RedisServer;
let holdfast: Holdfast;
let lease: Lease;
beforeAll(async () => {
  redis = await startRedis();
  holdfast = await openAt(redis);
  lease = await take(holdfast, 'job:1', { holder: 'somebody' });
  await take(holdfast, 'job:2');
  await take(holdfast, 'other');
});
afterAll(async () => {
  await holdfast.close();
  await redis.stop();
});

const error = ({ stderr }: Result) => (JSON.parse(stderr) as { error: object }).error;

describe.concurrent('holdfast ls', () => {
  it('shows who holds what, of the keys that begin so', async () => {
    const { code, stdout } = await cli(['ls', 'job:'], { at: redis });
    const lines = stdout.split('\n').map((line) => line.split(/ {2,}/));
    expect(code).toBe(0);
    expect(lines).toEqual([
      ['KEY', 'CLASS', 'HOLDER', 'FENCE', 'EXPIRES IN'],
      ['job:1', 'lease', 'somebody', String(lease.fence), expect.stringMatching(/^\d+ s$/)],
      ['job:2', 'lease', expect.any(String), expect.any(String), expect.any(String)],
      [''],
    ]);
  });

  it('pages through all of them, and gives JSON', async () => {
    await using many = await startRedis();
    await using holdfast = await openAt(many);
    const keys = Array.from({ length: 1_200 }, (_, i) => `key-${1_000 + i}`);
    await Promise.all(keys.map((key) => take(holdfast, key)));
    const { stdout } = await cli(['ls', '--json'], { at: many });
    const leases = JSON.parse(stdout) as { key: string }[];
    expect(leases.map(({ key }) => key)).toEqual(keys);
    expect(leases[0]).toEqual({
      key: 'key-1000',
      class: 'lease',
      holder: expect.any(String),
      fence: expect.stringMatching(/^\d{16}$/),
      expiresInMs: expect.any(Number),
    });
  });

  it('K-12 shows the leases of targets and workflows, too', async () => {
    await using every = await startRedis();
    await using holdfast = await openAt(every);
    await take(holdfast, 'k');
    await take(holdfast, 'k', { class: 'poll' });
    await take(holdfast, 'w', { class: 'workflow' });
    const { stdout } = await cli(['ls', '--json'], { at: every });
    const shown = (JSON.parse(stdout) as { key: string; class: string }[]).map((lease) => [
      ...[lease.class, lease.key],
    ]);
    expect(shown).toEqual([
      ['lease', 'k'],
      ['poll', 'k'],
      ['workflow', 'w'],
    ]);
  });

  it('shows what is in the store without effect on the terminal', async () => {
    await using foreign = await startRedis();
    await foreign.cli('SET', `lease:k${NASTY}`, `h${NASTY}`, 'PX', 60_000);
    const shown = await cli(['ls'], { at: foreign });
    expect(shown.stdout).toContain(
      'k\\x1b]0;owned\\x07\\x1b[31m\\x9b31m\\u202e  lease  h\\x1b]0;owned',
    );
    expect(shown.stdout).toMatch(/^[\n -~]*$/);
    const json = await cli(['--json', 'ls'], { at: foreign });
    expect(json.stdout).toMatch(/^[\n -~]*$/);
    expect(JSON.parse(json.stdout)).toMatchObject([{ key: `k${NASTY}`, holder: `h${NASTY}` }]);
  });
});

describe.concurrent('a store that does not exist', () => {
  it.each([['ls'], ['workflows'], ['doctor']])(
    'K-16 %s says so with 69, and makes nothing',
    async (command) => {
      const folder = privateFolder();
      const url = `sqlite:${join(folder, 'wrong', 'path.db')}`;
      const args = command === 'workflows' ? ['workflows', 'ls'] : [command];
      const { code, stderr } = await cli(args, { at: { url }, cwd: folder });
      expect({ code, stderr }).toEqual({
        code: 69,
        stderr: expect.stringContaining('does not exist'),
      });
      expect(readdirSync(folder)).toEqual([]);
    },
  );

  it('K-16 is not made by default, either', async () => {
    const folder = privateFolder();
    expect((await cli(['ls'], { cwd: folder })).code).toBe(69);
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe.concurrent('holdfast get and revoke', () => {
  it('tell who holds a key', async () => {
    const held = await cli(['get', 'job:1'], { at: redis });
    expect(held.stdout).toMatch(
      new RegExp(
        `^'job:1' is held by somebody \\(fence ${lease.fence}\\), expires in \\d+ s\\.\n$`,
      ),
    );
    const free = await cli(['--json', 'get', 'nothing'], { at: redis });
    expect(free.code).toBe(1);
    expect(JSON.parse(free.stdout)).toEqual({ key: 'nothing', state: 'free', fence: '0' });
  });

  it('take it away, and say for how long its holder may still act', async () => {
    await using store = await startRedis();
    await using holdfast = await openAt(store);
    await take(holdfast, 'stuck', { holder: 'hangs' });
    const args = ['revoke', 'stuck', '--reason', 'hangs since noon', '--json'];
    const revoked = await cli(args, { at: store });
    expect(JSON.parse(revoked.stdout)).toMatchObject({
      key: 'stuck',
      revoked: true,
      holder: 'hangs',
      mayActForMs: expect.any(Number),
    });
    const again = await cli(['revoke', 'stuck', '--reason', 'again'], { at: store });
    expect(again).toMatchObject({ code: 1, stdout: "Nothing was revoked: 'stuck' is free.\n" });
  });

  it('K-09 take nothing from the next holder when the fence is an earlier one', async () => {
    await using store = await startRedis();
    await using holdfast = await openAt(store);
    const first = await take(holdfast, 'job', { holder: 'first' });
    await first.release();
    const next = await take(holdfast, 'job', { holder: 'next' });
    const args = ['revoke', 'job', '--force', '--reason', 'late', '--fence', String(first.fence)];
    const told = await cli(args, { at: store });
    expect(told).toMatchObject({ code: 1, stderr: '' });
    expect(told.stdout).toBe(
      `Nothing was revoked: 'job' is now held by next (fence ${next.fence}). To revoke that lease, pass --fence ${next.fence}.\n`,
    );
    expect(await next.renew()).toBe(true);
  });

  it('take a target away, which is no plain key, and write down who did', async () => {
    await using store = await startRedis();
    await using holdfast = await openAt(store);
    await take(holdfast, 'device-7', { class: 'poll' });
    const why = ['--reason', 'it polls the wrong thing'];
    expect(await cli(['revoke', 'device-7', ...why], { at: store })).toMatchObject({ code: 1 });
    const revoked = await cli(['revoke', 'device-7', '--target', ...why, '--json'], { at: store });
    expect(JSON.parse(revoked.stdout)).toMatchObject({ key: 'device-7', revoked: true });
    const { entries } = await holdfast.log.recall();
    expect(entries.find(({ event }) => event === 'operator.acted')).toMatchObject({
      ...{ action: 'target.revoke', subject: 'device-7', reason: why[1] },
      by: expect.stringMatching(/^cli:.+@.+/),
    });
  });
});

describe.concurrent('holdfast doctor', () => {
  it('K-16 shows what is fine, what to know, and how far the store is', async () => {
    const { code, stdout } = await cli(['doctor'], { at: redis });
    expect(stdout).toMatch(/^ok {6}Redis \d/m);
    expect(stdout).toMatch(/^warn {4}The append-only file is off.*appendonly yes/m);
    expect(stdout).toMatch(/^ok {6}A lease was had, waited for, used and released\.$/m);
    expect(stdout).toMatch(/^Round trip over 100 reads: p50 [\d.]+ ms, p99 [\d.]+ ms\.$/m);
    expect(code).toBe(0);
  });

  it('K-16 shows a store that is refused as findings, and exits with 1', async () => {
    await using evicting = await startRedis({ args: ['--maxmemory-policy', 'allkeys-lru'] });
    const { code, stdout, stderr } = await cli(['doctor'], { at: evicting });
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    expect(stdout).toMatch(/^refuse {2}maxmemory-policy is allkeys-lru.*noeviction/m);
    const ls = await cli(['ls'], { at: evicting });
    expect(ls.code).toBe(78);
  });

  it('K-16 shows a user that lacks a single right, which only using the store can show', async () => {
    const rights = ['~*', '&*', '+@all', '-zadd', '-hset'];
    await redis.cli('ACL', 'SETUSER', 'nearly', 'on', '>canary', ...rights);
    const url = `redis://nearly:canary@127.0.0.1:${redis.port}`;
    const { code, stdout } = await cli(['doctor'], { at: { url } });
    expect(stdout).toMatch(/^refuse {2}.*lacks a right.*docs\/redis\.md/m);
    expect(code).toBe(1);
  });

  it('K-16 shows a user without rights what to grant, and no password', async () => {
    await redis.cli('ACL', 'SETUSER', 'poor', 'on', '>canary', '~*', '+ping', '+time');
    const url = `redis://poor:canary@127.0.0.1:${redis.port}`;
    const { code, stdout } = await cli(['doctor', '--json'], { at: { url } });
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      findings: [{ level: 'refuse', fact: expect.stringContaining('+info') }],
    });
    expect(stdout).not.toContain('canary');
  });
});

describe.concurrent('what goes wrong', () => {
  it('is one line with what to do, and a code of its own', async () => {
    const port = await freePort();
    const secret = `redis://user:canary@127.0.0.1:${port}`;
    const cases: [readonly string[], number, RegExp][] = [
      [['rn'], 64, /unknown command 'rn' \(Did you mean run\?\)/],
      [['ls', '--jsn'], 64, /unknown option '--jsn' \(Did you mean --json\?\)/],
      [
        ['run', 'k', 'ls', '-l'],
        64,
        /unknown option '-l'\. If it is an option of your command, put -- before/,
      ],
      [['run', 'k'], 64, /missing required argument 'command'/],
      [['run', '--ttl', '1s', '--grace', '2s', 'k', '--', 'true'], 64, /--grace is "2s"/],
      [['run', '--held-exit-code', '256', 'k', '--', 'true'], 64, /from 0 to 255/],
      [['get', `k${NASTY}`], 64, /^holdfast: KEY is /],
      [['revoke', 'k', '--reason', ' '], 64, /--reason/],
      [['revoke', 'k', '--reason', 'x', '--fence', '1x'], 64, /--fence/],
      [['ls', '--store', secret], 69, /is unreachable/],
      [['ls', '--store', 'ftp://user:canary@host'], 78, /store is "ftp:"/],
      [['run', '--store', 'memory:', 'k', '--', 'true'], 78, /exclude no other process/],
      [['ls', '--store', 'redis://user:canary@[broken'], 78, /each host is a name/],
    ];
    const results = await Promise.all(cases.map(([args]) => cli(args)));
    for (const [i, [args, code, message]] of cases.entries()) {
      const { stdout, stderr, ...result } = results[i] as Result;
      expect(`${args}: ${result.code}`).toBe(`${args}: ${code}`);
      expect(stderr).toMatch(message);
      expect(stderr).toMatch(/^holdfast: [ -~…]*\n$/);
      expect(stderr).not.toContain('canary');
      expect(stdout).toBe('');
    }
  });

  it('is JSON on request, and the result stays empty', async () => {
    const held = await cli(['run', '--json', 'job:1', '--', 'true'], { at: redis });
    expect(held).toMatchObject({ code: 75, stdout: '' });
    expect(error(held)).toMatchObject({
      code: 'LEASE_HELD',
      key: 'job:1',
      holder: 'somebody',
      fence: String(lease.fence),
      reason: 'held',
    });
    expect(error(await cli(['--json', 'rn']))).toMatchObject({ code: 'USAGE' });
  });
});

describe.concurrent('the store', () => {
  it('is named by a flag, else the environment, else a configuration above the working directory', async () => {
    const folder = privateFolder();
    const below = join(folder, 'a', 'b');
    mkdirSync(below, { recursive: true });
    const config = `export default { store: '${redis.url}', prefix: 'p:', quarantine: 'off' };`;
    writeFileSync(join(folder, 'holdfast.config.mjs'), config);
    await using prefixed = await openAt(redis, { prefix: 'p:' });
    await take(prefixed, 'configured');
    const keys = async (args: string[], env: Record<string, string> = {}) =>
      (await cli([...args, 'ls'], { cwd: below, env })).stdout.match(/^\S+/gm)?.slice(1);
    expect(await keys([])).toEqual(['configured']);
    expect(await keys([], { HOLDFAST_PREFIX: '' })).toContain('job:1');
    expect(await keys(['--prefix', 'p:'], { HOLDFAST_PREFIX: 'q:' })).toEqual(['configured']);
    const gone = `redis://127.0.0.1:${await freePort()}`;
    const flagged = await cli(['ls', '--store', redis.url], {
      cwd: below,
      env: { HOLDFAST_STORE: gone },
    });
    expect(flagged.code).toBe(0);
    const named = await cli(['ls'], { cwd: below, env: { HOLDFAST_STORE: gone } });
    expect(named.code).toBe(69);
  });

  it('is not guessed from a configuration that says something else', async () => {
    const folder = privateFolder();
    const wrong = async (text: string) => {
      writeFileSync(join(folder, 'holdfast.config.mjs'), text);
      const { code, stderr } = await cli(['ls'], { cwd: folder });
      expect(code).toBe(78);
      expect(stderr).toContain(join(folder, 'holdfast.config.mjs'));
      return stderr;
    };
    expect(await wrong("export default { stor: 'memory:' };")).toMatch(
      /stor is .*Known options: store/,
    );
    expect(await wrong('export default { store: 7 };')).toContain('store is 7');
    expect(await wrong('export default {')).toContain('could not be loaded');
    expect(await wrong('export const store = 1;')).toContain('default export is undefined');
    expect(await wrong('export default [];')).toContain('default export is an array');
    const promised = await wrong("export default Promise.resolve({ store: 'memory:' });");
    expect(promised).toContain('default export is a promise');
    const quarantine = await cli(['ls'], { env: { HOLDFAST_QUARANTINE: 'maybe' } });
    expect(quarantine).toMatchObject({ code: 78 });
  });
});

describe.concurrent('help, version and completion', () => {
  it('load neither the store nor its client', async () => {
    const spy = join(privateFolder(), 'spy.mjs');
    // What was loaded, at the end: modules of other packages than commander, and stores.
    const hooks = `export async function load(url, context, next) {
      if (/store|@redis|libsql/.test(url)) process._rawDebug('LOADED ' + url);
      return next(url, context);
    }`;
    writeFileSync(
      spy,
      `import { register } from 'node:module';
       register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hooks)}));`,
    );
    const env = { NODE_OPTIONS: `--import=${spy}` };
    for (const args of [['--help'], ['run', '--help'], ['--version'], ['completion', 'bash']]) {
      const { code, stdout, stderr } = await cli(args, { env });
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).not.toBe('');
    }
    expect((await cli(['ls'], { env, at: redis })).stderr).toContain('LOADED');
  });

  it('complete commands, options and values in bash', async () => {
    const complete = async (...words: string[]) => {
      const quoted = words.map((word) => `'${word}'`).join(' ');
      const script = `
        source <("${process.execPath}" "${BIN}" completion bash)
        COMP_WORDS=(holdfast ${quoted}); COMP_CWORD=${words.length}
        _holdfast; printf '%s\\n' "\${COMPREPLY[@]}"`;
      const { stdout, stderr } = await startProgram('bash', ['-c', script], {}).end();
      expect(stderr).toBe('');
      return stdout.trim().split('\n');
    };
    expect(await complete('r')).toEqual(['run', 'report', 'revoke']);
    expect(await complete('run', '--w')).toEqual(['--wait']);
    expect(await complete('targets', 'p')).toEqual(['pause']);
    expect(await complete('targets', 'add', '--f')).toEqual(['--file']);
    expect(await complete('--quarantine', '')).toEqual(['on', 'off']);
    expect(await complete('completion', '')).toEqual(
      expect.arrayContaining(['bash', 'zsh', 'fish']),
    );
    expect(await complete('run', 'key', '--', 'holdfast-no-such-comman')).toEqual(['']);
    expect(await complete('run', 'key', '--', 'bas')).toContain('bash');
  });

  it.each(['zsh', 'fish'])('are scripts that %s can read', async (shell) => {
    const { code, stdout } = await cli(['completion', shell]);
    expect(code).toBe(0);
    for (const word of ['run', 'held-exit-code', 'quarantine']) expect(stdout).toContain(word);
    if (isInstalled(shell))
      expect(await startProgram(shell, ['-n', '-'], {}).end(stdout)).toMatchObject({ code: 0 });
  });

  it('have colours on a terminal only, and not where nobody wants them', async () => {
    const env = { TERM: 'xterm' };
    const doctor = `"${process.execPath}" "${BIN}" doctor`;
    const onTerminal = async (line: string) =>
      (await startProgram('script', ['-qec', line, '/dev/null'], { at: redis, env }).end()).stdout;
    const GREEN = '\u001b[32m';
    if (isInstalled('script')) {
      expect(await onTerminal(doctor)).toContain(GREEN);
      expect(await onTerminal(`${doctor} --no-color`)).not.toContain(GREEN);
      expect(await onTerminal(`NO_COLOR=1 ${doctor}`)).not.toContain(GREEN);
      expect(await onTerminal(`TERM=dumb ${doctor}`)).not.toContain(GREEN);
    }
    expect((await cli(['doctor'], { at: redis })).stdout).not.toContain(GREEN);
  });
});

function isInstalled(program: string): boolean {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
