/**
 * A lock on a name that the kernel holds for this process, and for whoever it gives it to: a listening socket of Linux's abstract names, which
 * are no files. It is free at the moment when the last of them is gone, however they went, and at no other.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import type { HostLock } from './host.ts';

/**
 * As long as an address can be. Some versions of Node fill shorter ones up with zeros and some do not, which makes two names of what is
 * meant to be one.
 */
const ADDRESS_LENGTH = 108;
const HASH_DIGITS = 32;
/** All abstract sockets of this network namespace, with the number of each. */
export const SOCKETS = '/proc/net/unix';
const NUMBER_COLUMN = 6;

/** For where there are none: keeps nobody out. */
export const NO_LOCK: HostLock = { fd: -1, close: () => {} };

/** Null: another has it. */
export async function lockName(name: string): Promise<HostLock | null> {
  const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH_DIGITS);
  const address = `holdfast/${process.getuid?.()}/${hash}`.padEnd(ADDRESS_LENGTH - 1, '.');
  // Whoever calls has nothing to hear from us.
  const server = createServer((caller) => caller.destroy());
  try {
    server.listen(`\0${address}`);
    await once(server, 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return null;
    throw error;
  }
  server.unref();
  return { fd: descriptorOf(server, address), close: () => void server.close() };
}

/** Node does not say what it listens on; the kernel does: the number of the socket by its name, and the descriptor by its number. */
function descriptorOf(server: Server, address: string): number {
  const lines = readFileSync(SOCKETS, 'utf8').split('\n');
  const number = lines.find((line) => line.endsWith(`@${address}`))?.split(/\s+/)[NUMBER_COLUMN];
  const found = readdirSync('/proc/self/fd').find((fd) => linkOf(fd) === `socket:[${number}]`);
  if (found !== undefined) return Number(found);
  server.close();
  throw new Error(`/proc does not show the lock that this process has on its host (${number})`);
}

function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return '';
  }
}
