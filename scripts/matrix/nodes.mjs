/** The versions of Node that are supported, and where they come from: the registry has them as packages, with nothing to build. */
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { runCommand } from '../release/command.mjs';
import { packageFor, thisPlatform } from './platform.mjs';

/** As CONTRIBUTING.md has it. The oldest is the one that `engines` names; every other is the latest of its line. */
export const SUPPORTED = ['20', '22', '24'];
const VERSION = /^\d+(\.\d+){0,2}$/;

/** What was asked for, `22,24`, as versions; an Error where it is none. */
export function chosenVersions(text) {
  if (text === undefined) return SUPPORTED;
  const versions = text.split(',').map((part) => part.trim().replace(/^v/, ''));
  const wrong = versions.find((version) => !VERSION.test(version));
  if (wrong === undefined) return versions;
  throw new Error(
    `'${wrong}' is no version of Node: --only takes some such as 22, 20.19.0 or 22,24`,
  );
}

/** The path of a Node of this version, from the cache where it is there already; `update` looks for a later one. */
export async function installNode(version, { cache, update }) {
  const name = packageFor(thisPlatform());
  const folder = join(cache, `node-${version}`);
  const path = join(folder, 'node_modules', name, 'bin/node');
  if (update) rmSync(folder, { recursive: true, force: true });
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true });
  // A project of its own: npm would take the nearest one above for it otherwise.
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  const args = ['install', '--no-save', '--no-audit', '--no-fund', '--ignore-scripts'];
  const ran = await runCommand('npm', [...args, `${name}@${version}`], { cwd: folder });
  if (ran.code === 0 && existsSync(path)) return path;
  rmSync(folder, { recursive: true, force: true });
  throw new Error(
    `Node ${version} could not be installed from the registry, as ${name}: ${ran.output.trim()}`,
  );
}

/** What the program at a path says its version is; an Error where it is no Node. */
export async function versionOf(path) {
  const { code, output } = await runCommand(path, ['--version']);
  const version = /^v(\d+\.\d+\.\d+\S*)$/m.exec(output)?.[1];
  if (code === 0 && version !== undefined) return version;
  throw new Error(
    `${path} is no Node that runs here: --version ended with ${code}: ${output.trim()}`,
  );
}

/** An environment in which `node`, `npm` and everything they start run on this Node. */
export function environmentOf(path) {
  const { NODE_OPTIONS: _, ...env } = process.env;
  const PATH = `${dirname(path)}${delimiter}${process.env.PATH ?? ''}`;
  return { ...env, PATH, NO_COLOR: '1', CI: 'true' };
}
