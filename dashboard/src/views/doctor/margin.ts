/** How much room an instance has: what is left of the TTL after a slow renewal (p99). */
import type { Diagnosis } from '../../../../src/client/operating-messages.ts';
import { spanOf } from '../../data/words.ts';

export type Finding = Diagnosis['findings'][number];
export type Checked = Diagnosis['members'][number];

export interface Margin {
  /** Of the TTL; null where it is not known. */
  readonly share: number | null;
  readonly word: 'ample' | 'short' | 'none' | 'unknown';
  readonly words: string;
}

/** Below this share one renewal that fails, and is tried again, may come too late. */
const SHORT_SHARE = 1 / 3;

export function marginOf({ marginMs, renewP99Ms, ttlMs }: Checked): Margin {
  if (ttlMs === null)
    return unknown(
      'This instance does not report its renewals: it is a non-Holdfast program, or an older version.',
    );
  if (marginMs === null || renewP99Ms === null)
    return unknown('This instance has renewed nothing lately: it owns nothing.');
  const share = Math.max(0, marginMs / ttlMs);
  const words = `A slow renewal takes ${msText(renewP99Ms)}; ${msText(Math.max(0, marginMs))} of ${msText(ttlMs)} are left.`;
  return { share, word: wordFor(share), words };
}

function wordFor(share: number): Margin['word'] {
  if (share === 0) return 'none';
  return share < SHORT_SHARE ? 'short' : 'ample';
}

function unknown(words: string): Margin {
  return { share: null, word: 'unknown', words };
}

/** What an operator has to fix, the worst first; and the checks that passed. */
export function sorted(findings: readonly Finding[]): {
  readonly warnings: readonly Finding[];
  readonly fine: readonly Finding[];
} {
  const isFine = ({ level }: Finding) => level === 'ok';
  const refused = findings.filter(({ level }) => level === 'refuse');
  return {
    warnings: [...refused, ...findings.filter(({ level }) => level === 'warn')],
    fine: findings.filter(isFine),
  };
}

/** More digits than elsewhere, if it is small: `0.03 ms`, `3.1 ms`, `3.8 s`. */
export function msText(ms: number): string {
  if (ms < 10) return `${ms.toFixed(ms < 1 ? 2 : 1)} ms`;
  return ms >= 1_000 && ms < 10_000 ? `${(ms / 1_000).toFixed(1)} s` : spanOf(ms);
}

/** How far the store's clock is from the instance's, and in which direction, as far as that can be told. */
export function clockText({ offsetMs, uncertaintyMs }: NonNullable<Diagnosis['clock']>): string {
  const amount = `${msText(Math.abs(offsetMs))}, give or take ${msText(uncertaintyMs)}`;
  if (Math.abs(offsetMs) <= uncertaintyMs)
    return `The clocks agree within the accuracy of the measurement: ${amount}.`;
  return `The store’s clock is ${offsetMs > 0 ? 'ahead' : 'behind'} by ${amount}.`;
}
