import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError } from '../core/errors.ts';
import { checkTargetId } from '../core/ids.ts';
import { checkKnown } from '../core/options.ts';
import { type WorkTimings, workTimings } from '../lease/work-timings.ts';
import type { PipelineFunction } from './pipelines/pipeline.ts';

/** Things of which each can be used by one session at a time. */
export interface ResourceOptions {
  /** How many there are, called 1, 2, 3 …, or what each is called. */
  slots: number | readonly string[];
  /** How long a start waits for one to be free before its session ends with `R_NO_TUNER`; default 0. */
  wait?: Duration;
  /** What stands before a slot's name in the key of its lease; default the name of the pool, and for `tuners` `tuner`. */
  key?: string;
}

export interface CommandPipeline {
  /** A program and its arguments. It is not given to a shell. */
  command: readonly string[];
  /** Beside the worker's own environment and what it is told of its session. */
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  /** The pool that it needs a slot of; default `tuners` for `live` and null, none, for `vod`. */
  resource?: string | null;
}

export interface FunctionPipeline {
  run: PipelineFunction;
  resource?: string | null;
}

export type PipelineOption = PipelineFunction | FunctionPipeline | CommandPipeline;

export interface WorkerOptions {
  /**
   * Its own among all workers of the store, and the same at every start. A worker that has one, was killed and is started again on the same
   * host frees at once what it had; one without waits until that has run out. Never the host's name.
   */
  name?: string;
  /** Pools of scarce things, by name; default `{ tuners: 4 }`. All workers have to say the same. */
  resources?: Readonly<Record<string, number | readonly string[] | ResourceOptions>>;
  /** What runs for a session; default something small that can be seen. */
  pipelines?: { live?: PipelineOption; vod?: PipelineOption };
  /** How many starts may be under way at once, waiting for a slot included; default 64. Stops have no limit. */
  starts?: number;
  /** How long its leases last without a renewal: how long it takes until others go on with what it had, should it die. Default 30 s. */
  ttl?: Duration;
  /** How long a pipeline may take to end before it is killed; default 5 s. */
  grace?: Duration;
}

/** The same, checked, with what was left out. */
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
  /** What runs. */
  readonly work: PipelineFunction | CommandPipeline;
}

type Kind = 'live' | 'vod';

const KNOWN = new Set(['name', 'resources', 'pipelines', 'starts', 'ttl', 'grace']);
const FOR_RESOURCE = new Set(['slots', 'wait', 'key']);
const FOR_COMMAND = new Set(['command', 'env', 'cwd', 'resource']);
const FOR_FUNCTION = new Set(['run', 'resource']);
const KINDS: readonly Kind[] = ['live', 'vod'];
const DEFAULT_RESOURCES = { tuners: 4 };
/** The leases of tuners are named in the singular, as other programs name them. */
const DEFAULT_KEYS: Readonly<Record<string, string>> = { tuners: 'tuner' };
const DEFAULT_RESOURCE: Readonly<Record<Kind, string | null>> = { live: 'tuners', vod: null };
const DEFAULT_STARTS = 64;
const MOST_STARTS = 10_000;

export function readWorkerOptions(
  options: WorkerOptions,
  builtIn: PipelineFunction,
): WorkerSettings {
  checkKnown(options, KNOWN);
  const { name, starts = DEFAULT_STARTS, ttl, grace } = options;
  if (name !== undefined) checkTargetId(name, 'name');
  const isCount = Number.isInteger(starts) && starts >= 1 && starts <= MOST_STARTS;
  if (!isCount) refuse('starts', starts, 'it is a whole number from 1 to 10,000');
  const resources = readResources(options.resources ?? DEFAULT_RESOURCES);
  const pipelines = options.pipelines ?? {};
  checkKnown(pipelines, new Set(KINDS));
  const readPipeline = (kind: Kind) =>
    pipelineOf(kind, pipelines[kind] ?? { run: builtIn, ...withoutResource(kind, resources) });
  const settings = { live: readPipeline('live'), vod: readPipeline('vod') };
  for (const kind of KINDS) checkResource(`pipelines.${kind}`, settings[kind].resource, resources);
  const timings = workTimings({ ttl, grace });
  return {
    ...{ name: name ?? null, resources, pipelines: settings, starts },
    ...{ timings, graceMs: timings.stop },
  };
}

function readResources(given: NonNullable<WorkerOptions['resources']>): ResourceSettings[] {
  if (typeof given !== 'object' || given === null)
    return refuse('resources', given, 'it is an object: the pools by name');
  return Object.entries(given).map(([name, said]) => {
    checkTargetId(name, 'resources');
    const isBare = typeof said === 'number' || Array.isArray(said);
    const options = (isBare ? { slots: said } : said) as ResourceOptions;
    checkKnown(options, FOR_RESOURCE);
    const { slots, wait = 0, key = DEFAULT_KEYS[name] ?? name } = options;
    checkTargetId(key, `resources.${name}.key`);
    return { name, slots, key, waitMs: durationMs(wait, `resources.${name}.wait`) };
  });
}

/** Where there are no tuners, what is there by itself needs none. */
function withoutResource(kind: Kind, resources: readonly ResourceSettings[]): { resource?: null } {
  const isThere = resources.some(({ name }) => name === DEFAULT_RESOURCE[kind]);
  return isThere ? {} : { resource: null };
}

function pipelineOf(kind: Kind, said: PipelineOption): PipelineSettings {
  const field = `pipelines.${kind}`;
  if (typeof said === 'function') return { work: said, resource: DEFAULT_RESOURCE[kind] };
  if (typeof said !== 'object' || said === null)
    return refuse(field, said, 'it is a function, { run } or { command }');
  const { resource = DEFAULT_RESOURCE[kind] } = said;
  if ('command' in said) {
    checkKnown(said, FOR_COMMAND);
    checkCommand(`${field}.command`, said.command);
    return { work: said, resource };
  }
  checkKnown(said, FOR_FUNCTION);
  if (typeof said.run !== 'function') refuse(`${field}.run`, said.run, 'it has to be a function');
  return { work: said.run, resource };
}

function checkCommand(field: string, command: unknown): void {
  const isCommand =
    Array.isArray(command) &&
    command.length > 0 &&
    command.every((part) => typeof part === 'string');
  if (!isCommand || command[0] === '')
    refuse(field, command, "it is a program and its arguments: ['ffmpeg', '-i', …]");
}

function checkResource(
  field: string,
  resource: string | null,
  resources: readonly ResourceSettings[],
): void {
  if (resource === null || resources.some(({ name }) => name === resource)) return;
  const there = resources.map(({ name }) => name).join(', ') || 'none';
  const rule = `there is no such pool in resources; there are: ${there}. null is for what needs no slot`;
  refuse(`${field}.resource`, resource, rule);
}

function refuse(field: string, value: unknown, rule: string): never {
  throw new ConfigError({ field, value, rule });
}
