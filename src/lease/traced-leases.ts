/**
 * Leases as those see them who trace: who asked for what, what came of it, and the work under it. Only where a program asks: a fleet asks for
 * its targets by the thousand, a line of a pool for each of its slots, and nobody waits for any one of these.
 */
import type { BusyReason } from '../core/errors.ts';
import { type Attributes, type Span, type Tracing, untraced } from '../core/tracing.ts';
import type { Lease, LeaseSet } from './lease.ts';
import type { AcquireResult, HeldContext, Leases } from './leases.ts';
import type { AcquireOptions } from './options.ts';
import { withLease } from './with-lease.ts';

type Doors = Pick<Leases, 'acquire' | 'acquireAll' | 'withLease'>;

export class TracedLeases implements Doors {
  readonly #leases: Doors;
  readonly #tracing: Tracing;

  constructor(leases: Doors, tracing: Tracing) {
    this.#leases = leases;
    this.#tracing = tracing;
  }

  acquire(key: string, options: AcquireOptions = {}): Promise<AcquireResult> {
    const ask = () => this.#leases.acquire(key, options);
    return tracedAcquire(this.#tracing, attributesOf(key, options), ask);
  }

  async acquireAll(keys: readonly string[], options: AcquireOptions = {}): Promise<LeaseSet> {
    const attributes = attributesOf([...keys].join(' '), options);
    return this.#tracing.run({ name: 'holdfast.acquire', attributes }, () =>
      this.#leases.acquireAll(keys, options),
    );
  }

  async withLease<T>(
    key: string,
    work: (held: HeldContext) => Promise<T> | T,
    options: AcquireOptions = {},
  ): Promise<T> {
    const acquire = (wanted: string, asked: AcquireOptions) => this.acquire(wanted, asked);
    return tracedWork(this.#tracing, attributesOf(key, options), work, (watched) =>
      withLease(acquire, key, watched, options),
    );
  }
}

function attributesOf(key: string, { class: name = 'lease' }: AcquireOptions): Attributes {
  return { 'holdfast.key': key, 'holdfast.class': name };
}

type Answer =
  | { readonly ok: true; readonly lease: Lease }
  | { readonly ok: false; readonly reason: BusyReason; readonly holder?: string };

/** Asks in a span, where somebody traces. Contention is no error there either. */
export async function tracedAcquire<A extends Answer>(
  tracing: Tracing,
  attributes: Attributes,
  ask: () => Promise<A>,
): Promise<A> {
  if (tracing === untraced) return ask();
  return tracing.run({ name: 'holdfast.acquire', attributes }, async (span) => {
    const answer = await ask();
    span.set(factsOf(answer));
    return answer;
  });
}

function factsOf(answer: Answer): Attributes {
  if (answer.ok) {
    const { key, holder, fence } = answer.lease;
    const facts = { 'holdfast.key': key, 'holdfast.holder': holder, 'holdfast.fence': fence };
    return { 'holdfast.outcome': 'granted', ...facts };
  }
  const { reason, holder } = answer;
  const facts = { 'holdfast.outcome': 'refused', 'holdfast.reason': reason };
  return holder === undefined ? facts : { ...facts, 'holdfast.holder': holder };
}

/** Gets a lease and works under it, all in a span; what is lost meanwhile is told there. */
export async function tracedWork<C extends HeldContext, T>(
  tracing: Tracing,
  attributes: Attributes,
  work: (held: C) => Promise<T> | T,
  hold: (watched: (held: C) => Promise<T> | T) => Promise<T>,
): Promise<T> {
  // What is no function is refused by whoever holds.
  if (tracing === untraced || typeof work !== 'function') return hold(work);
  const watched = (span: Span) => (held: C) => {
    span.set({ 'holdfast.fence': held.fence });
    span.watch(held);
    return work(held);
  };
  return tracing.run({ name: 'holdfast.lease', attributes }, (span) => hold(watched(span)));
}
