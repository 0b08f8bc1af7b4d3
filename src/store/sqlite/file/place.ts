import {
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
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
  } catch (error) {
    const folder = dirname(absolute);
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const target = isMissing ? linkTarget(absolute) : null;
    if (target !== null) return realPath(resolve(folder, target));
    return existsSync(folder) ? join(realpathSync(folder), basename(absolute)) : absolute;
  }
}

/** Where a link to a file that does not exist yet leads; null for what is no link. */
function linkTarget(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
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

export interface Identity {
  readonly mark: string;
  readonly inode: string;
  readonly stats: Stats;
}

/** What tells a file from another one under the same name. Null for none. */
export function identityOf(path: string): Identity | null {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return null;
  return { mark: `${stats.dev}:${stats.ino}`, inode: String(stats.ino), stats };
}

/** What tells the log of a file (`-wal`, `-shm`) from another one under the same names. */
export function logMark(path: string): string {
  return `${identityOf(`${path}-wal`)?.mark} ${identityOf(`${path}-shm`)?.mark}`;
}

/** Whether the file has a log, complete. */
export function hasLog(path: string): boolean {
  return existsSync(`${path}-wal`) && existsSync(`${path}-shm`);
}

/**
 * How many names (hard links) the file has. The name under which `ensureFile` makes it does not count: its maker is about
 * to remove that name, or was killed before it could. The names are counted after that one is gone, because the maker may
 * remove it between any two calls here.
 */
export function nameCount(path: string, { mark, stats }: Identity): number {
  if (stats.nlink <= 1) return stats.nlink;
  const aside = asideOf(path);
  if (identityOf(aside)?.mark === mark) rmSync(aside, { force: true });
  const current = identityOf(path);
  // A file that was replaced meanwhile is found by its identity.
  return current?.mark === mark ? current.stats.nlink : 1;
}

/** Whether something is mounted on the file itself, and not on a folder above it. Linux only. */
export function isMountPoint(path: string): boolean {
  const [file, folder] = [mountOf(path), mountOf(dirname(path))];
  return file !== '' && folder !== '' && file !== folder;
}

/** Opens a file or folder as a place only. Closing it leaves SQLite's locks alone, which closing a file otherwise drops. */
const O_PATH = 0o10000000;

/** The number of the mount that a file or folder belongs to; '' where the system does not tell. */
function mountOf(path: string): string {
  if (process.platform !== 'linux') return '';
  let handle: number | null = null;
  try {
    handle = openSync(path, O_PATH);
    const facts = readFileSync(`/proc/self/fdinfo/${handle}`, 'utf8');
    return /^mnt_id:\s*(\d+)$/m.exec(facts)?.[1] ?? '';
  } catch {
    return '';
  } finally {
    if (handle !== null) closeSync(handle);
  }
}

/** The name under which a new file is made. */
function asideOf(path: string): string {
  return `${path}-making`;
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
  const aside = asideOf(path);
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
