/**
 * The configuration of a mixed world: clients that share keys, each with timings, classes and
 * options of its own. The seed draws one value for each dimension. Safety bugs live in
 * combinations, so a long run has to reach every pair.
 */
import type { Random } from '../../src/core/random.ts';
import type { LeaseClassName } from '../../src/lease/timings.ts';
import type { MaxTtls } from '../../src/store/port/keyspaces.ts';

export const DIMENSIONS = {
  ttls: ['one', 'two', 'many'],
  guards: ['default', 'drawn'],
  classes: ['lease', 'lease and resource', 'poll', 'workflow', 'all'],
  quarantine: ['on', 'off for one'],
  bounds: ['the same', 'another for one'],
  holders: ['unnamed', 'named'],
  prefixes: ['none', 'shared', 'one key of two'],
  loss: ['none', 'flush', 'empty restart', 'restart with data', 'failover', 'failback'],
  'cut off': ['no client', 'a holder'],
  newcomers: ['none', 'after the loss'],
  'store clock': ['right', 'ahead, then set right', 'stepped'],
  'frozen waiters': ['none', 'the first', 'the first two'],
  operator: ['none', 'revokes', 'revokes by force'],
  work: ['leases', 'pools', 'elections', 'once', 'transfers', 'all of them'],
  'max hold': ['none', 'drawn'],
  kept: ['no', 'after a release'],
  'clock rates': ['steady', 'drifting', 'beyond the guard'],
  connections: ['whole', 'half-open', 'reordered', 'doubled'],
  partition: ['none', 'no replies', 'no requests', 'half are not heard'],
  memory: ['enough', 'disk full', 'out of memory'],
  'server name': ['fixed', 'moves while both answer'],
} as const;

/** So many times as likely as another value is the first one of these dimensions. */
const USUAL: { readonly [D in Dimension]?: number } = {
  work: 3,
  'max hold': 2,
  kept: 2,
  'clock rates': 3,
  connections: 2,
  partition: 4,
  memory: 4,
  'server name': 5,
};

export type Dimension = keyof typeof DIMENSIONS;
export type Draw = { readonly [D in Dimension]: (typeof DIMENSIONS)[D][number] };

export const DIMENSION_NAMES = Object.keys(DIMENSIONS) as Dimension[];

/** What a client uses a lease for. Jobs of classes that have no elections are plain leases. */
export type Work = Exclude<Draw['work'], 'all of them'>;

/** What one client takes leases on: one class, one key. */
export interface Job {
  readonly leaseClass: LeaseClassName;
  readonly key: string;
}

export interface ClientSetting {
  readonly prefix: string;
  readonly quarantine: 'on' | 'off';
  /** What it was told of how long leases may last: the world's bounds, or, by mistake, others. */
  readonly bounds: MaxTtls;
  /** Each tenure draws one of these; the first one of a process has the first one. */
  readonly ttlsMs: readonly [number, ...number[]];
  /** Gives the guard for a TTL; undefined for the default one. */
  guardMs(ttlMs: number): number | undefined;
  readonly isNamed: boolean;
  readonly work: Work;
  /** After a crash, a job of `once` starts over in its period, or does not. */
  readonly onCrash: 'skip' | 'retry';
  readonly hasMaxHold: boolean;
  readonly isKept: boolean;
  readonly jobs: readonly Job[];
  /** It opens the store only after a loss, and remembers nothing. */
  readonly isNewcomer: boolean;
  /**
   * It was configured with a bound twice as long, which the store has to refuse. It comes when
   * others have used the store.
   */
  readonly isMisfit: boolean;
}

export interface MixedSetting {
  readonly draw: Draw;
  /** Of every keyspace, so that each client may use each TTL. */
  readonly boundMs: number;
  readonly clients: readonly ClientSetting[];
}

const BOUNDS_MS = [12_000, 30_000, 30_000, 60_000] as const;
const TTLS_MS = [1_500, 3_000, 6_000, 12_000, 30_000, 60_000] as const;
const CLIENTS = [4, 4, 5] as const;
const NEWCOMERS = 2;
const KEY = 'k';
const WORKS: readonly [Work, ...Work[]] = ['leases', 'pools', 'elections', 'once', 'transfers'];

/** `more` is for dimensions that came later: what the others draw from a seed stays the same. */
export function drawSetting(random: Random, more: Random): MixedSetting {
  const draw = drawDimensions(random, more);
  const boundMs = pick(random, BOUNDS_MS);
  const bounds = { lease: boundMs, poll: boundMs, workflow: boundMs };
  const shortMs = pick(random, shorterThan(boundMs));
  const count = pick(random, CLIENTS);
  const offAt = Math.floor(random.next() * count);
  // One client alone uses the longest TTL: when it is cut off, no other one can tell of it.
  const longAt = Math.floor(random.next() * count);
  const misfits = draw.bounds === 'the same' ? 0 : 1;
  const clients = Array.from({ length: count + NEWCOMERS + misfits }, (_, number) =>
    drawClient(random, draw, {
      number,
      work: draw.work === 'all of them' ? pick(more, WORKS) : draw.work,
      bounds,
      boundMs,
      shortMs,
      isMisfit: number === count + NEWCOMERS,
      isLong: number === longAt,
      isOff: draw.quarantine === 'off for one' && number === offAt,
      isNewcomer: number >= count && number < count + NEWCOMERS,
    }),
  );
  return { draw, boundMs, clients };
}

