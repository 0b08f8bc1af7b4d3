import type { Duration } from '../base/duration.ts';
import type { PipelineFunction } from './pipeline.ts';

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
