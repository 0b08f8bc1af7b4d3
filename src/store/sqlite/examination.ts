import type { Finding } from '../port/examination.ts';
import { STORE_FORMAT } from '../port/store.ts';
import { judgeFileSystem } from './file/file-system.ts';

/** A longer log means that a stopped reader keeps it from being written back. */
const LONG_LOG_BYTES = 64 * 2 ** 20;

export interface FileFacts {
  readonly version: string;
  readonly journalMode: string;
  readonly fileBytes: number;
  readonly logBytes: number;
  /** The permission bits of the file, and of its folder. */
  readonly mode: number;
  readonly folderMode: number;
  readonly bootId: string;
  readonly fileSystem: number;
}

/** Judges the facts: whether leases are safe on this file. */
export function judge(facts: FileFacts): Finding[] {
  return [
    { level: 'ok', subject: 'version', fact: `SQLite ${facts.version}.` },
    { level: 'ok', subject: 'format', fact: `Format ${STORE_FORMAT}.` },
    { level: 'ok', subject: 'topology', fact: 'One file, for the processes of one host.' },
    judgeFileSystem(facts.fileSystem),
    log(facts),
    rights(facts),
    clock(facts),
  ];
}

function log({ journalMode, fileBytes, logBytes }: FileFacts): Finding {
  const fact = `Journal mode ${journalMode}; ${kilobytes(fileBytes)} of file, ${kilobytes(logBytes)} of log.`;
  if (logBytes <= LONG_LOG_BYTES) return { level: 'ok', subject: 'persistence', fact };
  const advice =
    'A stopped process keeps the log from being written back. Let it continue, or end it.';
  return { level: 'warn', subject: 'persistence', fact, advice };
}

function rights({ mode, folderMode }: FileFacts): Finding {
  const fact = `The file's mode is ${shown(mode)}, its folder's ${shown(folderMode)}.`;
  const advice = process.platform === 'win32' ? null : rightsAdvice(mode, folderMode);
  if (advice === null) return { level: 'ok', subject: 'rights', fact };
  return { level: 'warn', subject: 'rights', fact, advice };
}

/** Null if only the user and the group may write. The sticky bit protects the files of a folder. */
function rightsAdvice(mode: number, folderMode: number): string | null {
  if ((mode & 0o002) !== 0)
    return 'Every user of this host may write the file, and so take or free any lease: chmod 600, or 660 for a group.';
  if ((folderMode & 0o1002) === 0o002)
    return 'Every user of this host may replace the file, and so take or free any lease: chmod 700 for its folder, or 770 for a group.';
  return null;
}

function shown(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, '0');
}

function clock({ bootId }: FileFacts): Finding {
  if (bootId !== '')
    return { level: 'ok', subject: 'clock', fact: `The host's monotonic clock, boot ${bootId}.` };
  return {
    level: 'ok',
    subject: 'clock',
    fact: "The host's monotonic clock. The host has no boot id, so a restart shows by its clock alone.",
  };
}

function kilobytes(bytes: number): string {
  return `${Math.ceil(bytes / 1_024)} KB`;
}
