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
import { basename, dirname, join, relative, resolve } from 'node:path';

/** The default file. */
const FOLDER = '.holdfast';
const FILE = 'holdfast.db';
/** A process that takes longer than this to make the file is dead. */
const MAX_MAKING_MS = 5_000;

/** Where the file of a store is. */
export interface FileLocation {
  /** The absolute path that the user gave. It may lead to the file over links. */
  readonly given: string;
  /** The file's own path, without links. */
  readonly path: string;
  /** The store's name in errors and events. */
  readonly name: string;
}

export function locate(given: string): FileLocation {
  const path = realPath(given);
  return { given: resolve(given), path, name: `sqlite:${shown(path)}` };
}

/** Relative to the working folder for a file below it; else the full path. */
function shown(path: string): string {
  const below = relative(process.cwd(), path);
  return below.startsWith('..') || below === '' ? path : below;
}

/** Returns the default file of the nearest folder upwards that has one; else of this folder. */
export function defaultFile(from: string): string {
  for (let folder = resolve(from); ; folder = dirname(folder)) {
    const path = join(folder, FOLDER, FILE);
    if (existsSync(path)) return path;
    if (folder === dirname(folder)) return join(resolve(from), FOLDER, FILE);
  }
}

/** Follows links: SQLite keeps the log beside the file itself. */
function realPath(path: string): string {
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

/** Returns where a link leads, also to a file that does not exist yet; null if it is no link. */
function linkTarget(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

/** Makes the folder of the file, and returns its path. The default one is ignored by git. */
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

/** Tells a file from another one of the same name. Null if there is no file. */
export function identityOf(path: string): Identity | null {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return null;
  return { mark: `${stats.dev}:${stats.ino}`, inode: String(stats.ino), stats };
}

/** Tells the log of a file (`-wal`, `-shm`) from another one of the same name. */
export function logMark(path: string): string {
  return `${identityOf(`${path}-wal`)?.mark} ${identityOf(`${path}-shm`)?.mark}`;
}

/** Returns the size of the log; 0 if there is none. */
export function logBytes(path: string): number {
  return statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}

/** Whether the file has both parts of a log. */
export function hasLog(path: string): boolean {
  return existsSync(`${path}-wal`) && existsSync(`${path}-shm`);
}

/**
 * Returns how many names (hard links) the file has. The temporary name that `ensureFile` gives it
 * does not count: the process that makes the file is about to remove that name, or was killed
 * before it could. So that name is removed first, and then the names are counted.
 */
export function nameCount(path: string, { mark, stats }: Identity): number {
  if (stats.nlink <= 1) return stats.nlink;
  const temporary = temporaryName(path);
  if (identityOf(temporary)?.mark === mark) rmSync(temporary, { force: true });
  const current = identityOf(path);
  // If the file was replaced meanwhile, the caller finds out by its identity.
  return current?.mark === mark ? current.stats.nlink : 1;
}

/** Whether something is mounted on the file itself, and not on a folder above it. Linux only. */
export function isMountPoint(path: string): boolean {
  const [file, folder] = [mountOf(path), mountOf(dirname(path))];
  return file !== '' && folder !== '' && file !== folder;
}

/** Opens a path without its content. Closing it leaves SQLite's locks in place. */
const O_PATH = 0o10000000;

/** Returns the mount id of a file or folder; '' if the system has none. */
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

/** Returns the temporary name of a file that is being made. */
function temporaryName(path: string): string {
  return `${path}-making`;
}

/**
 * Makes the file, readable for this user only. Returns false while another process is making it.
 *
 * The file is made under a temporary name and then linked into place: a process that opens and
 * closes the database file itself would drop every lock that SQLite has on it. The log of an
 * earlier file of this name is removed first, or SQLite would read it as this file's. Only one
 * process at a time can make the temporary name.
 */
export function ensureFile(path: string): boolean {
  if (existsSync(path)) return true;
  const temporary = temporaryName(path);
  try {
    closeSync(openSync(temporary, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    const since = statSync(temporary, { throwIfNoEntry: false });
    // The modification time is of the file system's clock, so it is compared with that clock.
    if (since !== undefined && ageMs(temporary, since) > MAX_MAKING_MS)
      rmSync(temporary, { force: true });
    return false;
  }
  try {
    if (existsSync(path)) return true;
    for (const left of ['-wal', '-shm', '-journal']) rmSync(path + left, { force: true });
    linkSync(temporary, path);
    return true;
  } finally {
    rmSync(temporary, { force: true });
  }
}

function ageMs(path: string, { mtimeMs }: Stats): number {
  const probe = `${path}-${process.pid}`;
  writeFileSync(probe, '');
  const nowMs = statSync(probe).mtimeMs;
  rmSync(probe, { force: true });
  return nowMs - mtimeMs;
}
