/** What each step does. A check gives what it found, in a few words, or throws a Failure that says what to do. */
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lastLines, runCommand } from './command.mjs';
import {
  auditVerdict,
  leanProblem,
  lockfileProblem,
  scriptProblem,
  versionProblem,
} from './facts.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const cache = join(root, 'node_modules/.cache/holdfast-release');
const read = (path) => readFileSync(join(root, path), 'utf8');
const readJson = (path) => JSON.parse(read(path));

export class Failure extends Error {}

/** Each is given `{ isOffline, shared }`; shared is what an earlier step has left for a later one. */
export const CHECKS = {
  tree,
  version,
  lockfile,
  check: () => npmRun('check'),
  reference,
  docs: () => npmRun('docs:build'),
  test: async () => {
    await npmRun('test');
    await npmRun('test:all');
  },
  requirements,
  matrix: () => npmRun('matrix'),
  pack,
  audit,
  lean,
  install,
};

async function tree() {
  const { code, output } = await runCommand('git', ['status', '--porcelain'], { cwd: root });
  if (code !== 0) throw new Failure(`git status failed:\n${lastLines(output)}`);
  if (output.trim() !== '')
    throw new Failure(`commit this, or take it back:\n${lastLines(output)}`);
  const { output: commit } = await runCommand('git', ['rev-parse', '--short', 'HEAD'], {
    cwd: root,
  });
  return `at ${commit.trim()}`;
}

async function version() {
  const { version: named } = readJson('package.json');
  const { version: lockedVersion } = readJson('package-lock.json');
  const problem = versionProblem({
    version: named,
    lockedVersion,
    changelog: read('CHANGELOG.md'),
  });
  if (problem !== null) throw new Failure(problem);
  return named;
}

async function lockfile() {
  const problem = lockfileProblem(read('package-lock.json'));
  if (problem !== null) throw new Failure(problem);
  return 'no host';
}

/** A script of package.json, to its end. */
async function npmRun(name) {
  const problem = scriptProblem(name, readJson('package.json').scripts, (file) =>
    existsSync(join(root, file)),
  );
  if (problem !== null) throw new Failure(problem);
  const log = join(cache, 'logs', `${name.replace(':', '-')}.log`);
  const ran = await runCommand('npm', ['run', name], { cwd: root, log });
  if (ran.code !== 0)
    throw new Failure(
      `npm run ${name} ended with ${ran.code}:\n${lastLines(ran.output)}\n    … all of it: ${log}`,
    );
  return `npm run ${name}`;
}

/** What is generated, and committed, is what would be generated now. */
async function reference() {
  const changes = async () =>
    (await runCommand('git', ['status', '--porcelain', 'docs'], { cwd: root })).output;
  const before = await changes();
  await npmRun('docs:reference');
  const after = await changes();
  if (after !== before)
    throw new Failure(
      `npm run docs:reference has changed pages: look at them, and commit them\n${lastLines(after)}`,
    );
  return 'as committed';
}

async function requirements() {
  if (readJson('package.json').scripts.requirements === undefined)
    return 'there is no list: not looked at';
  return npmRun('requirements');
}

/** The tarball, kept: what was checked is what is published. */
async function pack({ shared }) {
  await npmRun('build');
  const folder = join(cache, 'tarball');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const ran = await runCommand(
    'npm',
    ['pack', '--ignore-scripts', '--json', '--pack-destination', folder],
    { cwd: root },
  );
  const [about] = ran.code === 0 ? JSON.parse(ran.stdout) : [];
  if (about === undefined)
    throw new Failure(`npm pack ended with ${ran.code}:\n${lastLines(ran.output)}`);
  const tarball = join(folder, about.filename);
  const attw = import.meta.resolve('@arethetypeswrong/cli/package.json');
  await tool(new URL('cli.js', import.meta.resolve('publint')), ['--strict', tarball]);
  // There is no CommonJS in it; from there it is required as it is, which the tests of the package show.
  await tool(new URL('dist/index.js', attw), ['--profile', 'esm-only', '--no-emoji', tarball]);
  shared.tarball = tarball;
  const kilobytes = Math.round(about.size / 1_000);
  return `${relative(root, tarball)}, ${about.files.length} files, ${kilobytes} kB`;
}

