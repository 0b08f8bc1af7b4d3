import { afterAll, beforeAll, expect } from 'vitest';
import {
  type AcquireOptions,
  type EventName,
  type Events,
  type Holdfast,
  type Lease,
  type OpenOptions,
  open,
} from '../../../src/index.ts';
import { until } from '../../support/until.ts';

/** A Holdfast for a test: no quarantine unless asked for, and warnings about the bare server kept to itself. */
export function openAt(
  at: { url: string } | { port: number },
  options: OpenOptions = {},
): Promise<Holdfast> {
  const url = 'url' in at ? at.url : `redis://127.0.0.1:${at.port}`;
  return open(url, { quarantine: 'off', on: { 'store.warned': () => {} }, ...options });
}

/** Loads what is loaded on first use, so that no operation of a test has to wait for it. */
export async function warmUp(at: { url: string }): Promise<void> {
  await using holdfast = await openAt(at);
  const lease = await take(holdfast, 'warm-up', { wait: '5s' });
  await lease.release();
}

/** The lease, where nothing stands in the way. It is let go of when its Holdfast closes. */
export function take(
  holdfast: Holdfast,
  key: string,
  options: AcquireOptions = {},
): Promise<Lease> {
  const taken = acquired(holdfast, key, options);
  // A test that fails for another reason does not wait for it any more.
  taken.catch(() => {});
  return taken;
}

async function acquired(holdfast: Holdfast, key: string, options: AcquireOptions): Promise<Lease> {
  const result = await holdfast.acquire(key, options);
  if (!result.ok) throw new Error(`'${key}' is not to be had: ${JSON.stringify(result)}`);
  const { lease } = result;
  lease.signal.addEventListener('abort', () => {
    if (lease.signal.reason?.code === 'CLOSED') void lease.release();
  });
  return lease;
}

/** The next event of that name from now on. */
export function nextEvent<N extends EventName>(
  holdfast: Holdfast,
  name: N,
  { deadlineMs = 10_000 } = {},
): Promise<Events[N]> {
  const seen: Events[N][] = [];
  const stop = holdfast.on(name, (facts) => seen.push(facts));
  const what = `event '${name}'`;
  const found = until(() => seen[0], { what, deadlineMs, every: 1 }).finally(stop);
  found.catch(() => {});
  return found;
}

/** The code a promise is rejected with. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  const outcome = await promise.then(
    (value) => `resolved: ${JSON.stringify(value)}`,
    (error: { code?: string; message?: string }) => error.code ?? `no code: ${error.message}`,
  );
  return outcome;
}

/** What `assertHeld` throws; '' if it passes. */
export function assertCode(lease: Lease): string {
  try {
    lease.assertHeld();
    return '';
  } catch (error) {
    return (error as { code: string }).code;
  }
}

const COUNTED = ['TCPSocketWrap', 'TCPServerWrap', 'Timeout', 'ProcessWrap'];

function census(): Record<string, number> {
  const active = process.getActiveResourcesInfo();
  return Object.fromEntries(
    COUNTED.map((kind) => [kind, active.filter((name) => name === kind).length]),
  );
}

/** Registers the check that a file's tests leave no timer, socket or process behind. Call it before all other hooks. */
export function leaveNothingBehind(): void {
  let before: Record<string, number> = {};
  beforeAll(() => {
    before = census();
  });
  afterAll(async () => {
    const isGone = () => COUNTED.every((kind) => (census()[kind] ?? 0) <= (before[kind] ?? 0));
    await until(isGone, { what: 'timers, sockets and processes to be gone' }).catch(() =>
      expect(census()).toEqual(before),
    );
  });
}
