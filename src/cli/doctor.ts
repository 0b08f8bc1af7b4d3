import { systemClock } from '../base/clock.ts';
import { StoreRefusedError, StoreUnsuitableError } from '../base/errors.ts';
import type { Holdfast } from '../holdfast.ts';
import type { Finding } from '../store/store.ts';
import type { Context } from './context.ts';
import { EXIT, type Exit } from './exit-codes.ts';
import { withHoldfast } from './opening.ts';
import type { Output, Style } from './output.ts';
import { printable, spanOf } from './text.ts';

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
  const tried = await tryOut(holdfast);
  const took: number[] = [];
  for (let i = 0; i < READS; i++) {
    const sentMs = systemClock.monotonicMs();
    await holdfast.inspect(PROBE);
    took.push(systemClock.monotonicMs() - sentMs);
  }
  took.sort((a, b) => a - b);
  const at = (share: number) => Math.round((took[Math.ceil(READS * share) - 1] ?? 0) * 100) / 100;
  return {
    store,
    findings: [...findings, tried],
    roundTrip: { reads: READS, p50Ms: at(0.5), p99Ms: at(0.99) },
  };
}

/** Does once what a Holdfast does, under a key of its own: a right that this user lacks shows here, and nowhere else. */
async function tryOut(holdfast: Holdfast): Promise<Finding> {
  const subject = 'rights';
  const key = `${PROBE}-${holdfast.instanceId}`;
  try {
    const result = await holdfast.acquire(key, { ttl: '5s' });
    if (!result.ok) {
      const fact = `No lease is granted for ${spanOf(result.expiresInMs)} yet: the store is new, or may have forgotten some.`;
      const advice =
        'This ends by itself; run it again then, to see whether this user may do everything.';
      return { level: 'warn', subject, fact, advice };
    }
    // Waiting for what is held is what needs signals.
    await holdfast.acquire(key, { ttl: '5s', wait: 10 });
    await holdfast.records.put(key, { probe: true }, { fence: result.lease.fence });
    await holdfast.records.remove(key);
    const { released } = await result.lease.release();
    if (released)
      return { level: 'ok', subject, fact: 'A lease was had, waited for, used and released.' };
    return {
      level: 'warn',
      subject,
      fact: 'A lease was had, but could not be released in time.',
      advice: 'Try again.',
    };
  } catch (error) {
    if (!(error instanceof StoreRefusedError)) throw error;
    return { level: 'refuse', subject, fact: error.message };
  }
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