/** A program that looks at the tarball. */
async function tool(program, args) {
  const ran = await runCommand(process.execPath, [fileURLToPath(program), ...args], { cwd: root });
  if (ran.code !== 0)
    throw new Failure(
      `${fileURLToPath(program)} ended with ${ran.code}:\n${lastLines(ran.output)}`,
    );
}

async function audit({ isOffline }) {
  const ran = await runCommand('npm', ['audit', '--omit=dev', '--json'], { cwd: root });
  const { verdict, detail } = auditVerdict(ran.stdout);
  if (verdict === 'clean') return detail;
  if (verdict === 'findings')
    throw new Failure(
      `${detail}. npm audit --omit=dev has the details; npm update or an override helps`,
    );
  const unasked = `the registry could not be asked whether anything is known: ${detail}`;
  if (!isOffline)
    throw new Failure(
      `${unasked}. Ask again, or say with --offline that you release without an answer`,
    );
  return `NOT ASKED, for --offline was given: ${unasked}`;
}

/** Installed as docs/sqlite.md says for those who want nothing native, it stays small. */
async function lean({ shared }) {
  if (shared.tarball === undefined) await pack({ shared });
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-lean-'));
  try {
    writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
    const quiet = ['--prefer-offline', '--no-audit', '--no-fund'];
    const args = ['install', '--omit=optional', ...quiet, shared.tarball];
    const ran = await runCommand('npm', args, { cwd: folder });
    if (ran.code !== 0)
      throw new Failure(`npm ${args.join(' ')} ended with ${ran.code}:\n${lastLines(ran.output)}`);
    const files = filesBelow(join(folder, 'node_modules'));
    const { packages } = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'));
    const installed = Object.entries(packages).filter(
      ([path, { optional }]) => path !== '' && !optional,
    );
    const problem = leanProblem({ packages: installed.length, files });
    if (problem !== null) throw new Failure(problem);
    const bytes = files.reduce((sum, { size }) => sum + size, 0);
    return `${installed.length} packages, ${(bytes / 1e6).toFixed(1)} MB, nothing native`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function filesBelow(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => {
      const path = join(parentPath, name);
      return { path: relative(folder, path), size: statSync(path).size };
    });
}

/** As a user installs it: what it depends on comes from the registry, or from npm's cache where that has it. */
async function install({ shared }) {
  if (shared.tarball === undefined) await pack({ shared });
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-release-'));
  try {
    const file = join(folder, 'holdfast.tgz');
    cpSync(shared.tarball, file);
    const run = async (command, ...args) => {
      const ran = await runCommand(command, args, { cwd: folder });
      if (ran.code === 0) return ran.output;
      const line = [command, ...args].join(' ');
      throw new Failure(`${line} ended with ${ran.code}:\n${lastLines(ran.output)}`);
    };
    await run('npm', 'init', '--yes');
    await run('npm', 'install', '--prefer-offline', '--no-audit', '--no-fund', './holdfast.tgz');
    const said = (await run('npx', '--no', '--', 'holdfast', '--version'))
      .trim()
      .split('\n')
      .at(-1);
    const { version: named } = readJson('package.json');
    if (said !== named)
      throw new Failure(`npx holdfast --version says ${said}, package.json ${named}`);
    // Holdfast does not make a store just to look at it.
    await run('npx', '--no', '--', 'holdfast', 'run', 'hello', '--', 'true');
    await run('npx', '--no', '--', 'holdfast', 'doctor');
    return `${said}, and its doctor is content`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
