import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { spawnChild } from '../support/child.ts';
import { until } from '../support/until.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const SYN_SENT = '02';
const ESTABLISHED = '01';

/** The states of a process' connections to a port of this host, as the kernel has them. */
function connectionsOf(pid: number, port: number): string[] {
  const files = readdirSync(`/proc/${pid}/fd`).flatMap((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
  const to = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const rows = readFileSync(`/proc/${pid}/net/tcp`, 'utf8').trim().split('\n').slice(1);
  return rows.flatMap((row) => {
    const [, , remote, state = '', , , , , , inode] = row.trim().split(/\s+/);
    return remote === to && files.includes(`socket:[${inode}]`) ? [state] : [];
  });
}

/** Nothing for what has been closed since it was listed. */
function linkOf(path: string): string[] {
  try {
    return [readlinkSync(path)];
  } catch {
    return [];
  }
}

/** Takes every place among the connections that wait to be accepted. */
async function fill(port: number): Promise<void> {
  for (let isFull = false; !isFull; ) {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    closing.push(() => socket.destroy());
    const waiting = () => connectionsOf(process.pid, port).includes(SYN_SENT);
    // The kernel of this host takes a connection before it returns, or not at all.
    await new Promise((resolve) => setImmediate(resolve));
    isFull = waiting();
  }
}

it('B-06 a poller that was stopped while it connected sends no request with its old fence when it goes on', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  closing.push(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'holdfast.db');
  await using target = spawnChild('http-target.mjs');
  const port = Number((await target.next('listening')).port);
  await using poller = spawnChild('http-poller.mjs', {
    args: [`sqlite:${file}`, `http://127.0.0.1:${port}/`],
  });
  await target.next('request');

  // No poll is under way when the target stops.
  await poller.freeze();
  await until(() => !connectionsOf(poller.pid, port).includes(ESTABLISHED), {
    what: 'the last poll to be answered',
  });
  await target.freeze();
  await fill(port);
  await poller.thaw();
  await until(() => connectionsOf(poller.pid, port).includes(SYN_SENT), {
    what: 'the poller to be connecting',
  });
  poller.send('be busy');
  await poller.next('busy');
  await poller.freeze();
  const fence = poller.received.findLast(({ event }) => event === 'acquired')?.fence;
  const store = await openSqliteStore(file);
  closing.push(() => store.close());
  const isExpired = async () => {
    const [found] = await store.leases.read(['poll:lease:target'], { timeoutMs: 1_000 });
    return found?.kind === 'free';
  };
  await until(isExpired, { what: 'the lease to expire' });
  await target.thaw();
  await until(() => connectionsOf(poller.pid, port).includes(ESTABLISHED), {
    what: 'the connection to be there',
    deadlineMs: 15_000,
  });
  const before = target.received.length;
  await poller.thaw();
  await target.next(({ event, fence: sent }) => event === 'request' && sent !== fence);
  const fences = target.received.slice(before).map((request) => request.fence);
  expect(fences).not.toContain(fence);
});
