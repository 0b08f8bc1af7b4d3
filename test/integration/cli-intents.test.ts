import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { Emitter } from '../../src/core/events.ts';
import { systemRandom } from '../../src/core/random.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { SessionState } from '../../src/store/port/intent-store.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { BIN, cli, privateFolder, type Result, startCli, startProgram } from './support/cli.ts';
import { leaveNothingBehind, openAt } from './support/holdfasts.ts';

leaveNothingBehind();

/** A dozen commands, each a process of its own. */
const SLOW = { timeout: 60_000 };
const CALL = { timeoutMs: 2_000 };
const NASTY = '\u202e';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const file = () => ({ url: `sqlite:${join(privateFolder(), 'holdfast.db')}` });
const error = ({ stderr }: Result) => (JSON.parse(stderr) as { error: { code: string } }).error;

async function json(at: { url: string }, ...args: string[]) {
  const { code, stdout, stderr } = await cli([...args, '--json'], { at });
  expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' });
  return JSON.parse(stdout);
}

/** What a worker would say of a session. */
async function advance(at: { url: string }, id: string, state: SessionState, said: object = {}) {
  const options = { clock: systemClock, random: systemRandom, events: new Emitter() };
  const { store } = await openStore(at.url, { ...options, quarantine: 'off' });
  const [found] = await store.intents.read([id], CALL);
  const { revision: ifRevision = 0, status = '{}' } = found ?? {};
  const change = { ifRevision, state, status: JSON.stringify({ ...JSON.parse(status), ...said }) };
  expect(await store.intents.advance(id, change, CALL)).toMatchObject({ kind: 'advanced' });
  await store.close();
}

const places = [
  ['SQLite', file],
  ['Redis', () => ({ url: redis.url })],
] as const;

describe.concurrent.each(places)('intents on %s, from the command line', (_, place) => {
  it(
    'I-07 I-14 are started once however often they are, listed, shown and stopped',
    SLOW,
    async () => {
      const at = place();
      const started = await json(at, 'intents', 'start', '1:0:19:283D', '--profile', 'hd');
      expect(started).toMatchObject({
        ...{ kind: 'live', serviceRef: '1:0:19:283D', profile: 'hd', state: 'NEW', clients: 1 },
        ...{ tenant: 'default', replayed: false, reason: null, worker: null },
      });
      const { id } = started;
      const again = ['intents', 'start', '1:0:19:283D', '--profile', 'hd', '--client', 'ben'];
      expect(await json(at, ...again)).toMatchObject({ id, replayed: true, clients: 2 });
      const vod = ['intents', 'start', '--recording', '--at', '12m', 'rec-7', '--tenant', 'acme'];
      const recording = await json(at, ...vod);
      expect(recording).toMatchObject({
        ...{ kind: 'vod', recordingId: 'rec-7', startMs: 720_000, tenant: 'acme' },
      });

      const live = await json(at, 'sessions', 'ls', '--kind', 'live');
      expect(live).toMatchObject([{ id, clients: 2 }]);
      const table = await cli(['sessions', 'ls', '--kind', 'vod', '--state', 'new,running'], {
        at,
      });
      const [head, row] = table.stdout.split('\n').map((line) => line.split(/ {2,}/));
      expect(head?.join(' ')).toBe(
        'ID STATE REASON KIND KEY PARAMS CLIENTS AGE SLOT WORKER PROGRESS',
      );
      expect(row).toEqual([
        ...[recording.id, 'NEW', '-', 'vod', 'rec-7 from 12 min', 'default', '1'],
        ...[expect.stringMatching(/^\d+ m?s$/), '-', '-', '-'],
      ]);
      expect(await json(at, 'sessions', 'ls', '--kind', 'vod', '--state', 'ended')).toEqual([]);
      const shown = await cli(['sessions', 'get', recording.id], { at });
      expect(shown.stdout).toMatch(/^recording +rec-7 from 12 min$/m);
      expect(await json(at, 'sessions', 'get', id)).toMatchObject({ id, kind: 'live', clients: 2 });

      const first = await cli(['intents', 'stop', id], { at });
      expect(first).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('1 client needs it'),
      });
      const ended = await json(at, 'intents', 'stop', id, '--force');
      expect(ended).toMatchObject({ state: 'ENDED', reason: 'R_STOPPED', changed: true });
      const late = await cli(['intents', 'stop', id], { at });
      expect(late).toMatchObject({ code: 0, stdout: expect.stringContaining('has ended already') });
      const next = await json(at, 'intents', 'start', '1:0:19:283D', '--profile', 'hd');
      expect(next).toMatchObject({ replayed: false });
      expect(next.id).not.toBe(id);
    },
  );
});

