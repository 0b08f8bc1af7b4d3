import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Holdfast, Orchestrator, WorkflowView } from '../../src/index.ts';
import { until } from '../support/until.ts';
import { BIN, cli, privateFolder, type Result, startProgram, startShell } from './support/cli.ts';
import { codeOf, leaveNothingBehind, openAt } from './support/holdfasts.ts';

leaveNothingBehind();

/** A dozen commands, each a process of its own. */
const SLOW = { timeout: 60_000 };
const UUID = /[0-9a-f]{8}-[0-9a-f-]{27}/;
const NASTY = '\u001b]0;owned\u0007\u202e';
const LUCKLESS = 'no luck\\x1b]0;owned\\x07\\u202e';

const error = ({ stderr }: Result) => (JSON.parse(stderr) as { error: object }).error;

function place() {
  return { url: `sqlite:${join(privateFolder(), 'holdfast.db')}` };
}

/** A workflow with something done, something that is to be done by nobody, and something dead. */
async function eventful(holdfast: Holdfast, id: string): Promise<Orchestrator> {
  const wf = await holdfast.workflows.claim(id, { ttl: '100s' });
  const processor = holdfast.processor({
    ...{ name: 'validate', role: 'effect', tries: 2, backoff: 1 },
    handlers: {
      GOOD: () => 'fine',
      BAD: () => {
        throw new Error(`no luck${NASTY}`);
      },
    },
  });
  await processor.start();
  for (const type of ['GOOD', 'BAD']) {
    const { action_id } = await wf.emit(type, {}, { target: 'validate' });
    await wf.handleResult(await wf.result(action_id));
  }
  await processor.stop();
  await wf.emit('LATER', {}, { target: 'nobody' });
  await wf.updateState({ at: 'the end', nasty: NASTY });
  return wf;
}

describe.concurrent('holdfast workflows', () => {
  const at = place();
  let holdfast: Holdfast;
  let wf: Orchestrator;
  beforeAll(async () => {
    holdfast = await openAt(at);
    wf = await eventful(holdfast, 'order-7');
    await (await holdfast.workflows.claim('order-8')).release();
  });
  afterAll(() => holdfast.close());

  it('ls shows state and epoch, who holds each and for how long yet', async () => {
    const { code, stdout } = await cli(['workflows', 'ls'], { at });
    const [head, ...rows] = stdout.split('\n').map((line) => line.split(/ {2,}/));
    expect(code).toBe(0);
    expect(head?.join(' ')).toBe(
      'ID FUNCTION PHASE STATE EPOCH UNRESOLVED PARKED UNREAD CHANGED HELD FOR LEASE',
    );
    const [ago, left] = [expect.stringMatching(/^\d+ m?s ago$/), expect.stringMatching(/^1 min/)];
    expect(rows).toEqual([
      [
        ...[
          'order-7',
          '-',
          '-',
          expect.stringMatching(/^\{"at":"the end".*…$/),
          '6',
          '1',
          '0',
          '0',
        ],
        ...[ago, left, wf.leaseId],
      ],
      ['order-8', '-', '-', 'initialized', '0', '0', '0', '0', ago, '-', '-'],
      [''],
    ]);
    const held = await cli(['workflows', 'ls', '--held', '--json'], { at });
    expect(JSON.parse(held.stdout)).toEqual([
      {
        ...{ id: 'order-7', leaseId: wf.leaseId, epoch: 6, state: { at: 'the end', nasty: NASTY } },
        ...{ unresolved: 1, parked: 0, unread: 0, isHeld: true, expiresInMs: expect.any(Number) },
        ...{
          createdAt: expect.stringMatching(/Z$/),
          changedAt: expect.stringMatching(/Z$/),
          run: null,
          instance: expect.any(String),
        },
      },
    ]);
  });

  it('show tells all about one, and that there is none', async () => {
    const { code, stdout } = await cli(['workflows', 'show', 'order-7'], { at });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^state +\{"at":"the end","nasty":"\\u001b\]0;owned\\u0007\\u202e"\}$/m);
    expect(stdout).toMatch(
      new RegExp(`^held +by .*lease ${wf.leaseId}.* for 1 min.* more unless it is renewed`, 'm'),
    );
    expect(stdout).toMatch(/^unresolved +1 action without a result$/m);
    const free = await cli(['workflows', 'show', 'order-8'], { at });
    expect(free.stdout).toMatch(/^held +no; its last lease was \S+$/m);
    const none = await cli(['workflows', 'show', 'order-9', '--json'], { at });
    expect(none).toMatchObject({ code: 1, stdout: '' });
    expect(error(none)).toMatchObject({ code: 'WORKFLOW_NOT_FOUND', workflow_id: 'order-9' });
  });

  it('W-03 history tells what happened as sentences with times, the oldest first', async () => {
    const { code, stdout } = await cli(['workflows', 'history', 'order-7'], { at });
    expect(code).toBe(0);
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {2,}/));
    expect(rows[0]).toEqual(['TIME', 'EPOCH', 'WHAT HAPPENED']);
    for (const [time] of rows.slice(1)) expect(time).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\S+Z$/);
    const told = rows.slice(1).map(([, epoch, what = '']) => `${epoch} ${what.replace(UUID, '#')}`);
    expect(told).toEqual([
      '0 claimed by lease #',
      '1 emitted action # for validate: GOOD, 2 bytes',
      '1 done: action # of validate',
      '2 set the state to "step_completed"',
      '3 emitted action # for validate: BAD, 2 bytes',
      `3 try 1 failed: action # of validate: ${LUCKLESS}`,
      `3 failed too often, now a dead letter: action # of validate (try 2): ${LUCKLESS}`,
      '4 set the state to "step_failed"',
      '5 emitted action # for nobody: LATER, 2 bytes',
      '6 set the state to {"at":"the end","nasty":"\\u001b]0;owned\\u0007\\u202e"}',
    ]);
    const json = await cli(['workflows', 'history', 'order-7', '--json'], { at });
    expect(JSON.parse(json.stdout)[3]).toEqual({
      ...{ at: expect.stringMatching(/Z$/), epoch: 2, leaseId: wf.leaseId },
      ...{ kind: 'updated', state: 'step_completed' },
    });
    expect(await cli(['workflows', 'history', 'order-9'], { at })).toMatchObject({ code: 1 });
  });
});

