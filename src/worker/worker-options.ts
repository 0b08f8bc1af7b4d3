import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError } from '../core/errors.ts';
import { checkTargetId } from '../core/ids.ts';
import { checkKnown } from '../core/options.ts';
import {
  BUILT_IN_KINDS,
  checkCommand,
  DEFAULT_PRIORITY,
  type Kind,
  type KindCommand,
  type KindFunction,
} from '../intents/kind.ts';
import { type WorkTimings, workTimings } from '../lease/timings.ts';
import type { PipelineFunction } from './pipelines/pipeline.ts';

/** A pool of scarce things: one session at a time can use each of them. */
export interface ResourceOptions {
  /** How many there are, called 1, 2, 3 …, or what each is called. */
  slots: number | readonly string[];
  /**
   * How long a start waits for a free slot before its session ends with `R_NO_SLOT` (for `live` and
   * `vod`: `R_NO_TUNER`); default 0.
   */
  wait?: Duration;
  /** The prefix of a slot's lease key; default the name of the pool, and `tuner` for `tuners`. */
  key?: string;
}

export interface CommandPipeline {
  /** A program and its arguments. No shell reads them. */
  command: readonly string[];
  /** Added to the worker's own environment and the variables about the session. */
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  /** The pool that it needs a slot of; null: none. Default `tuners` for `live`, null for `vod`. */
  resource?: string | null;
}

export interface FunctionPipeline {
  run: PipelineFunction;
  resource?: string | null;
}

export type PipelineOption = PipelineFunction | FunctionPipeline | CommandPipeline;

export interface WorkerOptions {
  /**
   * Unique among all workers of the store, and the same at every start. A named worker that was
   * killed, and is restarted on the same host, frees at once the leases it held. Without a name,
   * they have to expire. Do not use the name of the host.
   */
  name?: string;
  /**
   * The kinds of sessions that it takes, and no others; `live` and `vod` are kinds, too. Default:
   * these two, and every declared kind with a `run`.
   */
  kinds?: readonly string[];
  /** Pools of scarce things that declared kinds need, by name. The same at all workers. */
  pools?: Readonly<Record<string, number | readonly string[] | ResourceOptions>>;
  /** Pools of `live` and `vod`, by name; default `{ tuners: 4 }`. The same at all workers. */
  resources?: Readonly<Record<string, number | readonly string[] | ResourceOptions>>;
  /** What runs for `live` and `vod`; default a small function that only reports progress. */
  pipelines?: { live?: PipelineOption; vod?: PipelineOption };
  /**
   * How many starts of each kind may be under way at once, those that wait for a slot included;
   * default 64. Stops have no limit.
   */
  starts?: number;
  /**
   * The TTL of its leases: if the worker dies, other workers continue its sessions after this time.
   * Default 30 s.
   */
  ttl?: Duration;
  /** How long a pipeline may take to end before it is killed; default 5 s. */
  grace?: Duration;
}

/** The options, checked and with their defaults. */
export interface WorkerSettings {
  readonly name: string | null;
  readonly resources: readonly ResourceSettings[];
  /** The kinds that it takes, by name; the highest priority first. */
  readonly kinds: ReadonlyMap<string, PipelineSettings>;
  readonly starts: number;
  readonly timings: WorkTimings;
  readonly graceMs: number;
}

interface ResourceSettings {
  readonly name: string;
  readonly slots: number | readonly string[];
  readonly key: string;
  readonly waitMs: number;
}

interface PipelineSettings {
  readonly resource: string | null;
  readonly priority: number;
  /** How long one try may run; null: no limit. */
  readonly timeLimitMs: number | null;
  /** See `KindOptions`. */
  readonly tries: number | null;
  readonly work: PipelineWork;
}

/** The function or the command that runs. Those of declared kinds are given `params`. */
export type PipelineWork =
  | { readonly of: 'session'; readonly run: PipelineFunction | CommandPipeline }
  | { readonly of: 'params'; readonly run: KindFunction | KindCommand };

type BuiltIn = (typeof BUILT_IN_KINDS)[number];

const KNOWN = new Set([
  'name',
  'kinds',
  'pools',
  'resources',
  'pipelines',
  'starts',
  'ttl',
  'grace',
]);
const KNOWN_OF_RESOURCE = new Set(['slots', 'wait', 'key']);
const KNOWN_OF_COMMAND = new Set(['command', 'env', 'cwd', 'resource']);
const KNOWN_OF_FUNCTION = new Set(['run', 'resource']);
const DEFAULT_RESOURCES = { tuners: 4 };
/** Lease keys of tuners are in the singular, as other programs write them. */
const DEFAULT_KEYS: Readonly<Record<string, string>> = { tuners: 'tuner' };
const DEFAULT_RESOURCE: Readonly<Record<BuiltIn, string | null>> = { live: 'tuners', vod: null };
const DEFAULT_STARTS = 64;
const MAX_STARTS = 10_000;

export function readWorkerOptions(
  options: WorkerOptions,
  builtIn: PipelineFunction,
  declared: ReadonlyMap<string, Kind> = new Map(),
): WorkerSettings {
  checkKnown(options, KNOWN);
  const { name, starts = DEFAULT_STARTS, ttl, grace } = options;
  if (name !== undefined) checkTargetId(name, 'name');
  const isCount = Number.isInteger(starts) && starts >= 1 && starts <= MAX_STARTS;
  if (!isCount) refuse('starts', starts, 'it must be a whole number from 1 to 10,000');
  const resources = [
    ...readResources('resources', options.resources ?? DEFAULT_RESOURCES),
    ...readResources('pools', options.pools ?? {}),
  ];
  checkDistinct(resources);
  const timings = workTimings({ ttl, grace });
  return {
    name: name ?? null,
    resources,
    kinds: readKinds(options, declared, resources, builtIn),
    starts,
    timings,
    graceMs: timings.stop,
  };
}

