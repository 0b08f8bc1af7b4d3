/** One process that imports something, and says how long that took. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const LOADER = fileURLToPath(new URL('../test/children/loaded-modules.mjs', import.meta.url));
const run = promisify(execFile);

/** The parts of this package that can be imported, as they are named there. */
export function subpaths() {
  const { exports } = createRequire(import.meta.url)('../package.json');
  const names = Object.keys(exports).filter((name) => name !== './package.json');
  return names.map((name) => name.replace('.', 'holdfast'));
}

/** Milliseconds until all of these have been imported, one after the other; by the clock, and of a processor. */
export async function timeImports(specifiers) {
  const imports = specifiers.map((specifier) => `await import('${specifier}');`).join(' ');
  const text = `
    const usedBefore = process.cpuUsage();
    const startMs = performance.now();
    ${imports}
    const ms = performance.now() - startMs;
    const { user, system } = process.cpuUsage(usedBefore);
    console.log(JSON.stringify({ ms, cpuMs: (user + system) / 1_000 }));`;
  const args = ['--input-type=module', '--eval', text];
  return JSON.parse((await run(process.execPath, args, { cwd: ROOT })).stdout);
}

/** The files that are loaded by importing it, Node's own not among them. */
export async function loadedBy(specifier) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-import-'));
  try {
    const list = join(folder, 'loaded');
    writeFileSync(list, '');
    const text = `await import('${specifier}');`;
    const args = ['--import', LOADER, '--input-type=module', '--eval', text];
    await run(process.execPath, args, { cwd: ROOT, env: { ...process.env, LOADED_MODULES: list } });
    const lines = readFileSync(list, 'utf8').split('\n');
    return [...new Set(lines.filter((line) => /^(file:|\/)/.test(line)))];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