describe.concurrent('holdfast workflows', () => {
  it('ls writes any number of them, and stops when nobody reads on', SLOW, async () => {
    const at = place();
    await using holdfast = await openAt(at);
    // More than a page of the store, and than a block of the list.
    const ids = Array.from({ length: 1_203 }, (_, i) => `w-${1_000 + i}`);
    for (let i = 0; i < ids.length; i += 100)
      await Promise.all(ids.slice(i, i + 100).map((id) => holdfast.workflows.claim(id)));
    const { stdout } = await cli(['workflows', 'ls', '--json'], { at });
    const found = JSON.parse(stdout) as WorkflowView[];
    expect(found.map(({ id }) => id)).toEqual(ids);
    const table = await cli(['workflows', 'ls'], { at });
    const lines = table.stdout.trimEnd().split('\n');
    expect(lines).toHaveLength(1 + ids.length);
    // The text of a later block may be wider than any before it: columns grow, and never shrink.
    const widths = lines.slice(1).map((line) => line.length);
    expect(widths).toEqual([...widths].sort((a, b) => a - b));
    expect(new Set(widths.slice(0, 200)).size).toBe(1);
    const first = await startShell('bash', 'holdfast workflows ls | head -2', { at }).end();
    expect(first).toMatchObject({ code: 0, stderr: '' });
    expect(first.stdout).toMatch(/^ID .*\nw-1000 .*\n$/);
  });

  it(
    'W-11 revoke ends a tenure by its lease or its workflow, and says what happens now',
    SLOW,
    async () => {
      const at = place();
      await using holdfast = await openAt(at);
      const wf = await holdfast.workflows.claim('order-1');
      await wf.emit('LATER', {}, { target: 'nobody' });
      const revoked = await cli(['workflows', 'revoke', 'order-1', '--reason', 'since noon'], {
        at,
      });
      expect(revoked).toMatchObject({ code: 0, stderr: '' });
      expect(revoked.stdout).toBe(
        `Revoked lease ${wf.leaseId} of workflow 'order-1'. Everything its orchestrator still sends is refused; another instance may claim the workflow at once. ` +
          'It has 1 action without a result: the next claim drops it, unless it sets resume: true.\n',
      );
      expect(await codeOf(wf.updateState('too late'))).toBe('LEASE_VIOLATION');
      const { stdout: shown } = await cli(['workflows', 'show', 'order-1'], { at });
      expect(shown).toMatch(/^held +no: its last lease was revoked$/m);
      const told = await cli(['workflows', 'history', 'order-1'], { at });
      expect(told.stdout).toContain(`revoked lease ${wf.leaseId}: since noon`);
      {
        await using watched = startProgram(process.execPath, [BIN, 'watch', '--since', '1m'], {
          at,
        });
        const isTold = () =>
          watched.stdout.includes(`revoked lease ${wf.leaseId} of workflow order-1`);
        // A program starts first: on a busy host that alone takes seconds.
        const what = 'the revocation in the log that all share';
        await until(isTold, { what, deadlineMs: 20_000 });
      }

      const again = await cli(['workflows', 'revoke', 'order-1', '--reason', 'x'], { at });
      expect(again).toMatchObject({ code: 1, stdout: '' });
      expect(again.stderr).toContain("workflow 'order-1' has no lease: the last one was revoked");
      // An instance that was revoked leaves the workflow alone for a while: another goes on.
      await using another = await openAt(at);
      const next = await another.workflows.claim('order-1');
      const byLease = ['workflows', 'revoke', next.leaseId, '--reason', 'x', '--json'];
      expect(JSON.parse((await cli(byLease, { at })).stdout)).toEqual({
        ...{ workflow_id: 'order-1', lease_id: next.leaseId, reason: 'x', unresolved: 0 },
        revoked_at: expect.stringMatching(/Z$/),
      });
      const unknown = await cli(byLease, { at });
      expect(unknown).toMatchObject({ code: 1, stdout: '' });
      expect(error(unknown)).toMatchObject({
        ...{ code: 'LEASE_NOT_FOUND', context: { lease_id: next.leaseId } },
      });
    },
  );

  it('rm removes what nobody holds, and nothing else', SLOW, async () => {
    const at = place();
    await using holdfast = await openAt(at);
    const wf = await holdfast.workflows.claim('order-1');
    const held = await cli(['workflows', 'rm', 'order-1'], { at });
    expect(held).toMatchObject({ code: 75, stdout: '' });
    expect(held.stderr).toContain(`is held by lease ${wf.leaseId} for `);
    await wf.release();
    const removed = await cli(['workflows', 'rm', 'order-1'], { at });
    expect(removed).toMatchObject({ code: 0, stderr: '' });
    expect(removed.stdout).toMatch(/^Removed workflow 'order-1'/);
    expect(await cli(['workflows', 'rm', 'order-1'], { at })).toMatchObject({ code: 1 });
    const none = await cli(['workflows', 'ls'], { at });
    expect(none).toMatchObject({ code: 0, stdout: 'There are no workflows.\n' });
    expect((await cli(['workflows', 'ls', '--json'], { at })).stdout).toBe('[]\n');
  });
});