function readKinds(
  { kinds: wanted, pipelines = {} }: WorkerOptions,
  declared: ReadonlyMap<string, Kind>,
  resources: readonly ResourceSettings[],
  builtIn: PipelineFunction,
): ReadonlyMap<string, PipelineSettings> {
  checkKnown(pipelines, new Set(BUILT_IN_KINDS));
  const known = new Map<string, PipelineSettings>();
  for (const kind of BUILT_IN_KINDS) {
    const option = pipelines[kind] ?? builtInOption(kind, builtIn, resources);
    known.set(kind, pipelineOf(kind, option));
  }
  for (const [name, { pool, priority, timeLimitMs, tries, run }] of declared)
    if (run !== null)
      known.set(name, {
        resource: pool,
        priority,
        timeLimitMs,
        tries,
        work: { of: 'params', run },
      });
  const names = wanted === undefined ? [...known.keys()] : checkNames(wanted, known, declared);
  const taken = names.map((name) => [name, known.get(name) as PipelineSettings] as const);
  for (const [name, { resource, work }] of taken) {
    const field = work.of === 'session' ? `pipelines.${name}.resource` : `kinds.${name}.pool`;
    checkResource(field, resource, resources);
  }
  return new Map(taken.toSorted(([, a], [, b]) => b.priority - a.priority));
}

function checkNames(
  names: readonly string[],
  known: ReadonlyMap<string, PipelineSettings>,
  declared: ReadonlyMap<string, Kind>,
): readonly string[] {
  if (!Array.isArray(names) || names.length === 0)
    refuse('kinds', names, 'it must be a list of kinds, and not empty');
  const all = [...new Set([...BUILT_IN_KINDS, ...declared.keys()])].join(', ');
  for (const name of names) {
    if (known.has(name)) continue;
    if (declared.has(name))
      refuse(`kinds.${name}.run`, undefined, 'a worker that takes this kind needs it');
    refuse('kinds', name, `this kind is not declared. Declared kinds: ${all}`);
  }
  return [...new Set(names)];
}

function checkDistinct(resources: readonly ResourceSettings[]): void {
  const names = new Set<string>();
  for (const { name } of resources) {
    if (names.has(name)) refuse('pools', name, 'resources has a pool of this name already');
    names.add(name);
  }
}

function readResources(
  field: 'resources' | 'pools',
  resources: NonNullable<WorkerOptions['resources']>,
): ResourceSettings[] {
  if (typeof resources !== 'object' || resources === null)
    return refuse(field, resources, 'it must be an object: the pools by name');
  return Object.entries(resources).map(([name, option]) => {
    checkTargetId(name, field);
    const isBare = typeof option === 'number' || Array.isArray(option);
    const options = (isBare ? { slots: option } : option) as ResourceOptions;
    checkKnown(options, KNOWN_OF_RESOURCE);
    const { slots, wait = 0, key = DEFAULT_KEYS[name] ?? name } = options;
    checkTargetId(key, `${field}.${name}.key`);
    return { name, slots, key, waitMs: durationMs(wait, `${field}.${name}.wait`) };
  });
}

/** Where no tuners are configured, the built-in pipeline needs none. */
function builtInOption(
  kind: BuiltIn,
  run: PipelineFunction,
  resources: readonly ResourceSettings[],
): FunctionPipeline {
  const hasDefault = resources.some(({ name }) => name === DEFAULT_RESOURCE[kind]);
  return hasDefault ? { run } : { run, resource: null };
}

function pipelineOf(kind: BuiltIn, option: PipelineOption): PipelineSettings {
  const field = `pipelines.${kind}`;
  const settings = (run: PipelineFunction | CommandPipeline, resource: string | null) => ({
    resource,
    priority: DEFAULT_PRIORITY,
    timeLimitMs: null,
    tries: null,
    work: { of: 'session', run } as const,
  });
  if (typeof option === 'function') return settings(option, DEFAULT_RESOURCE[kind]);
  if (typeof option !== 'object' || option === null)
    return refuse(field, option, 'it must be a function, { run } or { command }');
  const { resource = DEFAULT_RESOURCE[kind] } = option;
  if ('command' in option) {
    checkKnown(option, KNOWN_OF_COMMAND);
    checkCommand(`${field}.command`, option.command);
    return settings(option, resource);
  }
  checkKnown(option, KNOWN_OF_FUNCTION);
  if (typeof option.run !== 'function') refuse(`${field}.run`, option.run, 'it must be a function');
  return settings(option.run, resource);
}

function checkResource(
  field: string,
  resource: string | null,
  resources: readonly ResourceSettings[],
): void {
  if (resource === null || resources.some(({ name }) => name === resource)) return;
  const there = resources.map(({ name }) => name).join(', ') || 'none';
  const rule = `there is no such pool, only: ${there}. Pass null if it needs no slot`;
  refuse(field, resource, rule);
}

function refuse(field: string, value: unknown, rule: string): never {
  throw new ConfigError({ field, value, rule });
}
