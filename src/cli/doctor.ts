import { systemClock } from '../base/clock.ts';
import { StoreRefusedError, StoreUnsuitableError } from '../base/errors.ts';
import type { Holdfast } from '../holdfast.ts';
import type { Finding } from '../store/store.ts';
import type { Context } from './context.ts';
import { EXIT, type Exit } from './exit-codes.ts';
import { withHoldfast } from './opening.ts';
import type { Output, Style } from './output.ts';
import { printable } from './text.ts';

/** How many reads the round trip is measured over. */
const READS = 100;
/** What is read: a key that nobody is likely to use, so that nothing is in the way. */
const PROBE = 'holdfast-doctor';

interface Diagnosis {
  readonly store: string;
  readonly findings: readonly (Pick<Finding, 'level' | 'fact' | 'advice'> & Partial<Finding>)[];
  readonly roundTrip: { reads: number; p50Ms: number; p99Ms: number } | null;
}

/** Examines the store: what is fine, what to know, and what stands in the way of leases. */
export async function doctor({ flags, output }: Context): Promise<Exit> {
  const diagnosis = await withHoldfast(flags, examine).catch(asFinding);
  output.result(diagnosis, () => shown(diagnosis, output));
  const isUnfit = diagnosis.findings.some(({ level }) => level === 'refuse');
  return isUnfit ? EXIT.no : EXIT.ok;
}

async function examine(holdfast: Holdfast): Promise<Diagnosis> {
  const { store, findings } = await holdfast.examine();
  const took: number[] = [];
  for (let i = 0; i < READS; i++) {
    const sentMs = systemClock.monotonicMs();
    await holdfast.inspect(PROBE);
    took.push(systemClock.monotonicMs() - sentMs);
  }
  took.sort((a, b) => a - b);
  const at = (share: number) => Math.round((took[Math.ceil(READS * share) - 1] ?? 0) * 100) / 100;
  return { store, findings, roundTrip: { reads: READS, p50Ms: at(0.5), p99Ms: at(0.99) } };
}

/** A store that can not be used is what this command is for; one that can not be reached has nothing to examine. */
function asFinding(error: unknown): Diagnosis {
  const level = 'refuse';
  if (error instanceof StoreUnsuitableError) {
    const findings = error.problems.map((fact) => ({ level, fact }) as const);
    return { store: error.store, findings, roundTrip: null };
  }
  if (!(error instanceof StoreRefusedError)) throw error;
  return { store: error.store, findings: [{ level, fact: error.message }], roundTrip: null };
}

const MARKS: Readonly<Record<Finding['level'], readonly [string, Style]>> = {
  ok: ['ok', 'green'],
  warn: ['warn', 'yellow'],
  refuse: ['refuse', 'red'],
};

function shown({ store, findings, roundTrip }: Diagnosis, output: Output): string {
  const lines = findings.map(({ level, fact, advice = '' }) => {
    const [mark, style] = MARKS[level];
    return `${output.style(style, mark.padEnd(6))}  ${printable(`${fact} ${advice}`.trim())}\n`;
  });
  const measured = roundTrip
    ? `\nRound trip over ${roundTrip.reads} reads: p50 ${roundTrip.p50Ms} ms, p99 ${roundTrip.p99Ms} ms.\n`
    : '';
  return `${output.style('bold', printable(store))}\n${lines.join('')}${measured}`;
}
