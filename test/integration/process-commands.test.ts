import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { statOf } from '../../src/worker/supervisor/proc.ts';
import { systemHost } from '../../src/worker/supervisor/system-host.ts';
import { hostMs } from '../support/host-clock.ts';
import { freezeProcess } from '../support/process.ts';
import { until, within } from '../support/until.ts';
import { privateFolder, Ticker } from './support/cli.ts';
import { Crew, inMs, supervisors } from './support/commands.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';

leaveNothingBehind();

const GRACE_MS = 500;
/** How late a timer may be on a machine that does other things as well; part of what the guard is for. */
const LATE_MS = 500;
const folder = privateFolder();

/** Whoever ticked has not ticked since. */
async function expectDead(ticker: Ticker, byMs = hostMs()): Promise<void> {
  const { lastMs } = ticker;
  expect(lastMs).toBeGreaterThan(0);
  expect(lastMs).toBeLessThan(byMs);
  const seenMs = hostMs();
  await until(() => hostMs() > seenMs + 50, { what: 'a moment in which it could act' });
  expect(ticker.lastMs).toBe(lastMs);
}

describe('I-17 a command', () => {
  it('runs with its environment and directory, has nothing to read, and its last lines are kept', async () => {
    await using crew = new Crew();
    const run = crew.sh('cat; echo "$MINE in $PWD"; echo no >&2; exit 7', {
      ...{ env: { MINE: 'mine' }, cwd: folder },
    });
    const group = await run.started;
    expect(group?.group).toBeGreaterThan(0);
    expect(group?.startedTicks).toBeGreaterThan(statOf(process.pid)?.startedTicks ?? 0);
    const { output, ...outcome } = { output: [], ...(await run.outcome) };
    expect(outcome).toEqual({
      ...{ event: 'ended', why: 'done', code: 7, signal: null, survivors: false },
    });
    expect([...output].sort()).toEqual([`mine in ${folder}`, 'no']);
  });

  it.each([
    ['no-such-command', undefined, 'ENOENT'],
    ['/etc/passwd', undefined, 'EACCES'],
    ['true', '/no/such/directory', 'ENOENT'],
  ])('that can not be started says so: %s', async (name, cwd, error) => {
    await using crew = new Crew();
    const run = crew.run([name], { ...(cwd && { cwd }) });
    expect(await run.started).toBeNull();
    expect(await run.outcome).toEqual({ event: 'failed', error });
  });

  it('that exits at once has run, fifty at a time', async () => {
    await using crew = new Crew();
    const runs = Array.from({ length: 50 }, () => crew.run(['true']));
    const outcomes = await Promise.all(runs.map(({ outcome }) => outcome));
    for (const outcome of outcomes) expect(outcome).toMatchObject({ why: 'done', code: 0 });
    const groups = await Promise.all(runs.map(({ started }) => started));
    expect(new Set(groups.map((group) => group?.group)).size).toBe(50);
  });

  it('that ignores SIGTERM is killed when its grace is over', async () => {
    await using crew = new Crew();
    const ticker = new Ticker('stubborn', 'stubborn');
    const run = crew.run(ticker.command, { graceMs: GRACE_MS });
    await ticker.runs();
    run.stop();
    const stoppedMs = hostMs();
    expect(await run.outcome).toMatchObject({ why: 'ordered', signal: 'SIGKILL' });
    expect(ticker.lines).toContain('SIGTERM');
    expect(ticker.lastMs).toBeGreaterThan(stoppedMs + GRACE_MS / 2);
    await expectDead(ticker, stoppedMs + GRACE_MS + LATE_MS);
  });

  it('that leaves others of its group behind has ended when they have', async () => {
    await using crew = new Crew();
    const ticker = new Ticker('left', 'stubborn');
    const script = `"$@" & until [ -s '${ticker.file}' ]; do sleep 0.02; done; exit 3`;
    const run = crew.run(['sh', '-c', script, 'sh', ...ticker.command], { graceMs: GRACE_MS });
    expect(await run.outcome).toMatchObject({ why: 'done', code: 3, survivors: false });
    expect(ticker.lines).toContain('SIGTERM');
    await expectDead(ticker);
  });

  it('that leaves somebody outside of its group, who keeps its output open, has ended without', async () => {
    await using crew = new Crew();
    const run = crew.sh('setsid sleep 3 & echo gone');
    const outcome = await within(2_500, run.outcome);
    expect(outcome).toMatchObject({ why: 'done', code: 0, output: ['gone'] });
  });

  it('may run until its deadline, or a later one that it is told of', async () => {
    await using crew = new Crew();
    const [short, long] = [new Ticker('short'), new Ticker('long')];
    const beganMs = hostMs();
    const runs = [short, long].map(({ command }) => crew.run(command, { validMs: 1_500 }));
    await Promise.all([short.runs(), long.runs()]);
    runs[1]?.extend(inMs(30_000));
    expect(await runs[0]?.outcome).toMatchObject({ why: 'deadline', code: 0 });
    expect(short.lastMs).toBeLessThan(beganMs + 1_500 + LATE_MS);
    await long.runs();
    runs[1]?.stop();
    expect(await runs[1]?.outcome).toMatchObject({ why: 'ordered', code: 0 });
  });

  it('says how far it is while it runs', async () => {
    await using crew = new Crew();
    const said: string[] = [];
    const run = crew.sh('echo "::progress 50 %"; read x < "$GATE"; echo "::progress 100 %"', {
      env: { GATE: join(folder, 'no-such-gate') },
    });
    run.onProgress((text) => said.push(text));
    expect(await run.outcome).toMatchObject({ code: 0 });
    // Of what is said within a moment, the last is passed on.
    expect(said.at(-1)).toBe('100 %');
  });

  it.each([
    ['without the end of a line', 'head -c 100000000 /dev/zero | tr "\\0" x', ['x'.repeat(500)]],
    ['with a line for every byte', 'yes "" | head -c 30000000', Array(20).fill('')],
  ])('that floods its output %s neither blocks nor takes room', async (_, script, output) => {
    await using crew = new Crew();
    await crew.run(['true']).outcome;
    const beforeKb = peakKb(crew.supervisor);
    const other = new Ticker('flooded');
    const calm = crew.run(other.command);
    await other.runs();
    const outcome = await within(25_000, crew.sh(script).outcome);
    expect(outcome).toMatchObject({ why: 'done', code: 0, output });
    expect(peakKb(crew.supervisor) - beforeKb).toBeLessThan(60_000);
    calm.stop();
    expect(await calm.outcome).toMatchObject({ why: 'ordered', code: 0 });
  });

  it('is not given the lock that its supervisor keeps', async () => {
    const lock = await systemHost.lock(`files ${process.pid}`);
    expect(lock).not.toBeNull();
    if (lock === null) return;
    {
      await using crew = new Crew(lock);
      const socket = readlinkSync(`/proc/self/fd/${lock.fd}`);
      const outcome = await crew.sh('for fd in /proc/$$/fd/*; do readlink $fd; done').outcome;
      const { output } = { output: [], ...outcome };
      expect(output.length).toBeGreaterThanOrEqual(3);
      expect(output).not.toContain(socket);
      expect(filesOf(crew.supervisor)).toContain(socket);
    }
    lock.close();
  });

  it('is not started any more when its worker has closed', async () => {
    const crew = new Crew();
    const ticker = new Ticker('closing');
    const run = crew.run(ticker.command);
    await ticker.runs();
    const closed = crew.commands.close();
    expect(await crew.run(['true']).outcome).toEqual({ event: 'failed', error: 'CLOSED' });
    expect(supervisors()).toContain(crew.supervisor);
    run.stop();
    await closed;
    expect(await run.outcome).toMatchObject({ why: 'ordered' });
    expect(statOf(crew.supervisor)?.isDead ?? true).toBe(true);
  });
});

