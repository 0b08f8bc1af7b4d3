import { statfsSync } from 'node:fs';
import type { Finding } from '../../port/examination.ts';

/** Where one host does not see another's locks and shared memory: leases there would have two owners. */
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
/** sshfs and S3 mounts, but also encrypted homes and the layers of rootless containers, which are local: no refusal. */
const FUSE = 0x65735546;

/** The type of file system a folder is on, as the kernel numbers them; 0 where the system does not tell. */
export function fileSystemType(folder: string): number {
  if (process.platform !== 'linux') return 0;
  try {
    // Signed on some systems: the numbers above are not.
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
      fact: `The file is on a network file system (${shared}), where SQLite can not lock it.`,
      advice: 'Put it on a local disk; for more than one host use Redis or Valkey (redis://…).',
    };
  if (type === FUSE)
    return {
      level: 'warn',
      subject,
      fact: 'The file is on a FUSE file system: local or remote, nobody can tell.',
      advice: 'If it is remote (sshfs, an S3 mount), put the file on a local disk, or use Redis.',
    };
  const fact = type === 0 ? 'The type of file system is not known.' : 'A local file system.';
  return { level: 'ok', subject, fact };
}
