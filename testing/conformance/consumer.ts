import assert from 'node:assert/strict';
import type { DeadCall, Delivery } from '../../src/store/port/stream-store.ts';
import { CALL, type Kit, LONG_MS } from './kit.ts';

/** A stream in the hands of a test: each with one of its own, and another. */
export function stream(kit: Kit): string {
  return kit.topic('stream');
}

export function other(kit: Kit): string {
  return kit.topic('other-stream');
}

export function entry(lane: string, value: unknown, priority = 5) {
  return { lane, value, priority };
}

export function append(
  kit: Kit,
  ...entries: (readonly [lane: string, value: unknown])[]
): Promise<void> {
  const added = entries.map(([lane, value]) => entry(lane, value));
  return kit.store.streams.append(stream(kit), added, CALL);
}

export function consume(
  kit: Kit,
  { consumer = 'consumer', most = 100, claimMs = LONG_MS, stream: name = stream(kit) } = {},
): Promise<Delivery[]> {
  return kit.store.streams.consume(name, { ...CALL, consumer, most, claimMs });
}

export async function consumeOne(
  kit: Kit,
  options: { most?: number; claimMs?: number } = {},
): Promise<Delivery> {
  const [delivery, ...more] = await consume(kit, options);
  assert(delivery !== undefined && more.length === 0, JSON.stringify([delivery, ...more]));
  return delivery;
}

export async function ack(
  kit: Kit,
  held: { lane: string; fence: number } | undefined,
): Promise<void> {
  assert(held !== undefined);
  assert.deepEqual(await kit.store.streams.ack(stream(kit), [held], CALL), ['done']);
}

export async function retry(kit: Kit, delivery: Delivery, afterMs: number): Promise<void> {
  const later = [{ ...delivery, afterMs }];
  assert.deepEqual(await kit.store.streams.retry(stream(kit), later, CALL), ['done']);
}

export async function bury(kit: Kit, delivery: Delivery, reason: string): Promise<void> {
  const burials = [{ ...delivery, reason }];
  assert.deepEqual(await kit.store.streams.bury(stream(kit), burials, CALL), ['done']);
}

/** Puts the values 0, 1, … aside, each from a lane of its own. */
export async function buryMany(kit: Kit, count: number): Promise<void> {
  const values = Array.from({ length: count }, (_, n) => n);
  await append(kit, ...values.map((n): [string, number] => [`lane-${n}`, n]));
  const burials = (await consume(kit, { most: count })).map((delivery) => {
    return { ...delivery, reason: 'poison' };
  });
  await kit.store.streams.bury(stream(kit), burials, CALL);
}

/** Says everything that can be said about one entry; gives the answers. */
export async function sayAll(kit: Kit, held: { lane: string; fence: number }): Promise<unknown[]> {
  const { streams } = kit.store;
  const name = stream(kit);
  return [
    ...(await streams.extend(name, [held], { ...CALL, claimMs: LONG_MS })),
    ...(await streams.retry(name, [{ ...held, afterMs: 0 }], CALL)),
    ...(await streams.bury(name, [{ ...held, reason: 'late' }], CALL)),
    ...(await streams.ack(name, [held], CALL)),
  ];
}

export function dead(kit: Kit, call: Omit<DeadCall, 'timeoutMs'> = {}) {
  return kit.store.streams.dead(stream(kit), { ...CALL, ...call });
}

/** Lane and value of each. */
export function shown(deliveries: readonly (Delivery | undefined)[]): unknown[] {
  return deliveries.map((each) => [each?.lane, each?.value]);
}
