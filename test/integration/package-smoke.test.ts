import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Consumer } from '../support/consumer.ts';
import { ROOT } from '../support/packed-package.ts';
import { until } from '../support/until.ts';
import { type Running, startProgram } from './support/cli.ts';

// As somebody has it who has just installed it, on this Node: `npm run matrix` asks that of every one that is supported.

/** On a machine that does something else, too. */
const START_MS = 20_000;
const { version, bin } = createRequire(import.meta.url)(join(ROOT, 'package.json')) as {
  version: string;
  bin: { holdfast: string };
};

const consumer = new Consumer();
const command = join(consumer.installed, bin.holdfast);

/** `holdfast` from the tarball, in the consumer's folder, on the store that it has by itself. */
function holdfast(...args: string[]): Running {
  return startProgram(process.execPath, [command, ...args], { cwd: consumer.folder });
}

describe(`installed, on Node ${process.versions.node}`, { timeout: 60_000 }, () => {
  it('the command says its version', async () => {
    expect(await holdfast('--version').end()).toMatchObject({
      code: 0,
      stdout: `${version}\n`,
      stderr: '',
    });
  });

  it('a command runs under a lease of the embedded store, and the doctor finds that fit', async () => {
    const run = holdfast(
      'run',
      'nightly',
      '--',
      process.execPath,
      '-p',
      'process.env.HOLDFAST_LEASE_FENCE',
    );
    const ran = await run.end();
    expect(ran).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\n$/) });
    expect(await holdfast('doctor').end()).toMatchObject({ code: 0 });
    expect(readFileSync(join(consumer.folder, '.holdfast/holdfast.db')).length).toBeGreaterThan(0);
  });

  it('holdfast up is ready, serves the page, and ends when it is told to', async () => {
    await using up = holdfast('up', '--port', '0');
    const address = () => /"url":"(http:[^"]+)"/.exec(up.stdout)?.[1];
    const url = await until(address, { what: 'an address', deadlineMs: START_MS });
    const isReady = async () => (await fetch(`${url}/readyz`)).status === 200;
    await until(isReady, { what: '/readyz to say yes', deadlineMs: START_MS });
    expect(await (await fetch(url)).text()).toContain('<!doctype html>');
    up.signal('SIGTERM');
    expect(await up.end()).toMatchObject({ code: 0 });
  });
});