describe.concurrent('holdfast intents', () => {
  it(
    'start --wait ends with 0 when it runs, and with 1 when it has ended instead',
    SLOW,
    async () => {
      const at = file();
      const waiting = (ref: string) =>
        startCli(['intents', 'start', '--wait', ref, '--json'], { at });
      await using runs = waiting('a');
      await using ends = waiting('b');
      await using holdfast = await openAt(at, { history: 'off' });
      const intents = holdfast.intents();
      const idOf = (ref: string) =>
        until(
          async () => {
            const { sessions } = await intents.sessions({ tenant: null });
            return sessions.find(({ target }) => target === ref)?.id;
          },
          { what: `session ${ref}`, deadlineMs: 10_000 },
        );
      const [a, b] = [await idOf('a'), await idOf('b')];
      await advance(at, a, 'STARTING');
      await advance(at, a, 'RUNNING', { worker: 'ben' });
      await advance(at, b, 'ENDED', { reason: 'R_LEASE_BUSY', outcome: 'REJECTED_BUSY' });
      const good = await runs.end();
      expect(good).toMatchObject({ code: 0, stderr: '' });
      expect(JSON.parse(good.stdout)).toMatchObject({ id: a, state: 'RUNNING', worker: 'ben' });
      const bad = await ends.end();
      expect(bad).toMatchObject({ code: 1, stdout: '' });
      expect(error(bad)).toMatchObject({ code: 'SESSION_ENDED', reason: 'R_LEASE_BUSY' });
      // One that runs already is not waited for.
      expect(await cli(['intents', 'start', '--wait', 'a'], { at })).toMatchObject({ code: 0 });
    },
  );

  it(
    'start --wait shows how far it is on a terminal, and leaves the session with Ctrl-C',
    SLOW,
    async () => {
      const at = file();
      const line = `exec "${process.execPath}" "${BIN}" intents start --wait channel-7`;
      const options = { at, env: { TERM: 'xterm' } };
      await using waiting = startProgram('script', ['-qec', line, '/dev/null'], options);
      const isShown = () => /session \S+ waits for a worker …/.test(waiting.stdout);
      await until(isShown, { what: 'progress', deadlineMs: 10_000 });
      waiting.type('\u0003');
      expect((await waiting.end()).code).not.toBe(0);
      expect(waiting.stdout).toMatch(/stopped waiting; session (\S+) continues\. .* stop \1\r\n/);
      expect(await json(at, 'sessions', 'ls', '--kind', 'live')).toMatchObject([{ state: 'NEW' }]);
    },
  );

  it('says of what it is not for what to do instead', SLOW, async () => {
    const at = file();
    await using holdfast = await openAt(at);
    await holdfast.targets.add({ id: 'polled' });
    const { id } = await json(at, 'intents', 'start', 'a', '--tenant', 'acme');
    const cases: [readonly string[], RegExp][] = [
      [['intents', 'stop', 'nothing'], /session 'nothing' does not exist.*sessions ls/],
      [['intents', 'stop', id], /belongs to tenant 'acme', not to 'default'.*--tenant acme/],
      [['intents', 'stop', 'polled'], /is a target, not a session.*holdfast targets pause polled/],
      [['targets', 'pause', id], /that an intent started.*intents stop --tenant acme/],
      [['targets', 'resume', id], /that an intent started/],
      [['targets', 'rm', id], /that an intent started/],
      [['sessions', 'get', 'nothing'], /session 'nothing' does not exist/],
    ];
    const results = await Promise.all(cases.map(([args]) => cli(args, { at })));
    for (const [i, [args, message]] of cases.entries()) {
      const { code, stderr, stdout } = results[i] as Result;
      expect({ args, code, stdout }).toEqual({ args, code: 1, stdout: '' });
      expect(stderr).toMatch(message);
      expect(stderr).toMatch(/^holdfast: [ -~…]*\n$/);
    }
    const some = await cli(['targets', 'pause', 'polled', id, '--json'], { at });
    expect(some.code).toBe(1);
    expect(JSON.parse(some.stdout)).toEqual([
      { id: 'polled', changed: true },
      { id, changed: false, error: 'SESSION_OF_INTENT' },
    ]);
  });

  it(
    'still does what the old names of the commands for targets say, with a notice',
    SLOW,
    async () => {
      const at = file();
      await using _ = await openAt(at);
      const added = await cli(['sessions', 'add', '--id', 'a', 'http://x/'], { at });
      expect(added).toMatchObject({
        code: 0,
        stdout: 'Added a.\n',
        stderr: "holdfast: 'sessions add' is now 'targets add'\n",
      });
      const shown = await cli(['sessions', 'get', 'a'], { at });
      expect(shown).toMatchObject({ code: 0, stdout: expect.stringMatching(/^id +a\n/) });
      expect(shown.stderr).toBe("holdfast: 'sessions get' of a target is now 'targets get'\n");
      const listed = await cli(['sessions', 'ls', '--kind', 'poll'], { at });
      expect(listed).toMatchObject({ code: 0, stdout: expect.stringMatching(/^a +free/m) });
      expect(listed.stderr).toBe("holdfast: 'sessions ls' of targets is now 'targets ls'\n");
      const free = await cli(['sessions', 'ls', '--state', 'free'], { at });
      expect(free).toMatchObject({ stdout: listed.stdout, stderr: listed.stderr });
      // Targets have these states by now, too, and never had them under the old name.
      const running = await cli(['sessions', 'ls', '--state', 'starting,running'], { at });
      expect(running).toMatchObject({ code: 0, stderr: '' });
      expect(running.stdout).toMatch(/^There are no such sessions\./);
      const removed = await cli(['sessions', 'rm', 'a', '--json'], { at });
      expect(removed).toMatchObject({ code: 0, stderr: '' });
      const help = await cli(['sessions', '--help'], { at });
      expect(help.stdout).not.toMatch(/^ +(add|pause|resume|rm) /m);
    },
  );

  it('refuses what makes no sense in one line, and writes nothing', SLOW, async () => {
    const at = file();
    const long = 'x'.repeat(513);
    const cases: [readonly string[], number, RegExp, Record<string, string>?][] = [
      [['intents'], 64, /Usage/],
      [['intents', 'start'], 64, /REF is missing: give the channel to start, or use --kind/],
      [['intents', 'start', ''], 64, /REF is ""/],
      [['intents', 'start', long], 64, /REF is .*513 characters/],
      [['intents', 'start', 'a\u0007'], 64, /REF is "a\\u0007"/],
      [['intents', 'start', 'a', '--client', ''], 64, /--client is ""/],
      [['intents', 'start', 'a', '--tenant', 'a b'], 64, /--tenant is "a b"/],
      [['intents', 'start', 'a', '--profile', '{}'], 64, /--profile is "{}"/],
      [['intents', 'start', 'a', '--at', '5s'], 64, /use it with --recording/],
      [['intents', 'start', 'a', '--recording', '--at', 'noon'], 64, /--at is "noon"/],
      [
        ['intents', 'start', 'a', '--recording', '--at', '0.5ms'],
        64,
        /--at is 0.5: it must be a whole/,
      ],
      [['intents', 'stop', 'a/b'], 64, /SESSION is "a\/b"/],
      [['intents', 'stop', 'a', '--client', ''], 64, /--client is ""/],
      [['intents', 'start', '--key', 'a'], 64, /--key and --params need a kind/],
      [
        ['intents', 'start', 'a', '--kind', 'tape'],
        64,
        /with --kind, give --key and --params only/,
      ],
      [['intents', 'start', '--kind', 'a/b'], 64, /--kind is "a\/b": the name of a kind is/],
      [['intents', 'start', '--kind', 'tape', '--params', '[]'], 64, /--params is an array/],
      [['intents', 'stop', '--kind', 'a/b', '--key', 'a'], 64, /--kind is "a\/b"/],
      [['sessions', 'ls', '--kind', 'a/b'], 64, /--kind is "a\/b": the name of a kind is/],
      [['sessions', 'ls', '--key', 'a'], 64, /--key needs a kind: use it with --kind/],
      [['sessions', 'ls', '--kind', 'live', '--state', 'polled'], 64, /--state is "polled"/],
      [['targets', 'ls', '--state', 'ENDED'], 64, /--state is "ENDED": the states of targets are/],
      [['intents', 'start', 'a'], 78, /at least 32 bytes/, { HOLDFAST_IDEM_SECRET: 'canary' }],
      [['intents', 'start', 'a'], 78, /V3_API_LEASES/, { HOLDFAST_V3_API_LEASES: 'perhaps' }],
    ];
    const results = await Promise.all(cases.map(([args, , , env = {}]) => cli(args, { at, env })));
    for (const [i, [args, code, message]] of cases.entries()) {
      const { stdout, stderr, ...result } = results[i] as Result;
      expect(`${args}: ${result.code}`).toBe(`${args}: ${code}`);
      expect(stderr).toMatch(message);
      expect(stdout + stderr).not.toContain('canary');
      expect(stdout).toBe('');
    }
    expect(await json(at, 'sessions', 'ls', '--kind', 'live')).toEqual([]);
    expect(await cli(['sessions', 'ls', '--kind', 'vod'], { at })).toMatchObject({
      stdout: expect.stringMatching(/^There are no such sessions. Start one: .* --recording ID\n/),
    });
  });

  it('I-16 takes the lease first where it is told to, and says who has it', SLOW, async () => {
    const at = file();
    const env = { HOLDFAST_V3_API_LEASES: 'on' };
    const first = await cli(['intents', 'start', 'a', '--json'], { at, env });
    expect(first).toMatchObject({ code: 0 });
    const second = await cli(['intents', 'start', 'a', '--json'], { at, env });
    expect(second).toMatchObject({ code: 75, stdout: '' });
    expect(error(second)).toMatchObject({ code: 'LEASE_HELD', key: 'service:a' });
  });

  it('shows what is not its own without effect on a terminal', SLOW, async () => {
    const at = file();
    await json(at, 'intents', 'start', `a${NASTY}b`);
    const { stdout } = await cli(['sessions', 'ls', '--kind', 'live'], { at });
    expect(stdout).toContain('a\\u202eb');
    expect(stdout).not.toContain(NASTY);
  });

  it('lists as many as there are, each once', SLOW, async () => {
    const at = file();
    await using holdfast = await openAt(at, { history: 'off' });
    const intents = holdfast.intents();
    const by = { tenant: null, client: 'c' };
    const refs = Array.from({ length: 1_200 }, (_, i) => `channel-${i}`);
    // More at once would have to wait too long for their turn where others use the machine, too.
    for (let i = 0; i < refs.length; i += 50) {
      const some = refs.slice(i, i + 50);
      await Promise.all(
        some.map((serviceRef) => intents.submit({ type: 'stream.start', serviceRef }, by)),
      );
    }
    const listed = await json(at, 'sessions', 'ls', '--kind', 'live');
    const found = listed.map(({ serviceRef }: { serviceRef: string }) => serviceRef);
    expect(found).toHaveLength(refs.length);
    expect(new Set(found)).toEqual(new Set(refs));
  });
});
