/**
 * What all runs of one worker share: leases, the pools of its slots, its pipelines and commands.
 */
import { assert } from '../core/assert.ts';
import type { Leases } from '../lease/leases.ts';
import type { AcquireOptions } from '../lease/options.ts';
import { Pool } from '../lease/pool/pool.ts';
import type { Runtime } from '../store/runtime.ts';
import { commandPipeline } from './pipelines/command.ts';
import { functionPipeline } from './pipelines/function.ts';
import type { Pipeline } from './pipelines/pipeline.ts';
import type { Commands } from './supervisor/commands.ts';
import type { Host, HostLock } from './supervisor/host.ts';
import type { Kind, PipelineSettings, WorkerSettings } from './worker-options.ts';

/** The process and the host that a worker runs in. */
export interface WorkerEnvironment {
  readonly host: Host;
  /** The prefix of all keys in the store: workers under two prefixes are different workers. */
  readonly prefix: string;
  /** Runs commands. Their supervisor keeps the lock until it is gone, too. */
  commands(lock: HostLock | null): Commands;
}

interface SizedPool {
  readonly pool: Pool;
  /** How long a start waits for a slot. */
  readonly waitMs: number;
}

export class WorkerResources {
  readonly leases: Leases;
  /** How the worker acquires its leases. */
  readonly acquireOptions: AcquireOptions;
  /** How long a pipeline may take to end. */
  readonly graceMs: number;
  readonly #rt: Runtime;
  readonly #settings: WorkerSettings;
  readonly #pools = new Map<string, SizedPool>();
  #pipelines: Readonly<Record<Kind, Pipeline>> | null = null;
  #commands: Commands | null = null;

  constructor(rt: Runtime, leases: Leases, settings: WorkerSettings) {
    const { resources, timings, graceMs } = settings;
    this.#rt = rt;
    this.leases = leases;
    this.#settings = settings;
    this.graceMs = graceMs;
    this.acquireOptions = { ...timings, class: 'resource' };
    leases.check(this.acquireOptions);
    for (const { name, slots, key, waitMs } of resources) {
      const options = { ...this.acquireOptions, slots, key };
      this.#pools.set(name, { pool: new Pool(rt, leases, name, options), waitMs });
    }
  }

  get pools(): readonly Pool[] {
    return [...this.#pools.values()].map(({ pool }) => pool);
  }

  pool(name: string): SizedPool {
    const found = this.#pools.get(name);
    assert(found !== undefined, `the worker has a pool '${name}'`);
    return found;
  }

  pipeline(kind: Kind): Pipeline {
    assert(
      this.#pipelines !== null,
      'the pipelines of a worker are opened before it runs sessions',
    );
    return this.#pipelines[kind];
  }

  /** Makes the pipelines. Starts the supervisor of commands if one of them is a command. */
  openPipelines(commands: () => Commands): void {
    const { live, vod } = this.#settings.pipelines;
    this.#pipelines = { live: this.#open(live, commands), vod: this.#open(vod, commands) };
  }

  /** Resolves when no command runs any more. */
  async closePipelines(): Promise<void> {
    await this.#commands?.close();
  }

  #open(settings: PipelineSettings, commands: () => Commands): Pipeline {
    const { clock } = this.#rt;
    const { work, resource } = settings;
    if (typeof work === 'function') return functionPipeline(clock, work, resource);
    this.#commands ??= commands();
    return commandPipeline(clock, this.#commands, {
      command: work,
      resource,
      graceMs: this.graceMs,
    });
  }
}
