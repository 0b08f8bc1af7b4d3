import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError } from '../core/errors.ts';
import { checkTargetId } from '../core/ids.ts';
import { checkKnown } from '../core/options.ts';
import { type WorkTimings, workTimings } from '../lease/timings.ts';
import type { PipelineFunction } from './pipelines/pipeline.ts';

/** A pool of scarce things: one session at a time can use each of them. */
export interface ResourceOptions {
  /** How many there are, called 1, 2, 3 …, or what each is called. */
  slots: number | readonly string[];
  /**
   * How long a start waits for a free slot before its session ends with `R_NO_TUNER`; default 0.
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
  /** Pools of scarce things, by name; default `{ tuners: 4 }`. The same at all workers. */
  resources?: Readonly<Record<string, number | readonly string[] | ResourceOptions>>;
  /** What runs for a session; default a small function that only reports progress. */
  pipelines?: { live?: PipelineOption; vod?: PipelineOption };
  /**
   * How many starts may be under way at once, those that wait for a slot included; default 64.
   * Stops have no limit.
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
  readonly pipelines: Readonly<Record<Kind, PipelineSettings>>;
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

export interface PipelineSettings {
  readonly resource: string | null;
  /** The function or the command that runs. */
  readonly work: PipelineFunction | CommandPipeline;
}

export type Kind = 'live' | 'vod';

const KNOWN = new Set(['name', 'resources', 'pipelines', 'starts', 'ttl', 'grace']);
const KNOWN_OF_RESOURCE = new Set(['slots', 'wait', 'key']);
const KNOWN_OF_COMMAND = new Set(['command', 'env', 'cwd', 'resource']);
const KNOWN_OF_FUNCTION = new Set(['run', 'resource']);
const KINDS: readonly Kind[] = ['live', 'vod'];
const DEFAULT_RESOURCES = { tuners: 4 };
/** Lease keys of tuners are in the singular, as other programs write them. */
const DEFAULT_KEYS: Readonly<Record<string, string>> = { tuners: 'tuner' };
const DEFAULT_RESOURCE: Readonly<Record<Kind, string | null>> = { live: 'tuners', vod: null };
const DEFAULT_STARTS = 64;
const MAX_STARTS = 10_000;

export function readWorkerOptions(
  options: WorkerOptions,
  builtIn: PipelineFunction,
): WorkerSettings {
  checkKnown(options, KNOWN);
  const { name, starts = DEFAULT_STARTS, ttl, grace } = options;
  if (name !== undefined) checkTargetId(name, 'name');
  const isCount = Number.isInteger(starts) && starts >= 1 && starts <= MAX_STARTS;
  if (!isCount) refuse('starts', starts, 'it must be a whole number from 1 to 10,000');
  const resources = readResources(options.resources ?? DEFAULT_RESOURCES);
  const pipelines = options.pipelines ?? {};
  checkKnown(pipelines, new Set(KINDS));
  const readPipeline = (kind: Kind) =>
    pipelineOf(kind, pipelines[kind] ?? builtInOption(kind, builtIn, resources));
  const settings = { live: readPipeline('live'), vod: readPipeline('vod') };
  for (const kind of KINDS) checkResource(`pipelines.${kind}`, settings[kind].resource, resources);
  const timings = workTimings({ ttl, grace });
  return {
    name: name ?? null,
    resources,
    pipelines: settings,
    starts,
    timings,
    graceMs: timings.stop,
  };
}

function readResources(resources: NonNullable<WorkerOptions['resources']>): ResourceSettings[] {
  if (typeof resources !== 'object' || resources === null)
    return refuse('resources', resources, 'it must be an object: the pools by name');
  return Object.entries(resources).map(([name, option]) => {
    checkTargetId(name, 'resources');
    const isBare = typeof option === 'number' || Array.isArray(option);
    const options = (isBare ? { slots: option } : option) as ResourceOptions;
    checkKnown(options, KNOWN_OF_RESOURCE);
    const { slots, wait = 0, key = DEFAULT_KEYS[name] ?? name } = options;
    checkTargetId(key, `resources.${name}.key`);
    return { name, slots, key, waitMs: durationMs(wait, `resources.${name}.wait`) };
  });
}

/** Where no tuners are configured, the built-in pipeline needs none. */
function builtInOption(
  kind: Kind,
  run: PipelineFunction,
  resources: readonly ResourceSettings[],
): FunctionPipeline {
  const hasDefault = resources.some(({ name }) => name === DEFAULT_RESOURCE[kind]);
  return hasDefault ? { run } : { run, resource: null };
}

function pipelineOf(kind: Kind, option: PipelineOption): PipelineSettings {
  const field = `pipelines.${kind}`;
  if (typeof option === 'function') return { work: option, resource: DEFAULT_RESOURCE[kind] };
  if (typeof option !== 'object' || option === null)
    return refuse(field, option, 'it must be a function, { run } or { command }');
  const { resource = DEFAULT_RESOURCE[kind] } = option;
  if ('command' in option) {
    checkKnown(option, KNOWN_OF_COMMAND);
    checkCommand(`${field}.command`, option.command);
    return { work: option, resource };
  }
  checkKnown(option, KNOWN_OF_FUNCTION);
  if (typeof option.run !== 'function') refuse(`${field}.run`, option.run, 'it must be a function');
  return { work: option.run, resource };
}

function checkCommand(field: string, command: unknown): void {
  const isCommand =
    Array.isArray(command) &&
    command.length > 0 &&
    command.every((part) => typeof part === 'string');
  if (!isCommand || command[0] === '')
    refuse(field, command, "it must be a program and its arguments: ['ffmpeg', '-i', …]");
}

function checkResource(
  field: string,
  resource: string | null,
  resources: readonly ResourceSettings[],
): void {
  if (resource === null || resources.some(({ name }) => name === resource)) return;
  const there = resources.map(({ name }) => name).join(', ') || 'none';
  const rule = `resources has no such pool, it has: ${there}. Pass null if it needs no slot`;
  refuse(`${field}.resource`, resource, rule);
}

function refuse(field: string, value: unknown, rule: string): never {
  throw new ConfigError({ field, value, rule });
}
