import { execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** Facts about the machine. A test passes another one. */
export interface Host {
  /**
   * Changes with every start of the machine; '' if the system has none. Then a clock before the
   * last time in the file means another start, since monotonic time begins again with each. If the
   * clock is already past that time, every earlier lease has expired by it, too.
   */
  readonly bootId: string;
  /** How far this process's monotonic clock is ahead of the host's; not 0 in a time namespace. */
  readonly clockAheadMs: number;
  /** Identifies this process on the machine. */
  readonly process: string;
  /** Whether a process has certainly ended. */
  isGone(process: string): boolean;
}

/** Returns the facts of this machine, read once: they do not change while the process runs. */
export function systemHost(): Host {
  if (known === undefined) {
    const space = processSpace();
    const isGone = (other: string) => other.startsWith(`${space}:`) && isNoProcess(other);
    known = {
      bootId: readBootId(),
      clockAheadMs: readClockAheadMs(),
      process: `${space}:${process.pid}`,
      isGone,
    };
  }
  return known;
}

let known: Host | undefined;

function readBootId(): string {
  try {
    if (process.platform === 'linux')
      return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    if (process.platform === 'darwin')
      return execFileSync('/usr/sbin/sysctl', ['-n', 'kern.bootsessionuuid'], {
        encoding: 'utf8',
        timeout: 1_000,
      }).trim();
  } catch {
    // Some sandboxes hide the boot id. The clock shows a restart then.
  }
  return '';
}

/** Linux lists the offsets of a time namespace in seconds and nanoseconds. */
function readClockAheadMs(): number {
  try {
    const offsets = readFileSync('/proc/self/timens_offsets', 'utf8');
    const [, seconds = 0, nanoseconds = 0] = /^monotonic\s+(-?\d+)\s+(\d+)$/m.exec(offsets) ?? [];
    return Number(seconds) * 1_000 + Number(nanoseconds) / 1e6;
  } catch {
    // The system has no time namespaces.
    return 0;
  }
}

/** Returns the namespace of process ids. Two containers have different ones. */
function processSpace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return hostname();
  }
}

function isNoProcess(other: string): boolean {
  try {
    process.kill(Number(other.slice(other.lastIndexOf(':') + 1)), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
