import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { until } from '../../support/until.ts';
import { privateFolder, type Result, type Running, startProgram } from './cli.ts';

const START = fileURLToPath(new URL('../../../scripts/start.mjs', import.meta.url));

/** A handful of processes that start at once, or PostgreSQL: on a machine that does something else, too, that takes a while. */
export const END_DEADLINE_MS = 180_000;
export const SLOW = { timeout: END_DEADLINE_MS + 10_000 };

export interface Ended extends Result {
  /** Its temporary files go into a folder of this test: what is left there. */
  left: string[];
}

type Env = Record<string, string>;

/** Runs an example to its end. */
export async function example(
  name: string,
  args: readonly string[],
  env: Env = {},
): Promise<Ended> {
  const cwd = privateFolder();
  await using running = start(name, args, cwd, env);
  return { ...(await running.end('', END_DEADLINE_MS)), left: readdirSync(cwd) };
}

/** The same, interrupted when it has said this; waits until nothing of it runs any more. */
export async function interrupted(
  name: string,
  args: readonly string[],
  after: RegExp,
): Promise<Ended> {
  const cwd = privateFolder();
  await using running = start(name, args, cwd);
  await until(() => after.test(running.stdout), {
    what: String(after),
    deadlineMs: END_DEADLINE_MS,
  });
  running.signal('SIGINT');
  const result = await running.end('', END_DEADLINE_MS);
  await until(() => processesIn(cwd).length === 0, { what: 'the end of its processes' });
  return { ...result, left: readdirSync(cwd) };
}

/** It has ended as it should, everything that it claims was so, and these lines came in this order. */
export function expectStory(result: Ended, lines: readonly RegExp[]): void {
  const output = `${result.stdout}${result.stderr}`;
  expect(result, output).toMatchObject({ code: 0, stderr: '', left: [] });
  expect(output).not.toContain('✗');
  expect(output).toMatch(/Everything that was claimed was so\.\n$/);
  let rest = result.stdout;
  for (const line of lines) {
    const found = line.exec(rest);
    expect(found, `${line} is missing in, or in the wrong place of:\n${output}`).not.toBeNull();
    rest = rest.slice((found?.index ?? 0) + (found?.[0].length ?? 0));
  }
}

function start(name: string, args: readonly string[], cwd: string, env: Env = {}): Running {
  return startProgram(process.execPath, [START, name, ...args], {
    cwd,
    env: { TMPDIR: cwd, ...env },
  });
}

/** Processes whose temporary files go there. */
function processesIn(folder: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`TMPDIR=${folder}\0`);
    } catch {
      return false;
    }
  });
}
