import { systemClock } from '../../../core/clock.ts';
import { StoreRefusedError, StoreUnsuitableError } from '../../../core/errors.ts';
import { type Diagnosis, type DiagnosisFinding, diagnose } from '../../../diagnosis.ts';
import type { Holdfast } from '../../../holdfast.ts';
import type { Context, StoreFlags } from '../../context.ts';
import { EXIT, type Exit } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { readSettings } from '../../settings.ts';
import type { Output, Style } from '../../ui/output.ts';
import { printable } from '../../ui/text.ts';

/** `holdfast doctor`. */
export async function doctor({ flags, output }: Context): Promise<Exit> {
  const diagnosis = await examined(flags).catch(asFinding);
  output.result(diagnosis, () => shown(diagnosis, output));
  const isUnfit = diagnosis.findings.some(({ level }) => level === 'refuse');
  return isUnfit ? EXIT.no : EXIT.ok;
}

/**
 * Acquires a lease to check permissions: with the configured maxTtl, else with the one in the
 * store. A store without one has not been used yet. Then no lease is tried, because that would be
 * its first use.
 */
async function examined(flags: StoreFlags): Promise<Diagnosis> {
  const { maxTtl } = await readSettings(flags);
  const { recorded, unused } = await withHoldfast(flags, async (holdfast) => {
    const recorded = await holdfast.maxTtl();
    const isUsed = Object.keys(recorded).length > 0;
    return { recorded, unused: isUsed ? null : await untried(holdfast) };
  });
  if (unused !== null) return unused;
  const options = { observe: false, maxTtl: maxTtl ?? recorded };
  const tried = (holdfast: Holdfast) => diagnose(holdfast, systemClock, { tryOut: true });
  return withHoldfast(flags, tried, options);
}

const UNUSED: DiagnosisFinding = {
  level: 'ok',
  subject: 'rights',
  fact: 'No process has taken leases in this store yet, so permissions were not checked.',
  advice: 'Run doctor again after that.',
};

async function untried(holdfast: Holdfast): Promise<Diagnosis> {
  const diagnosis = await diagnose(holdfast, systemClock, { tryOut: false });
  return { ...diagnosis, findings: [...diagnosis.findings, UNUSED] };
}

/** An unsuitable store is a finding. A store that is unavailable is an error. */
function asFinding(error: unknown): Diagnosis {
  const unfit = (store: string, facts: readonly string[]): Diagnosis => ({
    store,
    at: Math.round(systemClock.wallMs()),
    roundTrip: null,
    clock: null,
    members: [],
    findings: facts.map((fact) => ({ level: 'refuse', subject: 'store', fact })),
  });
  if (error instanceof StoreUnsuitableError) return unfit(error.store, error.problems);
  if (error instanceof StoreRefusedError) return unfit(error.store, [error.message]);
  throw error;
}

const MARKS: Readonly<Record<DiagnosisFinding['level'], readonly [string, Style]>> = {
  ok: ['ok', 'green'],
  warn: ['warn', 'yellow'],
  refuse: ['refuse', 'red'],
};

function shown({ store, findings, roundTrip, clock }: Diagnosis, output: Output): string {
  const lines = findings.map(({ level, fact, advice = '' }) => {
    const [mark, style] = MARKS[level];
    return `${output.style(style, mark.padEnd(6))}  ${printable(`${fact} ${advice}`.trim())}\n`;
  });
  const measured = roundTrip
    ? `\nRound trip over ${roundTrip.reads} reads: p50 ${roundTrip.p50Ms} ms, p99 ${roundTrip.p99Ms} ms.\n`
    : '';
  const offset = clock
    ? `The store's clock is ${tenths(Math.abs(clock.offsetMs))} ms ${clock.offsetMs < 0 ? 'behind' : 'ahead of'} this host's, ± ${tenths(clock.uncertaintyMs)} ms.\n`
    : '';
  return `${output.style('bold', printable(store))}\n${lines.join('')}${measured}${offset}`;
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
