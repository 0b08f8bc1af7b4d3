// Builds src into dist and testing into dist/testing: JavaScript, declarations, and the Lua and SQL files beside the code that
// reads them. Builds the dashboard into dist/dashboard. Bundles all of it into dist/lib, which is what is published.
// Says nothing on success and complains on stderr only, so that its caller owns stdout.
// With --if-stale: only if dist is missing, or older than what it is built from.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle } from './bundle.mjs';
import { isStale } from './stale.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const src = join(root, 'src');
const dist = join(root, 'dist');
const staging = join(root, `.dist-${process.pid}`);
const tsc = join(dirname(fileURLToPath(import.meta.resolve('typescript/package.json'))), 'bin/tsc');
const vite = join(dirname(fileURLToPath(import.meta.resolve('vite/package.json'))), 'bin/vite.js');

if (process.argv.includes('--if-stale') && !isStale(root)) process.exit();

// Built aside and then put in place whole: no file of an earlier build survives, a failed build leaves the last good
// one alone, and a process that starts meanwhile never sees half of one.
try {
  const startedAt = new Date();
  if (compile() && buildPage()) {
    raiseSource();
    copySources();
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    await bundle({ from: staging, to: join(staging, 'lib'), version });
    // npx links to it once, and does not look at it again after the next build.
    chmodSync(join(staging, 'cli/bin.js'), 0o755);
    rmSync(dist, { recursive: true, force: true });
    renameSync(staging, dist);
    // scripts/start.mjs compares this with src: what changes while the build runs counts as newer.
    utimesSync(dist, startedAt, startedAt);
  } else {
    process.exitCode = 1;
  }
} finally {
  rmSync(staging, { recursive: true, force: true });
}

function compile() {
  const args = [tsc, '--project', join(root, 'tsconfig.build.json'), '--outDir', staging];
  return spawnSync(process.execPath, args, { stdio: ['ignore', 2, 2] }).status === 0;
}

/** The compiler keeps src and testing apart. In the package, what is in src lies at the top, and testing beside it. */
function raiseSource() {
  const compiled = join(staging, 'src');
  for (const name of readdirSync(compiled)) renameSync(join(compiled, name), join(staging, name));
  rmSync(compiled, { recursive: true });
  const testing = join(staging, 'testing');
  for (const path of readdirSync(testing, { recursive: true, encoding: 'utf8' })) {
    if (!/\.(js|d\.ts)$/.test(path)) continue;
    const text = readFileSync(join(testing, path), 'utf8');
    writeFileSync(join(testing, path), text.replace(/((?:\.\.\/)+)src\//g, '$1'));
  }
}

function buildPage() {
  const outDir = ['--outDir', join(staging, 'dashboard'), '--emptyOutDir'];
  const args = [vite, 'build', join(root, 'dashboard'), ...outDir, '--logLevel', 'warn'];
  return spawnSync(process.execPath, args, { stdio: ['ignore', 2, 2] }).status === 0;
}

function copySources() {
  for (const path of readdirSync(src, { recursive: true, encoding: 'utf8' })) {
    if (!/\.(lua|sql)$/.test(path)) continue;
    mkdirSync(dirname(join(staging, path)), { recursive: true });
    cpSync(join(src, path), join(staging, path));
  }
}
