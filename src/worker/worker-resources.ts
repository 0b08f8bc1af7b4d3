/** The leases, pools and pipelines that all runs of one worker share. */
import type { Clock } from '../core/clock.ts';
import type { Kind } from '../intents/kind.ts';
import type { Leases } from '../lease/leases.ts';
import type { AcquireOptions } from '../lease/options.ts';
import { Pool } from '../lease/pool/pool.ts';
import type { Runtime } from '../store/runtime.ts';
import { commandPipeline } from './pipelines/command.ts';
import { callWithParams, callWithSession, functionPipeline } from './pipelines/function.ts';
import type { Pipeline } from './pipelines/pipeline.ts';
import type { Commands } from './supervisor/commands.ts';
import type { Host, HostLock } from './supervisor/host.ts';
import type { PipelineWork, WorkerSettings } from './worker-options.ts';

/** The process and the host that a worker runs in. */
export interface WorkerEnvironment {
  readonly host: Host;
  /** The prefix of all keys in the store: workers under two prefixes are different workers. */
  readonly prefix: string;
  /** The declared kinds; default none. */
  readonly kinds?: ReadonlyMap<string, Kind> | undefined;
  /** Runs commands. Their supervisor keeps the lock until it is gone, too. */
  commands(lock: HostLock | null): Commands;
}

interface SizedPool {
  readonly pool: Pool;
  /** How long a start waits for a slot. */
  readonly waitMs: number;
}

export interface WorkerResources {
  readonly leases: Leases;
  /** How the worker acquires its leases. */
  readonly acquireOptions: AcquireOptions;
  /** How long a pipeline may take to end. */
  readonly graceMs: number;
  /** The pools of its slots, by name. */
  readonly pools: ReadonlyMap<string, SizedPool>;
}

/** By kind. */
export type Pipelines = ReadonlyMap<string, Pipeline>;

export function workerResources(
  rt: Runtime,
  leases: Leases,
  { resources, timings, graceMs }: WorkerSettings,
): WorkerResources {
  const acquireOptions: AcquireOptions = { ...timings, class: 'resource' };
  leases.check(acquireOptions);
  const pools = new Map<string, SizedPool>();
  for (const { name, slots, key, waitMs } of resources)
    pools.set(name, {
      pool: new Pool(rt, leases, name, { ...acquireOptions, slots, key }),
      waitMs,
    });
  return { leases, acquireOptions, graceMs, pools };
}

/** Makes the pipelines. `commands` is called for each that is a command. */
export function openPipelines(
  clock: Clock,
  { kinds, graceMs }: WorkerSettings,
  commands: () => Commands,
): Pipelines {
  const startOf = (work: PipelineWork): Pipeline['start'] => {
    if (typeof work.run === 'object')
      return commandPipeline(clock, commands(), { command: work.run, graceMs });
    const call = work.of === 'params' ? callWithParams(work.run) : callWithSession(work.run);
    return functionPipeline(clock, call);
  };
  return new Map(
    [...kinds].map(([name, { resource, timeLimitMs, tries, work }]) => [
      name,
      { resource, timeLimitMs, tries, start: startOf(work) },
    ]),
  );
}