describe.concurrent('holdfast deadletters', () => {
  it('W-13 are listed, tried again and dropped', SLOW, async () => {
    const at = place();
    await using holdfast = await openAt(at);
    const wf = await eventful(holdfast, 'order-1');
    const other = await eventful(holdfast, 'order-2');
    await other.release();
    const { code, stdout } = await cli(['deadletters', 'ls'], { at });
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {2,}/));
    const [ago, why] = [expect.stringMatching(/ ago$/), 'no luck\\x1b]0;owned\\x07\\u202e'];
    expect({ code, rows }).toEqual({
      code: 0,
      rows: [
        ['ID', 'WORKFLOW', 'ACTION', 'TRIES', 'DIED', 'WHY'],
        [expect.stringMatching(/^validate\/./), 'order-1', 'BAD', '2', ago, why],
        [expect.stringMatching(/^validate\/./), 'order-2', 'BAD', '2', ago, why],
      ],
    });
    const json = await cli(['deadletters', 'ls', 'validate', '--json'], { at });
    expect(JSON.parse(json.stdout)[0]).toMatchObject({
      ...{ id: rows[1]?.[0], tries: 2, reason: `no luck${NASTY}` },
      action: { workflow_id: 'order-1', action_type: 'BAD', lease_id: wf.leaseId, epoch: 2 },
    });
    const none = await cli(['deadletters', 'ls', 'nobody'], { at });
    expect(none).toMatchObject({ code: 0, stdout: 'There are no dead letters.\n' });

    const ids = rows.slice(1).map(([id = '']) => id);
    const retried = await cli(['deadletters', 'retry', ...ids, 'validate/nix'], { at });
    expect(retried).toMatchObject({
      code: 1,
      stdout:
        `${ids[0]} is retried: workflow 'order-1' emits it again now.\n` +
        `${ids[1]} is retried: workflow 'order-2' emits it again with its next claim, because it is not held now.\n`,
    });
    expect(retried.stderr).toMatch(/^holdfast: dead letter 'validate\/nix' does not exist: .*\n$/);
    await until(async () => (await holdfast.workflows.get('order-1'))?.parked === 0, {
      what: 'order-1 to have emitted it anew',
    });
    expect(await holdfast.workflows.get('order-2')).toMatchObject({ parked: 1, unresolved: 2 });

    const third = await eventful(holdfast, 'order-3');
    await third.release();
    const letters = await cli(['deadletters', 'ls', '--json'], { at });
    const dead = (JSON.parse(letters.stdout) as { id: string }[]).map(({ id }) => id);
    expect(dead.length).toBeGreaterThan(0);
    const dropped = await cli(['deadletters', 'drop', ...dead, '--json'], { at });
    expect(dropped).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(dropped.stdout)).toEqual(dead.map((id) => ({ id, dropped: true })));
    const again = await cli(['deadletters', 'drop', ...dead, '--json'], { at });
    expect(again.code).toBe(1);
    expect(JSON.parse(again.stdout)[0]).toEqual({ id: dead[0], error: 'DEAD_LETTER_NOT_FOUND' });
  });
});