function drawDimensions(random: Random, more: Random): Draw {
  const drawn = DIMENSION_NAMES.map((name) => {
    const usual = USUAL[name];
    const values: readonly [string, ...string[]] = DIMENSIONS[name];
    if (usual === undefined) return [name, pick(random, values)];
    return [name, pick(more, [...Array<string>(usual - 1).fill(values[0]), ...values] as Values)];
  });
  const draw = Object.fromEntries(drawn) as Record<Dimension, string> as Draw;
  // The server that a name has left is not the one that an address fails back to.
  return draw.loss === 'failback' ? { ...draw, 'server name': 'fixed' } : draw;
}

type Values = [string, ...string[]];

interface ClientFacts {
  readonly work: Work;
  readonly number: number;
  readonly bounds: MaxTtls;
  readonly boundMs: number;
  readonly shortMs: number;
  readonly isLong: boolean;
  readonly isOff: boolean;
  readonly isNewcomer: boolean;
  readonly isMisfit: boolean;
}

function drawClient(random: Random, draw: Draw, of: ClientFacts): ClientSetting {
  const { number, isOff, isNewcomer, isMisfit, boundMs } = of;
  const guardAt = random.next();
  const drawn = drawTtls(random, draw.ttls, of);
  const ttlsMs: typeof drawn = isMisfit ? [2 * boundMs] : drawn;
  const twice = { lease: 2 * boundMs, poll: 2 * boundMs, workflow: 2 * boundMs };
  const where = placeOf(draw, number, random);
  return {
    ...where,
    ttlsMs,
    isNewcomer,
    isMisfit,
    bounds: isMisfit ? twice : of.bounds,
    quarantine: isOff ? 'off' : 'on',
    guardMs: (ttlMs) => (draw.guards === 'default' ? undefined : guardOf(ttlMs, guardAt)),
    isNamed: draw.holders === 'named',
    work: of.work,
    // All that run one job agree.
    onCrash: draw.guards === 'drawn' ? 'retry' : 'skip',
    hasMaxHold: draw['max hold'] === 'drawn',
    isKept: draw.kept !== 'no',
  };
}

function drawTtls(
  random: Random,
  ttls: Draw['ttls'],
  { boundMs, shortMs, isLong }: ClientFacts,
): readonly [number, ...number[]] {
  const [one, two] = [pick(random, shorterThan(boundMs)), pick(random, shorterThan(boundMs))];
  if (ttls === 'one') return [boundMs];
  if (ttls === 'two') return isLong ? [shortMs, boundMs] : [shortMs];
  return isLong ? [one, boundMs] : [one, two];
}

/** A tenth of the TTL, or as little as clocks that drift allow. */
function guardOf(ttlMs: number, choice: number): number {
  return choice < 0.5 ? ttlMs / 10 : ttlMs / 100 + 20;
}

/**
 * Where a client looks for its keys: with two names for one key, every second client uses the other
 * name.
 */
function placeOf(
  draw: Draw,
  number: number,
  random: Random,
): Pick<ClientSetting, 'prefix' | 'jobs'> {
  const jobs = jobsOf(draw.classes, random);
  if (draw.prefixes === 'none') return { prefix: '', jobs };
  if (draw.prefixes === 'shared') return { prefix: 'a:', jobs };
  const isOther = number % 2 === 1;
  if (draw.classes === 'poll' || draw.classes === 'all')
    return isOther
      ? { prefix: 'poll:', jobs: [{ leaseClass: 'lease', key: KEY }] }
      : { prefix: '', jobs };
  if (isOther) return { prefix: 'a:lease:', jobs };
  return { prefix: 'a:', jobs: jobs.map((job) => ({ ...job, key: `lease:${KEY}` })) };
}

function jobsOf(classes: Draw['classes'], random: Random): Job[] {
  const job = (leaseClass: LeaseClassName) => ({ leaseClass, key: KEY });
  const either = () => job(random.next() < 0.5 ? 'lease' : 'resource');
  if (classes === 'lease and resource') return [either()];
  if (classes === 'all') return [either(), job('poll'), job('workflow')];
  return [job(classes)];
}

/**
 * No prefix gives the lease of a workflow a second name: it lies under a hash tag of its own. There
 * are no elections and no jobs of other classes than the default one.
 */
export function isPossible(
  a: readonly [Dimension, string],
  b: readonly [Dimension, string],
): boolean {
  const values = new Map<Dimension, string>([a, b]);
  const [classes, work] = [values.get('classes') ?? '', values.get('work') ?? ''];
  if (['poll', 'workflow'].includes(classes) && ['elections', 'once'].includes(work)) return false;
  if (values.get('loss') === 'failback' && values.get('server name') === MOVES) return false;
  if (values.get('max hold') === 'drawn' && WITHOUT_MAX_HOLD.has(work)) return false;
  if (values.get('kept') === KEPT && WITHOUT_KEPT.has(work)) return false;
  return !(classes === 'workflow' && values.get('prefixes') === 'one key of two');
}

const MOVES: Draw['server name'] = 'moves while both answer';
const KEPT: Draw['kept'] = 'after a release';
/** Options that these have none of. */
const WITHOUT_MAX_HOLD: ReadonlySet<string> = new Set<Work>(['pools', 'elections', 'once']);
const WITHOUT_KEPT: ReadonlySet<string> = new Set<Work>(['elections', 'once']);

function shorterThan(boundMs: number): [number, ...number[]] {
  return TTLS_MS.filter((ttlMs) => ttlMs < boundMs) as [number, ...number[]];
}

export function pick<T>(random: Random, from: readonly [T, ...T[]]): T {
  return from[Math.floor(random.next() * from.length)] ?? from[0];
}
