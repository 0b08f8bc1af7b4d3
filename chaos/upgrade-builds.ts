/** Finds earlier commits of this repository by their stored format, and builds them beside this one. */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { STORE_FORMAT } from '../src/store/port/store.ts';
import { SCHEMA_VERSION } from '../src/store/postgres/installation.ts';
import type { UpgradeStore } from './upgrade-grounds.ts';

export interface Build {
  readonly commit: string;
  readonly format: number;
  /** What a child imports. */
  readonly entry: string;
}

export interface EarlierCommits {
  /** The first commit of the present format. */
  readonly oldest: string;
  /** The last one before it. */
  readonly before: string;
}

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Below node_modules, so that an earlier build finds the packages of this one. */
const CACHE = join(ROOT, 'node_modules/.cache/holdfast-upgrade');
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');
const OF_FILES = {
  file: 'src/store/port/store.ts',
  constant: 'STORE_FORMAT',
  present: STORE_FORMAT,
};
/** Where the stored format of each store is declared. */
const DECLARED = {
  sqlite: OF_FILES,
  redis: OF_FILES,
  postgres: {
    file: 'src/store/postgres/installation.ts',
    constant: 'SCHEMA_VERSION',
    present: SCHEMA_VERSION,
  },
};
const MAX_OUTPUT_BYTES = 512 * 2 ** 20;

export function currentBuild(store: UpgradeStore): Build {
  const format = DECLARED[store].present;
  return { commit: 'this build', format, entry: join(ROOT, 'dist/index.js') };
}

/** Null where there is no history: an unpacked archive, or a shallow clone. */
export function earlierCommits(store: UpgradeStore): EarlierCommits | null {
  const inside = spawnSync('git', ['rev-parse', '--is-shallow-repository'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  if (inside.status !== 0 || inside.stdout.trim() !== 'false') return null;
  const { file, constant, present } = DECLARED[store];
  const changes = git('log', '--format=%H', `-G${constant} = `, '--', file).split('\n');
  for (const commit of changes.filter(Boolean)) {
    const before = git('rev-parse', `${commit}^`).trim();
    if (formatAt(commit, store) === present && formatAt(before, store) !== present)
      return { oldest: commit, before };
  }
  return null;
}

/** The stored format of a commit; 0 if it declares none. */
export function formatAt(commit: string, store: UpgradeStore): number {
  const { file, constant } = DECLARED[store];
  const { stdout } = spawnSync('git', ['show', `${commit}:${file}`], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  const declared = new RegExp(`^export const ${constant} = (\\d+);$`, 'm');
  return Number(declared.exec(stdout)?.[1] ?? 0);
}

/** Builds a commit, unless that is done. */
export function buildCommit(commit: string, store: UpgradeStore): Build {
  const short = git('rev-parse', '--short', commit).trim();
  const folder = join(CACHE, short);
  const build = {
    commit: short,
    format: formatAt(commit, store),
    entry: join(folder, 'dist/index.js'),
  };
  if (existsSync(build.entry)) return build;
  const staging = `${folder}-${process.pid}`;
  rmSync(staging, { recursive: true, force: true });
  mkdirSync(staging, { recursive: true });
  try {
    const archive = execFileSync('git', ['archive', commit], {
      cwd: ROOT,
      maxBuffer: MAX_OUTPUT_BYTES,
    });
    execFileSync('tar', ['x', '-C', staging], { input: archive });
    compile(staging);
    renameSync(staging, folder);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
  return build;
}

/** The library alone: no page and no bundle, of which the packages may have changed since. */
function compile(folder: string): void {
  const out = join(folder, 'out');
  const args = [TSC, '--project', join(folder, 'tsconfig.build.json'), '--outDir', out];
  const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  // Types of packages that are gone do not keep it from running.
  if (!existsSync(join(out, 'src/index.js'))) throw new Error(`${folder} is not built: ${stdout}`);
  renameSync(join(out, 'src'), join(folder, 'dist'));
  const sources = readdirSync(join(folder, 'src'), { recursive: true, encoding: 'utf8' });
  for (const path of sources.filter((one) => /\.(lua|sql)$/.test(one))) {
    mkdirSync(dirname(join(folder, 'dist', path)), { recursive: true });
    cpSync(join(folder, 'src', path), join(folder, 'dist', path));
  }
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' });
}
