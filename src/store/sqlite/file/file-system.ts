import { statfsSync } from 'node:fs';
import type { Finding } from '../../port/examination.ts';

/** Network file systems hide the locks of other hosts: a lease could have two holders. */
const SHARED = new Map([
  [0x6969, 'NFS'],
  [0x5346414f, 'AFS'],
  [0x6b414653, 'AFS'],
  [0xff534d42, 'SMB'],
  [0xfe534d42, 'SMB'],
  [0x517b, 'SMB'],
  [0x01021997, '9p'],
  [0x00c36400, 'Ceph'],
  [0x0bd00bd0, 'Lustre'],
  [0x47504653, 'GPFS'],
  [0x564c, 'NCP'],
  [0x73757245, 'Coda'],
  [0x20030528, 'OrangeFS'],
  [0x786f4256, 'VirtualBox'],
  [0x7461636f, 'OCFS2'],
  [0x01161970, 'GFS2'],
]);
/** Remote (sshfs, S3) or local (encrypted homes, rootless containers), so it is not refused. */
const FUSE = 0x65735546;

/** Returns the kernel's number for the file system of a folder; 0 if it is unknown. */
export function fileSystemType(folder: string): number {
  if (process.platform !== 'linux') return 0;
  try {
    // Some systems return a signed number. The numbers above are unsigned.
    return statfsSync(folder).type >>> 0;
  } catch {
    return 0;
  }
}

export function judgeFileSystem(type: number): Finding {
  const subject = 'file system';
  const shared = SHARED.get(type);
  if (shared !== undefined)
    return {
      level: 'refuse',
      subject,
      fact: `The file is on a network file system (${shared}), where SQLite cannot lock it.`,
      advice: 'Put it on a local disk; for more than one host use Redis or Valkey (redis://…).',
    };
  if (type === FUSE)
    return {
      level: 'warn',
      subject,
      fact: 'The file is on a FUSE file system, which may be local or remote.',
      advice: 'If it is remote (sshfs, an S3 mount), put the file on a local disk, or use Redis.',
    };
  const fact = type === 0 ? 'The type of file system is not known.' : 'A local file system.';
  return { level: 'ok', subject, fact };
}
