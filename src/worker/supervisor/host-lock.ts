/**
 * A lock on a name that the kernel keeps for this process and for the children that inherit it: a
 * listening socket with an abstract name of Linux, which is no file. It is free when the last of
 * these processes is gone, however it ended, and not before.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import type { HostLock } from './host.ts';

/**
 * The maximum length of an address. Some versions of Node pad shorter ones with zeros and some do
 * not, so that one name would become two addresses.
 */
const ADDRESS_LENGTH = 108;
const HASH_DIGITS = 32;
/** Lists all abstract sockets of this network namespace, with their numbers. */
export const SOCKETS = '/proc/net/unix';
const NUMBER_COLUMN = 6;

/** For systems without such locks: keeps no process out. */
export const NO_LOCK: HostLock = { fd: -1, close: () => {} };

/** Null: another process has the lock. */
export async function lockName(name: string): Promise<HostLock | null> {
  const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH_DIGITS);
  const address = `holdfast/${process.getuid?.()}/${hash}`.padEnd(ADDRESS_LENGTH - 1, '.');
  // A process that connects gets no answer.
  const server = createServer((connection) => connection.destroy());
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

/**
 * Node does not tell the descriptor. /proc has the socket's number by its name, and the descriptor
 * by its number.
 */
function descriptorOf(server: Server, address: string): number {
  const lines = readFileSync(SOCKETS, 'utf8').split('\n');
  const number = lines.find((line) => line.endsWith(`@${address}`))?.split(/\s+/)[NUMBER_COLUMN];
  const found = readdirSync('/proc/self/fd').find((fd) => linkOf(fd) === `socket:[${number}]`);
  if (found !== undefined) return Number(found);
  server.close();
  throw new Error(
    `/proc does not list socket ${number}, which this process has just opened as a lock. Check that /proc is not restricted.`,
  );
}

function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return '';
  }
}