function peakKb(pid: number): number {
  return Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

/** How often a process has gone to sleep; null while it is awake. */
function sleepsOf(pid: number): number | null {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const sleeps = /^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1];
  return /^State:\s+S/m.test(status) ? Number(sleeps) : null;
}

function filesOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      return '';
    }
  });
}

describe('I-17 a supervisor', () => {
  it('that is killed: what it ran is ended, and the next command has another', async () => {
    await using crew = new Crew();
    const tickers = [new Ticker('orphan-1', 'stubborn'), new Ticker('orphan-2')] as const;
    const runs = tickers.map(({ command }) => crew.run(command, { graceMs: GRACE_MS }));
    await Promise.all(tickers.map((ticker) => ticker.runs()));
    process.kill(crew.supervisor, 'SIGKILL');
    const killedMs = hostMs();
    for (const run of runs) {
      expect(await run.outcome).toMatchObject({ why: 'unsupervised', survivors: false });
    }
    for (const ticker of tickers) {
      expect(ticker.lines).toContain('SIGTERM');
      await expectDead(ticker, killedMs + GRACE_MS + LATE_MS);
    }
    expect(await crew.sh('echo again').outcome).toMatchObject({ code: 0, output: ['again'] });
  });

  it('that is killed at any moment of a start leaves nothing behind', async () => {
    await using crew = new Crew();
    let ran = 0;
    for (let round = 0; round < 12; round++) {
      const ticker = new Ticker(`moment-${round}`, 'stubborn');
      const known = supervisors();
      const run = crew.run(ticker.command, { graceMs: 100 });
      const [supervisor = known.at(-1) ?? 0] = supervisors().filter((pid) => !known.includes(pid));
      const momentMs = hostMs() + round * 4;
      await until(() => hostMs() >= momentMs, { what: 'the moment to kill it', every: 1 });
      process.kill(supervisor, 'SIGKILL');
      expect(await run.outcome).toMatchObject({ why: 'unsupervised', survivors: false });
      const { lastMs } = ticker;
      const seenMs = hostMs();
      await until(() => hostMs() > seenMs + 50, { what: 'a moment in which it could act' });
      expect(ticker.lastMs).toBe(lastMs);
      if ((await run.started) !== null) ran += 1;
      // The next one is up when it is killed.
      if (round % 2 === 0) await crew.run(['true']).outcome;
    }
    expect(ran).toBeGreaterThan(0);
  });

  it('that stands still does not keep a command from being stopped in time; all that it ran is ended', async () => {
    await using crew = new Crew();
    const [stopped, other] = [new Ticker('still-1', 'stubborn'), new Ticker('still-2')];
    const runs = [stopped, other].map(({ command }) => crew.run(command, { graceMs: GRACE_MS }));
    await Promise.all([stopped.runs(), other.runs()]);
    await freezeProcess(crew.supervisor);
    runs[0]?.stop();
    const stoppedMs = hostMs();
    for (const run of runs) {
      expect(await run.outcome).toMatchObject({ why: 'unsupervised', survivors: false });
    }
    await expectDead(stopped, stoppedMs + GRACE_MS + LATE_MS);
    await expectDead(other);
    expect(await crew.sh('echo again').outcome).toMatchObject({ code: 0, output: ['again'] });
    const isGone = () => statOf(crew.supervisor)?.isDead ?? true;
    await until(isGone, { what: 'the supervisor that stood still to be gone' });
  });

  it('that stands still and is to start something that is then stopped: nothing was started', async () => {
    await using crew = new Crew();
    await crew.run(['true']).outcome;
    await freezeProcess(crew.supervisor);
    const file = join(folder, 'never');
    const run = crew.sh(`echo > '${file}'`, { graceMs: 100 });
    run.stop();
    expect(await run.outcome).toMatchObject({ why: 'unsupervised', survivors: false });
    expect(await run.started).toBeNull();
    expect(existsSync(file)).toBe(false);
  });

  it('that is told to end ends what it runs; what it has not started the next one does', async () => {
    await using crew = new Crew();
    const ticker = new Ticker('told');
    const run = crew.run(ticker.command);
    await ticker.runs();
    process.kill(crew.supervisor, 'SIGTERM');
    expect(await run.outcome).toMatchObject({ why: 'terminated', code: 0 });
    expect(await crew.sh('echo next').outcome).toMatchObject({ output: ['next'] });
    const [second = 0] = supervisors().filter((pid) => pid !== crew.supervisor);
    const before = await until(() => sleepsOf(second), { what: 'it to have nothing to do' });
    process.kill(second, 'SIGTERM');
    const hasHeard = () => (sleepsOf(second) ?? before) > before;
    await until(hasHeard, { what: 'it to have heard, and to have nothing to do again', every: 1 });
    expect(await crew.sh('echo third').outcome).toMatchObject({ output: ['third'] });
  });
});
