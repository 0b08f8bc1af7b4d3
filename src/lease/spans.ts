/**
 * The spans of leases: which key was asked for, the result, and the work under the lease. Only
 * calls of a program are traced. The fleet acquires its targets by the thousand, and a pool asks
 * for each of its slots.
 */
import type { BusyReason } from '../core/errors.ts';
import { type Attributes, type Span, type Tracing, untraced } from '../core/tracing.ts';
import type { Lease } from './lease.ts';
import type { HeldContext } from './leases.ts';
import type { AcquireOptions } from './options.ts';

export function leaseAttributes(
  key: string,
  { class: name = 'lease' }: AcquireOptions = {},
): Attributes {
  return { 'holdfast.key': key, 'holdfast.class': name };
}

type Answer =
  | { readonly ok: true; readonly lease: Lease }
  | { readonly ok: false; readonly reason: BusyReason; readonly holder?: string };

/** Acquires in a span, if the program traces. A refusal is not an error there either. */
export async function tracedAcquire<A extends Answer>(
  tracing: Tracing,
  attributes: Attributes,
  acquire: () => Promise<A>,
): Promise<A> {
  if (tracing === untraced) return acquire();
  return tracing.run({ name: 'holdfast.acquire', attributes }, async (span) => {
    const answer = await acquire();
    span.set(factsOf(answer));
    return answer;
  });
}

function factsOf(answer: Answer): Attributes {
  if (answer.ok) {
    const { key, holder, fence } = answer.lease;
    return {
      'holdfast.outcome': 'granted',
      'holdfast.key': key,
      'holdfast.holder': holder,
      'holdfast.fence': fence,
    };
  }
  const { reason, holder } = answer;
  const facts = { 'holdfast.outcome': 'refused', 'holdfast.reason': reason };
  return holder === undefined ? facts : { ...facts, 'holdfast.holder': holder };
}

/** Acquires a lease and works under it, all in a span, which also shows a loss of the lease. */
export async function tracedWork<C extends HeldContext, T>(
  tracing: Tracing,
  attributes: Attributes,
  work: (held: C) => Promise<T> | T,
  hold: (watched: (held: C) => Promise<T> | T) => Promise<T>,
): Promise<T> {
  // `hold` refuses work that is not a function.
  if (tracing === untraced || typeof work !== 'function') return hold(work);
  const watched = (span: Span) => (held: C) => {
    span.set({ 'holdfast.fence': held.fence });
    span.watch(held);
    return work(held);
  };
  return tracing.run({ name: 'holdfast.lease', attributes }, (span) => hold(watched(span)));
}
