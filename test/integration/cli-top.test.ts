import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { until } from '../support/until.ts';
import { BIN, childrenOf, cli, privateFolder } from './support/cli.ts';
import { leaveNothingBehind, openAt } from './support/holdfasts.ts';
import { startUp } from './support/instances.ts';
import { Terminal } from './support/terminal.ts';

leaveNothingBehind();

const POLL = `poll: ({ id }) => ({ status: 200, id })`;
/** Real processes that start, die and are noticed to be dead, on a machine that does something else, too. */
const SLOW = { timeout: 90_000 };

/** A shell that says how `top` ended, and how it left the terminal. */
const LINE = `echo "before"; "${process.execPath}" "${BIN}" top; echo "after $?"; stty -a; exec cat`;

async function fleet() {
  const at = { url: `sqlite:${join(privateFolder(), 'holdfast.db')}` };
  const holdfast = await openAt(at);
  await holdfast.targets.addAll(Array.from({ length: 6 }, (_, i) => ({ id: `device-${i}` })));
  return { at, holdfast };
}

/** The terminal is as it was: the first screen, a cursor, wrapped lines, and a line discipline that echoes. */
async function expectRestored(terminal: Terminal, exit = 0) {
  const shown = await terminal.shows(new RegExp(`^before\\nafter ${exit}\\n[\\s\\S]*icanon`, 'm'));
  expect(shown).toMatch(/(?<!-)icanon/);
  expect(shown).toMatch(/(?<!-)\becho\b/);
  expect(await terminal.format('#{alternate_on} #{cursor_flag} #{wrap_flag}')).toBe('0 1 1');
}

describe.concurrent('holdfast top', () => {
  it('shows a fleet as it changes, one of whose instances is killed, until q', SLOW, async () => {
    const { at, holdfast } = await fleet();
    await using _ = holdfast;
    await using terminal = new Terminal({ at, env: { NO_COLOR: '1' } });
    await terminal.start(LINE);
    await terminal.shows(/^No instance runs\. Start one: holdfast up\n/m);
    await using _ana = startUp('ana', { at, config: POLL });
    await using ben = startUp('ben', { at, config: POLL });
    const both = await terminal.shows(/^ana-\w+ +up +█+ +3\/3 [\s\S]*^ben-\w+ +up +█+ +3\/3 /m);
    expect(both).toMatch(/^holdfast top {2}sqlite:.* data \d s old {2}\d\d:\d\d:\d\d\n/);
    expect(both).toMatch(/^6 targets on 2 instances, 6 held/m);

    await ben.running[Symbol.asyncDispose]();
    await terminal.shows(/^ana-\w+ +up +█+ +6\/6 /m);
    const after = await terminal.shows(/, 3 failovers, /);
    expect(after).toMatch(/^6 targets on 1 instance, 6 held\n/m);
    expect(after).toMatch(/took device-\d after a gap of [\d.]+ m?s, fr/);
    expect(await terminal.format('#{alternate_on} #{cursor_flag}')).toBe('1 0');

    await terminal.press('/', 'device-5', 'Enter');
    await terminal.shows(/^device-5 +kept +ana-\w+ [\s\S]*filter: device-5/m);
    await terminal.press('Escape', 'p');
    await terminal.shows(/ paused {2}data/);
    await terminal.resize(40, 10);
    await terminal.shows(/^ana-\w+ +up +6\/6 /m);
    await terminal.press('p', '?');
    await terminal.shows(/^q +quit/m);
    await terminal.resize(80, 24);
    await terminal.press('q');
    await expectRestored(terminal);
  });

  it('leaves the terminal as it was on Ctrl-C, SIGTERM and SIGHUP', SLOW, async () => {
    const { at, holdfast } = await fleet();
    await using _ = holdfast;
    for (const end of ['C-c', 'SIGTERM', 'SIGHUP'] as const) {
      await using terminal = new Terminal({ at });
      await terminal.start(LINE);
      await terminal.shows(/^6 targets on 0 instances, 0 held, 6 unowned$/m);
      if (end === 'C-c') {
        await terminal.press(end);
      } else {
        const shell = Number(await terminal.format('#{pane_pid}'));
        const find = () => childrenOf(shell).find(({ command }) => command.includes('bin.js top'));
        const { pid } = await until(find, { what: 'holdfast top' });
        process.kill(pid, end);
      }
      await expectRestored(terminal);
    }
  });

  it('shows it once where there is no terminal, and as JSON who owns what', SLOW, async () => {
    const { at, holdfast } = await fleet();
    await using _ = holdfast;
    const { code, stdout, stderr } = await cli(['top'], { at });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(
      /^holdfast top {2}sqlite:.*\n6 targets on 0 instances, 0 held, 6 unowned\n/,
    );
    expect(stdout).toMatch(/^device-0 +unplaced +- +- +-\n/m);
    expect(stdout).not.toContain('\u001b');
    const json = JSON.parse((await cli(['top', '--json'], { at })).stdout);
    expect(json).toMatchObject({ at: expect.any(Number), members: [] });
    expect(json.targets[0]).toEqual({
      ...{ id: 'device-0', owner: null, planned: null, preferred: null, pinned: null },
      ...{ reason: 'unplaced', expiresInMs: null },
    });
  });
});
