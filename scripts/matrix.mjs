// Does it work on every Node that is supported? `npm run matrix -- --help` has the rest.
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { CHECKS, chosenChecks, countOf } from './matrix/checks.mjs';
import { GUESTS, runGuest } from './matrix/guests.mjs';
import {
  chosenVersions,
  environmentOf,
  installNode,
  SUPPORTED,
  versionOf,
} from './matrix/nodes.mjs';
import { lastLines, runCommand, seconds, table } from './release/command.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const cache = join(root, 'node_modules/.cache/holdfast-matrix');
/** The package is packed once. */
let packing;

const HELP = `Usage: npm run matrix -- [--only VERSIONS] [--node PATH]… [--check NAMES] [--update] [--no-build] [--json]

Runs what has to work on every Node that is supported, on each of them, one after the other:
${[...CHECKS, ...GUESTS].map(({ name, about }) => `  ${name.padEnd(9)}${about}`).join('\n')}

  --only VERSIONS  default ${SUPPORTED.join(',')}; others will do, too: 20.19.0
  --node PATH      a Node that you have, instead of those that are installed from the registry; may be given more than once
  --check NAMES    only these checks, with commas between them
  --update         look for a later Node of the versions asked for; those installed once are used again otherwise
  --no-build       dist is as it should be
  --json           nothing but [{ node, check, ok, tests, ms, log }] on stdout

Nodes are installed under node_modules/.cache, where the logs are, too. Takes some minutes.
Exit code: 0 if everything has passed on every Node; 1 if something has not, or could not be run; 2 for wrong arguments.`;

const flags = readFlags();
if (flags.help) console.log(HELP);
else process.exitCode = await main();

function readFlags() {
  const boolean = { type: 'boolean', default: false };
  const options = {
    only: { type: 'string' },
    node: { type: 'string', multiple: true, default: [] },
    check: { type: 'string' },
    update: boolean,
    json: boolean,
    help: boolean,
    build: { type: 'boolean', default: true },
  };
  try {
    const { values } = parseArgs({ options, allowNegative: true });
    if (values.only !== undefined && values.node.length > 0)
      throw new Error('--only says which to install, --node which are there: give one of them');
    return { ...values, versions: chosenVersions(values.only), checks: chosenChecks(values.check) };
  } catch (error) {
    console.error(`${error.message}\n\n${HELP}`);
    process.exit(2);
  }
}

async function main() {
  if (flags.build && !(await isBuilt())) return 1;
  const wanted = flags.node.length > 0 ? flags.node : flags.versions;
  const rows = [];
  const isOnNode = (check) => check.isOnNode ?? true;
  const onNode = flags.checks.filter(isOnNode);
  if (onNode.length > 0) for (const name of wanted) rows.push(...(await checkOn(name, onNode)));
  for (const guest of flags.checks.filter((check) => !isOnNode(check)))
    rows.push(await visit(guest, { path: process.execPath, version: '-' }));
  const hasPassed = rows.every(({ ok }) => ok);
  console.log(flags.json ? JSON.stringify(rows, null, 2) : `\n${asTable(rows)}`);
  return hasPassed ? 0 : 1;
}

async function isBuilt() {
  say('building');
  const { code, output } = await runCommand(process.execPath, [join(root, 'scripts/build.mjs')]);
  if (code !== 0) say(`the build has failed:\n${lastLines(output)}`);
  return code === 0;
}

/** All checks on one Node. A Node that is unavailable has failed them all. */
async function checkOn(name, checks) {
  try {
    const path = flags.node.length > 0 ? resolve(name) : await installed(name);
    const version = await versionOf(path);
    const rows = [];
    for (const check of checks) {
      const run = GUESTS.includes(check) ? visit : runCheck;
      rows.push(await run(check, { path, version }));
    }
    return rows;
  } catch (error) {
    say(`Node ${name}: ${error.message}`);
    return checks.map((check) => ({
      node: name,
      check: check.name,
      ok: false,
      tests: error.message,
      ms: 0,
      log: null,
    }));
  }
}

function installed(version) {
  say(`Node ${version}: looking for it`);
  return installNode(version, { cache, update: flags.update });
}

async function runCheck({ name, args }, { path, version }) {
  say(`Node ${version}: ${name} …`);
  const log = join(cache, 'logs', `${version}-${name}.log`);
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const env = environmentOf(path);
  const ran = await runCommand(path, [vitest, 'run', ...args], { cwd: root, env, log });
  const tests = countOf(ran.output);
  // A runner that found no tests has shown nothing.
  const ok = ran.code === 0 && tests !== null;
  say(
    `Node ${version}: ${name} ${ok ? 'ok' : 'FAILED'}, ${tests ?? 'no tests'}, ${seconds(ran.ms)}`,
  );
  if (!ok) say(`${lastLines(ran.output)}\n    … all of it: ${log}`);
  return { node: version, check: name, ok, tests: tests ?? 'none', ms: Math.round(ran.ms), log };
}

async function visit(guest, { path, version }) {
  const { name } = guest;
  say(`Node ${version}: ${name} …`);
  const options = { cache, node: path, tarball: await packed() };
  const { ok, tests, ms, log, output } = await runGuest(guest, options);
  say(`Node ${version}: ${name} ${ok ? 'ok' : 'FAILED'}, ${tests}, ${seconds(ms)}`);
  if (!ok) say(`${lastLines(output)}\n    … all of it: ${log}`);
  return { node: version, check: name, ok, tests, ms: Math.round(ms), log };
}

/** The package as it would be published. */
function packed() {
  packing ??= pack();
  return packing;
}

async function pack() {
  mkdirSync(cache, { recursive: true });
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', cache];
  const { code, stdout, output } = await runCommand('npm', args, { cwd: root });
  if (code !== 0) throw new Error(`npm pack ended with ${code}:\n${lastLines(output)}`);
  return join(cache, JSON.parse(stdout)[0].filename);
}

function asTable(rows) {
  const lines = rows.map(({ node, check, ok, tests, ms }) => {
    return [node, check, ok ? 'ok' : 'FAILED', seconds(ms), tests];
  });
  return table([['NODE', 'CHECK', 'RESULT', 'TOOK', 'TESTS'], ...lines]);
}

function say(line) {
  console.error(line);
}
