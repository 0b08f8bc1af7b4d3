/** A copy of the sources and tests, in which one change at a time is made. */
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Inside the project, where the packages are found. */
const COPY = join(ROOT, `node_modules/.cache/holdfast-reverts-${process.pid}`);
const COPIED = [
  'src',
  'test',
  'testing',
  'sim',
  'chaos',
  'package.json',
  'tsconfig.json',
  'vitest.config.ts',
];
/** Tests of a broken program may hang. */
const MAX_TESTS_MS = 240_000;

export class PatchedTree {
  constructor() {
    mkdirSync(COPY, { recursive: true });
    for (const name of COPIED) cpSync(join(ROOT, name), join(COPY, name), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(COPY, 'node_modules'));
  }

  /** Runs the tests with the change: `{ failed, took, output }`. Throws if the change does not fit. */
  async run({ file, find, replace, tests }) {
    const path = join(COPY, file);
    const before = readFileSync(path, 'utf8');
    const parts = before.split(find);
    if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} of: ${find}`);
    writeFileSync(path, parts.join(replace));
    try {
      return await runTests(tests);
    } finally {
      writeFileSync(path, before);
    }
  }

  remove() {
    rmSync(COPY, { recursive: true, force: true });
  }
}

/** Runs unit tests in the copy. */
function runTests(tests) {
  const args = ['vitest', 'run', '--project', 'unit', '--reporter', 'json', ...tests];
  const startMs = performance.now();
  const child = spawn('npx', args, {
    cwd: COPY,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  child.stderr.resume();
  const timer = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), MAX_TESTS_MS);
  return new Promise((resolve) => {
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      const tookMs = performance.now() - startMs;
      resolve({ isRed: code !== 0, failed: failedIn(output, signal), tookMs });
    });
  });
}

/** The full titles of the tests that failed. */
function failedIn(output, signal) {
  if (signal !== null) return ['the tests did not end'];
  const json = output.slice(output.indexOf('{"'));
  const { testResults } = JSON.parse(json);
  return testResults.flatMap(({ assertionResults, message, name }) => {
    const failed = assertionResults.filter(({ status }) => status === 'failed');
    const isBroken = failed.length === 0 && message;
    return isBroken
      ? [`${name}: ${message.split('\n', 1)[0]}`]
      : failed.map(({ fullName }) => fullName);
  });
}
