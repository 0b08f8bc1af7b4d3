/**
 * Programs that load the package in a way of their own: Jest and Bun. Each is installed from the registry into a project of
 * its own, with the package as it was packed.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from '../release/command.mjs';
import { environmentOf } from './nodes.mjs';

const JEST_TEST = `
test('a CommonJS test of Jest holds a lease', async () => {
  const { open } = await import('holdfast');
  const holdfast = await open('memory:');
  expect((await holdfast.acquire('a')).ok).toBe(true);
  await holdfast.close();
});
`;

const BUN_PROGRAM = `
import { open } from 'holdfast';
const Redlock = require('holdfast/redlock');
for (const store of ['memory:', 'sqlite:bun.db']) {
  const holdfast = await open(store);
  await holdfast.withLease('a', async () => console.log('held', store));
  await holdfast.close();
}
const redlock = new Redlock(['memory:']);
await (await redlock.acquire(['b'], 5_000)).release();
await redlock.quit();
console.log('released');
`;

/** `isOnNode`: it runs on Node, and so on each that is supported. `passed`: what it says then. */
export const GUESTS = [
  {
    name: 'jest',
    about: 'a CommonJS test of Jest, with the flag that docs/typescript.md names',
    isOnNode: true,
    packages: ['jest@30'],
    file: ['holdfast.test.js', JEST_TEST],
    env: { NODE_OPTIONS: '--experimental-vm-modules' },
    program: 'node_modules/jest/bin/jest.js',
    args: ['--ci'],
    passed: /^Tests:\s+1 passed, 1 total$/m,
  },
  {
    name: 'bun',
    about: 'Bun: leases in memory and in a file, and the drop-in for redlock',
    isOnNode: false,
    packages: ['bun@1'],
    file: ['smoke.mjs', BUN_PROGRAM],
    env: {},
    program: 'node_modules/@oven/bun-linux-x64/bin/bun',
    args: ['smoke.mjs'],
    passed: /^held memory:\nheld sqlite:bun\.db\nreleased$/m,
  },
];

/** Runs one, and says whether it has passed: `{ ok, tests, ms, log, output }`. `node` is the path of a Node. */
export async function runGuest(guest, { cache, tarball, node }) {
  // Not below node_modules, where Jest looks for no tests.
  const folder = mkdtempSync(join(tmpdir(), `holdfast-${guest.name}-`));
  const log = join(cache, 'logs', `guest-${guest.name}.log`);
  try {
    return { log, ...(await visitIn(folder, guest, { tarball, node, log })) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function visitIn(folder, guest, { tarball, node, log }) {
  const { name, packages, file, program, args } = guest;
  const failed = ({ output, ms }) => ({ ok: false, tests: 'none', ms, output });
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  writeFileSync(join(folder, file[0]), file[1]);
  const quiet = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline'];
  const install = ['install', '--no-save', ...quiet, ...packages, tarball];
  const installed = await runCommand('npm', install, { cwd: folder, log });
  if (installed.code !== 0) return failed(installed);
  if (!existsSync(join(folder, program)))
    return failed({ output: `${name} is not in the registry for this platform`, ms: 0 });
  const env = { ...environmentOf(node), ...guest.env };
  const command = guest.isOnNode ? [node, [program, ...args]] : [join(folder, program), args];
  const ran = await runCommand(...command, { cwd: folder, env, log });
  const ok = ran.code === 0 && guest.passed.test(ran.output);
  return { ok, tests: ok ? '1 passed' : 'none', ms: ran.ms, output: ran.output };
}
