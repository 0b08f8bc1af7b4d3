/** What `simulate` is asked for, checked and with its defaults. */
import { type Duration, durationMs } from '../../src/core/duration.ts';
import { ConfigError } from '../../src/core/errors.ts';
import { checkKnown } from '../../src/core/options.ts';
import type { NewTarget } from '../../src/fleet/targets/target-store.ts';
import type { Effect, SimulationInvariant } from './effect-audit.ts';
import { FAULT_NAMES, type SimulatedFault } from './faults.ts';
import {
  INSTANCE_NAMES,
  type SimulatedInstance,
  type SimulatedOpenOptions,
  type SimulatedTools,
} from './instance.ts';
import type { SinkRules } from './sink.ts';

/** What `check` is given when everything has healed. */
export interface SimulationEnd {
  /** All that the sink took, in order. */
  readonly effects: readonly Effect[];
  /** A Holdfast that nothing goes wrong with, to read workflows, records and sessions. */
  readonly holdfast: SimulatedInstance['holdfast'];
  readonly seed: number;
}

export interface SimulateOptions {
  /**
   * Your program: starts its handlers on `holdfast`. Runs in every instance, and again at each
   * restart. A setup that throws ends its process, which starts again.
   */
  setup(instance: SimulatedInstance): unknown;
  /**
   * What asks your program for work: starts workflows, emits actions, adds targets. Runs once per
   * world, in a process that nothing goes wrong with; the world ends after it has returned.
   */
  client?(client: SimulatedInstance): unknown;
  /** Targets that are there from the start, by id or as `targets.add` takes them. */
  targets?: readonly (string | NewTarget)[];
  /** Throws if something is wrong at the end, when all faults are over and healed. */
  check?(end: SimulationEnd): unknown;
  /** How many worlds; default 50. */
  seeds?: number;
  /** The seed of the first world; the others count up from it. Default 1. */
  firstSeed?: number;
  /** One world only: the one that a failure names. */
  seed?: number;
  /** How long faults go on in each world, in simulated time; default `10m`. */
  duration?: Duration;
  /** How many instances, 1 to 6; default 3. */
  instances?: number;
  /** `false` switches a fault off. See `SIMULATED_FAULTS`. */
  faults?: Readonly<Partial<Record<SimulatedFault, boolean>>>;
  /** How the outside world treats fences and idempotency keys. */
  sink?: SinkRules;
  /** Invariants that are not judged, and names of real APIs that your code may use. */
  allow?: readonly (SimulationInvariant | (string & {}))[];
  /**
   * For `open`: `kinds`, `maxTtl`, `prefix`, `sessionIds`. A function gets what setup gets, so that
   * the functions of your kinds can use it.
   */
  open?: SimulatedOpenOptions | ((tools: SimulatedTools) => SimulatedOpenOptions);
}

export interface SimulationSettings {
  readonly setup: (instance: SimulatedInstance) => unknown;
  readonly client: (client: SimulatedInstance) => unknown;
  readonly check: (end: SimulationEnd) => unknown;
  readonly targets: readonly NewTarget[];
  readonly seeds: readonly number[];
  readonly durationMs: number;
  readonly instances: number;
  readonly kinds: readonly SimulatedFault[];
  readonly sink: SinkRules;
  readonly allowed: ReadonlySet<string>;
  readonly open: (tools: SimulatedTools) => SimulatedOpenOptions;
}

const KNOWN = new Set([
  'setup',
  'client',
  'targets',
  'check',
  'seeds',
  'firstSeed',
  'seed',
  'duration',
  'instances',
  'faults',
  'sink',
  'allow',
  'open',
]);
const KNOWN_OPEN = new Set(['kinds', 'maxTtl', 'prefix', 'sessionIds']);
const SEEDS = 50;
const MOST_SEEDS = 1_000_000;
const MOST_SEED = 2 ** 31;
const INSTANCES = 3;
const DURATION = '10m';
const MOST_DURATION_MS = 7 * 86_400_000;

export function readSimulateOptions(options: SimulateOptions): SimulationSettings {
  checkKnown(options, KNOWN);
  const { seeds = SEEDS, firstSeed = 1, seed, instances = INSTANCES, faults = {} } = options;
  checkFunction('setup', options.setup);
  if (options.client !== undefined) checkFunction('client', options.client);
  if (options.check !== undefined) checkFunction('check', options.check);
  checkWhole('seeds', seeds, 1, MOST_SEEDS);
  checkWhole('firstSeed', firstSeed, 0, MOST_SEED);
  if (seed !== undefined) checkWhole('seed', seed, 0, MOST_SEED + MOST_SEEDS);
  checkWhole('instances', instances, 1, INSTANCE_NAMES.length);
  for (const name of Object.keys(faults))
    if (!FAULT_NAMES.some((known) => known === name)) {
      const rule = `unknown fault. Known faults: ${FAULT_NAMES.join(', ')}`;
      throw new ConfigError({ field: 'faults', value: name, rule });
    }
  const ms = durationMs(options.duration ?? DURATION, 'duration');
  if (ms > MOST_DURATION_MS)
    throw new ConfigError({
      field: 'duration',
      value: options.duration,
      rule: "it is at most '7d'. Run more seeds instead",
    });
  const { open = {}, targets = [] } = options;
  return {
    setup: (instance) => options.setup(instance),
    client: (client) => options.client?.(client),
    check: (end) => options.check?.(end),
    targets: targets.map((target) => (typeof target === 'string' ? { id: target } : target)),
    seeds: seed === undefined ? Array.from({ length: seeds }, (_, n) => firstSeed + n) : [seed],
    durationMs: ms,
    instances,
    kinds: FAULT_NAMES.filter((name) => faults[name] !== false),
    sink: options.sink ?? {},
    allowed: new Set(options.allow),
    open: (tools) => {
      const given = typeof open === 'function' ? open(tools) : open;
      checkKnown(given, KNOWN_OPEN);
      return given;
    },
  };
}

function checkFunction(field: string, value: unknown): void {
  if (typeof value !== 'function')
    throw new ConfigError({ field, value: typeof value, rule: 'it is a function' });
}

function checkWhole(field: string, value: number, least: number, most: number): void {
  if (!Number.isInteger(value) || value < least || value > most) {
    const rule = `it is a whole number from ${least} to ${most}`;
    throw new ConfigError({ field, value, rule });
  }
}
