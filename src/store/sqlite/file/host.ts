import { execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** What the store has to know about the machine it runs on; a test may be another one. */
export interface Host {
  /**
   * Changes with every start of the machine; '' where the system does not tell. Then a clock that stands before the last
   * time in the file says the same: monotonic time begins anew with every start. (If it has already run past it, every
   * lease of the start before has run out by it, too.)
   */
  readonly bootId: string;
  /** How far this process's monotonic clock is ahead of the host's: not 0 in a time namespace. */
  readonly clockAheadMs: number;
  /** This process among those of the machine. */
  readonly process: string;
  /** Whether a process is gone for certain. */
  isGone(process: string): boolean;
}

/** Read once: none of it changes while the process lives. */
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
    // Hidden from us, as in some sandboxes: the clock has to tell.
  }
  return '';
}

/** Linux keeps the offsets of a time namespace to the host's clocks, each in seconds and nanoseconds. */
function readClockAheadMs(): number {
  try {
    const offsets = readFileSync('/proc/self/timens_offsets', 'utf8');
    const [, seconds = 0, nanoseconds = 0] = /^monotonic\s+(-?\d+)\s+(\d+)$/m.exec(offsets) ?? [];
    return Number(seconds) * 1_000 + Number(nanoseconds) / 1e6;
  } catch {
    // No time namespaces here.
    return 0;
  }
}

/** Process numbers mean something among those who share this; two containers do not. */
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
