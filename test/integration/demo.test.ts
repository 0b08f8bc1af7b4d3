import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { until } from '../support/until.ts';
import { cli, privateFolder, type Running, startProgram } from './support/cli.ts';

const START = fileURLToPath(new URL('../../scripts/start.mjs', import.meta.url));

function start(example: string, cwd: string): Running {
  return startProgram(process.execPath, [START, example], { cwd });
}

function says(running: Running, text: string | RegExp): Promise<unknown> {
  const found = () => running.stdout.match(text);
  const what = `'${text}' in ${running.stdout}${running.stderr}`;
  return until(found, { what, deadlineMs: 15_000 });
}

describe.concurrent('the demos', () => {
  it('US1.2 US2.1 npm start in two terminals shares the stations, and one takes over when the other is killed', async () => {
    const cwd = privateFolder();
    await using ana = start('demo', cwd);
    await says(ana, 'ana polls its share of a dozen weather stations, on sqlite:.holdfast/');
    await says(ana, /ana serves the stations at http:\/\/127\.0\.0\.1:\d+/);
    await says(ana, / {2}ana 12$/m);
    await using ben = start('demo', cwd);
    await says(ben, / {2}ana 6 · ben 6$/m);
    await says(ana, 'ana → ben: ');
    const { stdout } = await cli(['sessions', 'ls'], {
      at: { url: `sqlite:${join(cwd, '.holdfast/holdfast.db')}` },
    });
    expect(stdout.match(/^demo-\w+ +polled +(ana|ben)-\S+ +200 in /gm)).toHaveLength(12);
    ana.signal('SIGKILL');
    await says(ben, /ben serves the stations at http:\/\/127\.0\.0\.1:\d+/);
    await says(ben, / {2}ben 12$/m);
    ben.signal('SIGINT');
    expect(await ben.end()).toMatchObject({ code: 0, stderr: '' });
    expect(ben.stdout).toMatch(
      /ben hands over 12 stations …\n[\s\S]*Done in \d+ ms: nobody is left\.\n$/,
    );
  });

  it('K-04 K-11 the example of a lease shows a frozen and a killed holder, and that neither does harm', async () => {
    await using demo = start('lease', privateFolder());
    const { code, stdout, stderr } = await demo.end();
    const output = `${stdout}${stderr}`;
    expect(code, output).toBe(0);
    expect(output).toContain('on sqlite:.holdfast/holdfast.db');
    const story = [
      'ana   has it',
      'ben   may not have it: held',
      'ben   has it',
      'cleo  has it',
      'ben   asks first: isHeld() is false',
      'refused: FENCE_STALE',
      'cleo  is dead',
      'ana   has it',
      'as it should be: {"by":"cleo"}',
    ];
    let at = 0;
    for (const line of story) {
      expect(output.slice(at), output).toContain(line);
      at = output.indexOf(line, at) + line.length;
    }
  });
});
