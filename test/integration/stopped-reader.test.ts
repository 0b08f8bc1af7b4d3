/** Commands that go on until they are told to end, and whoever reads what they write stands still. */
import { spawnSync } from 'node:child_process';
import { closeSync, constants, openSync, readFileSync, readSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Holdfast } from '../../src/holdfast.ts';
import { until } from '../support/until.ts';
import { BIN, cli, privateFolder, startProgram, Ticker } from './support/cli.ts';
import { leaveNothingBehind, openAt, take } from './support/holdfasts.ts';
import { Terminal } from './support/terminal.ts';

leaveNothingBehind();

const embedded = () => ({ url: `sqlite:${join(privateFolder(), 'holdfast.db')}` });
const NODE = `"${process.execPath}" "${BIN}"`;

const OUTPUT = new URL('../../dist/cli/ui/output.js', import.meta.url).href;
const LINES = 3_000;
const LINE = `${'x'.repeat(999)}\n`;
/** Writes far more than a pipe and the queue take, says so elsewhere, and lives on. */
const TALKER = [
  ...[process.execPath, '--input-type=module', '-e'],
  `import { neverBlock, write } from '${OUTPUT}';
  neverBlock();
  for (let i = 0; i < ${LINES}; i++) write(1, ${JSON.stringify(LINE)});
  write(2, 'written\\n');
  setInterval(() => {}, 1_000);`,
];

/** A line of shell that starts an instance which says very much. */
async function talkative(holdfast: Holdfast, targets: number): Promise<string> {
  const ids = Array.from({ length: targets }, (_, i) => `device-${i}`);
  await holdfast.targets.addAll(ids.map((id) => ({ id })));
  const config = join(privateFolder(), 'holdfast.config.mjs');
  const every = `ttl: '3s', every: '100ms', discovery: 'off'`;
  writeFileSync(config, `export default { ${every}, poll: () => 'x'.repeat(300) };`);
  return `exec ${NODE} up --roles poller --log-level debug --config "${config}"`;
}

/** That long after now, it still polls: so its event loop runs, and its lease was never another's. */
async function expectPolling(holdfast: Holdfast, forMs: number): Promise<void> {
  const last = async () => (await holdfast.fleet.results(['device-0'])).get('device-0')?.at ?? 0;
  const fromMs = await until(last, { what: 'a poll' });
  const isLater = async () => (await last()) > fromMs + forMs;
  await until(isLater, { what: 'polls to go on', deadlineMs: 10_000 });
}

describe.concurrent('a reader that stands still', () => {
  it('does not stop holdfast up: Ctrl-S on a terminal', async () => {
    const at = embedded();
    await using holdfast = await openAt(at);
    await using terminal = new Terminal({ at, env: { TERM: 'xterm' } });
    await terminal.start(await talkative(holdfast, 5), { columns: 100 });
    await terminal.shows(/polled device/);
    await terminal.press('C-s');
    await expectPolling(holdfast, 1_000);
    const seen = await terminal.screen();
    await expectPolling(holdfast, 3_000);
    // It does stand still.
    expect(await terminal.screen()).toBe(seen);
    expect((await holdfast.fleet.view()).members).toHaveLength(1);
    process.kill(Number(await terminal.format('#{pane_pid}')), 'SIGTERM');
    const isFree = async () =>
      (await holdfast.fleet.view()).targets.every((one) => one.owner === null);
    await until(isFree, { what: 'it to hand over and end', deadlineMs: 10_000 });
  });

  it('gets what fits, and is told how much it has missed, when it reads again: a pipe that is full', async () => {
    const path = join(privateFolder(), 'pipe');
    spawnSync('mkfifo', [path]);
    const reader = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    await using talker = startProgram('sh', ['-c', `exec "$@" > "${path}"`, 'sh', ...TALKER], {});
    await until(() => talker.stderr === 'written\n', { what: 'everything to be written' });
    let read = '';
    const isTold = () => {
      read += readAll(reader);
      return /holdfast: (\d+) lines were dropped: the reader of this output was too slow\n$/.exec(
        read,
      );
    };
    const told = await until(isTold, { what: 'it to be said', every: 1 });
    expect(read.split('\n').length - 2 + Number(told[1])).toBe(LINES);
    expect(read.startsWith(`${LINE}${LINE}`)).toBe(true);
    // Whoever shares its output can still wait for the reader.
    const flags = /^flags:\s+(\d+)/m.exec(readFileSync(`/proc/${talker.pid}/fdinfo/1`, 'utf8'));
    expect(Number.parseInt(flags?.[1] ?? '', 8) & constants.O_NONBLOCK).toBe(0);
    closeSync(reader);
  });

  it('K-10 does not keep holdfast run from its lease: Ctrl-S while it waits', async () => {
    const at = embedded();
    await using holdfast = await openAt(at);
    const lease = await take(holdfast, 'k');
    const ticker = new Ticker('stopped-reader');
    const words = ticker.command.map((word) => `"${word}"`).join(' ');
    await using terminal = new Terminal({ at, env: { TERM: 'xterm' } });
    await terminal.start(`exec ${NODE} run --wait 60s --ttl 3s --grace 500ms k -- ${words}`);
    const first = /Waited (.*) for 'k'/.exec(await terminal.shows(/Waited .* for 'k'/));
    await terminal.shows(new RegExp(`Waited (?!${first?.[1]} )`));
    await terminal.press('C-s');
    const seen = await terminal.screen();
    // It draws its line once a second: by then it has tried to.
    const saidMs = Date.now();
    await until(() => Date.now() > saidMs + 1_500, { what: 'the line to be drawn again' });
    expect(await terminal.screen()).toBe(seen);
    await lease.release();
    await ticker.runs();
    // It renews its lease: the next one is refused.
    const { code } = await cli(['run', '--ttl', '3s', '--grace', '500ms', 'k', '--', 'true'], {
      at,
    });
    expect(code).toBe(75);
    process.kill(Number(await terminal.format('#{pane_pid}')), 'SIGTERM');
    const isFree = async () => (await holdfast.inspect('k')).kind !== 'held';
    await until(isFree, { what: 'the command to end', deadlineMs: 10_000 });
  });
});

/** What there is to read now. */
function readAll(fd: number): string {
  const bytes = Buffer.alloc(1_048_576);
  let text = '';
  try {
    for (;;) text += bytes.toString('utf8', 0, readSync(fd, bytes));
  } catch {
    return text;
  }
}
