import {
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  realpathSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

/** Where the file is when nobody says where. */
const FOLDER = '.holdfast';
const FILE = 'holdfast.db';
/** Who makes the file and takes longer than this has died over it. */
const MAKING_MS = 5_000;

/** The file of the nearest folder upwards that has one; else the one to be made in this folder. */
export function defaultFile(from: string): string {
  for (let folder = resolve(from); ; folder = dirname(folder)) {
    const path = join(folder, FOLDER, FILE);
    if (existsSync(path)) return path;
    if (folder === dirname(folder)) return join(resolve(from), FOLDER, FILE);
  }
}

/** The file's own path, where the one given leads over links: SQLite keeps what belongs to it beside the file itself. */
export function realPath(path: string): string {
  const absolute = resolve(path);
  try {
    return realpathSync(absolute);
  } catch {
    const folder = dirname(absolute);
    return existsSync(folder) ? join(realpathSync(folder), basename(absolute)) : absolute;
  }
}

/** Sees to it that there is a folder for the file, and gives its path. The default one stays out of version control. */
export function ensureFolder(path: string): string {
  const folder = dirname(path);
  if (existsSync(folder)) return folder;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (basename(folder) === FOLDER) writeFileSync(join(folder, '.gitignore'), '*\n');
  return folder;
}

/** What tells a file from another one under the same name. Null for none. */
export function identityOf(path: string): { mark: string; inode: string; stats: Stats } | null {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return null;
  return { mark: `${stats.dev}:${stats.ino}`, inode: String(stats.ino), stats };
}

/**
 * Sees to it that there is a file, readable for this user only. Says false while another process is making it.
 *
 * Made aside and then linked into place, because a process that opens the database file by itself and closes it again
 * drops every lock SQLite has on it. What an earlier file of this name has left beside it is removed first: its log
 * would be taken for this one's. Whoever makes the file aside is the only one to do so.
 */
export function ensureFile(path: string): boolean {
  if (existsSync(path)) return true;
  const aside = `${path}-making`;
  try {
    closeSync(openSync(aside, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    const since = statSync(aside, { throwIfNoEntry: false });
    // The file system's own clock made this time; so it is compared with what the same clock says now.
    if (since !== undefined && ageMs(aside, since) > MAKING_MS) rmSync(aside, { force: true });
    return false;
  }
  try {
    if (existsSync(path)) return true;
    for (const left of ['-wal', '-shm', '-journal']) rmSync(path + left, { force: true });
    linkSync(aside, path);
    return true;
  } finally {
    rmSync(aside, { force: true });
  }
}

function ageMs(path: string, { mtimeMs }: Stats): number {
  const probe = `${path}-${process.pid}`;
  writeFileSync(probe, '');
  const nowMs = statSync(probe).mtimeMs;
  rmSync(probe, { force: true });
  return nowMs - mtimeMs;
}