describe.concurrent('commands for workflows', () => {
  it('say what is wrong in one line, with a code of its own', SLOW, async () => {
    const cases: [readonly string[], number, RegExp][] = [
      [['workflows'], 64, /Usage: holdfast workflows/],
      [['workflows', 'sho'], 64, /unknown command 'sho' \(Did you mean show\?\)/],
      [['workflows', 'show', `x${NASTY}`], 64, /^holdfast: ID is /],
      [['workflows', 'history', 'a b'], 64, /^holdfast: ID is /],
      [['workflows', 'revoke', 'x'], 64, /--reason/],
      [['workflows', 'revoke', 'x', '--reason', ' '], 64, /--reason is/],
      [['workflows', 'revoke', '{x}y', '--reason', 'x'], 64, /LEASE is/],
      [['deadletters', 'retry'], 64, /missing required argument 'ID'/],
      [
        ['deadletters', 'retry', 'x'],
        64,
        /ID is "x": give it as 'holdfast deadletters ls' shows it: processor\/…/,
      ],
      [['deadletters', 'drop', '/x'], 64, /ID is /],
      [['deadletters', 'ls', '*'], 64, /TARGET is /],
      [['workflows', 'ls', '--store', 'redis://u:canary@127.0.0.1:1'], 69, /is unreachable/],
      [['deadletters', 'ls', '--store', 'ftp://u:canary@host'], 78, /store is "ftp:"/],
    ];
    const results = await Promise.all(cases.map(([args]) => cli(args)));
    for (const [i, [args, code, message]] of cases.entries()) {
      const { stdout, stderr, ...result } = results[i] as Result;
      expect(`${args}: ${result.code}`).toBe(`${args}: ${code}`);
      expect(stderr).toMatch(message);
      expect(stderr).not.toContain('canary');
      expect(stdout).toBe('');
    }
  });

  it('have help with examples, and complete in shells', SLOW, async () => {
    const commands = [
      ...['ls', 'show', 'history', 'revoke', 'rm'].map((name) => ['workflows', name]),
      ...['ls', 'retry', 'drop'].map((name) => ['deadletters', name]),
    ];
    for (const command of commands) {
      const { code, stdout } = await cli([...command, '--help']);
      expect(code).toBe(0);
      expect(stdout).toContain(`Examples:\n  $ holdfast ${command.join(' ')}`);
    }
    const { stdout: script } = await cli(['completion', 'bash']);
    for (const words of [
      'ls show history start signal restart revoke rm',
      'ls retry drop',
      '--held',
    ])
      expect(script).toContain(words);
  });
});

describe.concurrent('holdfast workflows of functions', () => {
  it('B-18 B-19 start, signal and show a workflow that no instance runs yet', SLOW, async () => {
    const at = place();
    await using holdfast = await openAt(at);
    const input = ['--input', '{"item":"tea"}'];
    const started = await cli(['workflows', 'start', 'fulfil', 'order-7', ...input, '--json'], {
      at,
    });
    expect(JSON.parse(started.stdout)).toMatchObject({ id: 'order-7', started: true });
    const again = await cli(['workflows', 'start', 'fulfil', 'order-7'], { at });
    expect(again.stdout).toContain('exists already');
    const value = ['--value', '{"door":"front"}'];
    expect(
      (await cli(['workflows', 'signal', 'order-7', 'delivered', ...value], { at })).code,
    ).toBe(0);
    const shown = await cli(['workflows', 'show', 'order-7', '--json'], { at });
    expect(JSON.parse(shown.stdout)).toMatchObject({
      input: { item: 'tea' },
      signals: [{ name: 'delivered', value: { door: 'front' } }],
      run: { function: 'fulfil', phase: 'running' },
    });
    const absent = await cli(['workflows', 'signal', 'order-8', 'x', '--json'], { at });
    expect([absent.code, error(absent)]).toMatchObject([1, { code: 'WORKFLOW_NOT_FOUND' }]);
    const bad = await cli(['workflows', 'start', 'fulfil', 'order-9', '--input', '{'], { at });
    expect(bad.code).not.toBe(0);
    expect(await holdfast.workflows.get('order-9')).toBe(null);
  });
});
