/**
 * Runs of workflow functions: the part of the port that keeps their steps, and says which run is
 * due. Each verb is one atomic step.
 *
 * A **run** belongs to a workflow and has the name of a function. A **step** has a name that is
 * unique in its workflow; it is kept once, and a step that is done never changes. A **signal** is
 * sent by any process, and is kept until a step receives it.
 *
 * `keep` and `pause` are taken only from the orchestrator that holds the lease and the tenure of
 * the workflow, as the steps of `workflow-store.ts`. They neither check nor change its epoch.
 *
 * All times are of the store's wall clock. The clocks of its clients do not matter.
 */
import type { Call } from './store.ts';
import { HISTORY_ERROR_MOST, type NotHeld } from './workflow-store.ts';

export interface RunStore {
  /**
   * Makes a workflow and its run, due at once. `found` if the workflow exists: nothing changes.
   * `function` is then the one that it has, or null.
   */
  start(id: string, request: StartRequest, call: Call): Promise<StartRunReply>;
  /**
   * Gives out up to `most` runs of these functions that are due and that no orchestrator holds. A
   * run that is given out is due again after `graceMs`; one that is held, when its lease would
   * expire. Sends no run twice within that time.
   */
  due(functions: readonly string[], call: DueCall): Promise<DueReply>;
  /** What is kept of a workflow beyond its actions; null if there is no workflow. */
  load(id: string, call: Call): Promise<LoadedRun | null>;
  /** The runs of workflows; null for one without a function, and for one that does not exist. */
  read(ids: readonly string[], call: Call): Promise<(RunSnapshot | null)[]>;
  /**
   * Keeps a step. One that is done stays as it is, so the same request may be sent twice; one that
   * is not done keeps its time. With `receives`, that signal is received in the same step.
   */
  keep(id: string, step: KeepStep, call: Call): Promise<KeepReply>;
  /**
   * Keeps a signal, makes a suspended run due, and hints to the orchestrator. A signal whose id the
   * workflow knows is not kept again.
   */
  signal(id: string, signal: NewSignal, call: Call): Promise<SignalReply>;
  /** Ends what the orchestrator does with the run for now, or permanently. */
  pause(id: string, step: PauseStep, call: Call): Promise<PauseReply>;
  /** Makes a failed run due again, with all its tries. */
  restart(id: string, call: Call): Promise<RestartReply>;
}

/**
 * - `running`: due, or held.
 * - `suspended`: until its time, or a signal.
 * - `retrying`: its function threw; until its next try.
 * - `done`: `value` is what the function returned.
 * - `failed`: `value` is the error of its last try.
 */
export type RunPhase = 'running' | 'suspended' | 'retrying' | 'done' | 'failed';

export interface StartRequest {
  readonly function: string;
  readonly input: unknown;
}

export type StartRunReply =
  | { readonly kind: 'started' }
  | { readonly kind: 'found'; readonly function: string | null };

export interface DueCall extends Call {
  readonly most: number;
  readonly graceMs: number;
}

export interface DueReply {
  readonly runs: readonly { readonly id: string; readonly function: string }[];
  /** Until the next run that is suspended or retrying is due; null if there is none. */
  readonly nextInMs: number | null;
  /**
   * Until the next run that was given out is due again, if its instance has died; null for none.
   */
  readonly givenInMs: number | null;
}

export interface RunSnapshot {
  readonly function: string;
  readonly phase: RunPhase;
  /** How many tries in a row have failed. */
  readonly tries: number;
  /** What a suspended run waits for, as its orchestrator said it. */
  readonly waits: unknown;
  /** The result, or the error of the last failed try; null before. */
  readonly value: unknown;
  /** Null if no time is set. 0 if it is due. */
  readonly dueInMs: number | null;
}

export interface LoadedRun {
  /** Null if the workflow has no function. */
  readonly run: RunSnapshot | null;
  readonly input: unknown;
  /** In the order in which they were first kept. */
  readonly steps: readonly StoredStep[];
  /** Those that no step has received, in the order in which they came. */
  readonly signals: readonly StoredSignal[];
  /** How many signals have come, received ones included. */
  readonly signalCount: number;
  readonly nowMs: number;
}

export type StepKind = 'step' | 'call' | 'sleep' | 'signal';

export interface StoredStep {
  readonly name: string;
  readonly kind: StepKind;
  readonly isDone: boolean;
  readonly value: unknown;
  /** When it was first kept. */
  readonly atMs: number;
}

export interface KeepStep {
  readonly leaseId: string;
  readonly name: string;
  readonly kind: StepKind;
  readonly isDone: boolean;
  readonly value: unknown;
  /** The id of the signal that it receives. */
  readonly receives?: string | undefined;
}

export type KeepReply =
  /** `atMs`: when it was first kept. */
  { readonly kind: 'done'; readonly atMs: number; readonly nowMs: number } | NotHeld | RunFull;

export interface NewSignal {
  readonly id: string;
  readonly name: string;
  readonly value: unknown;
}

export interface StoredSignal extends NewSignal {
  readonly atMs: number;
}

export type SignalReply =
  | { readonly kind: 'kept' }
  /** There is no such workflow. */
  | { readonly kind: 'absent' }
  /** Its function has returned: no line waits for a signal any more. */
  | { readonly kind: 'ended' }
  | RunFull;

/** There would be more than `RUN_STEPS_MOST`, `RUN_SIGNALS_MOST` or `RUN_MOST_BYTES`. */
export interface RunFull {
  readonly kind: 'full';
  readonly steps: number;
  readonly signals: number;
  readonly bytes: number;
}

export interface PauseStep {
  readonly leaseId: string;
  readonly phase: RunPhase;
  /** How many signals the function knows of. Refused as `signalled` if there are more. */
  readonly signalCount: number;
  /** When it is due, from now; null: never by itself. */
  readonly wakeInMs: number | null;
  /** The tries in a row that have failed. */
  readonly tries: number;
  readonly waits: unknown;
  readonly value: unknown;
  /** Names of steps that are removed: they failed, and are to run again. */
  readonly forgets: readonly string[];
}

export type PauseReply = { readonly kind: 'done' } | { readonly kind: 'signalled' } | NotHeld;

export type RestartReply =
  | { readonly kind: 'restarted'; readonly function: string }
  /** There is no workflow of this id, or it has no function. */
  | { readonly kind: 'absent' }
  /** It has not failed. */
  | { readonly kind: 'not-failed'; readonly phase: RunPhase };

/** Steps of one workflow, calls included. Replaying more takes too long. */
export const RUN_STEPS_MOST = 1_000;
/** Signals to one workflow, received ones included. */
export const RUN_SIGNALS_MOST = 1_000;
/** Of the steps and signals of one workflow together: they are loaded in one request. */
export const RUN_MOST_BYTES = 16 * 1_024 * 1_024;

/** What the history says of a pause: what the run waits for, or its error. */
export function pauseDetail({ phase, waits, value }: PauseStep): string {
  const isError = phase === 'retrying' || phase === 'failed';
  const said = isError ? value : phase === 'suspended' ? waits : '';
  const text = typeof said === 'string' ? said : JSON.stringify(said ?? '');
  return text.slice(0, HISTORY_ERROR_MOST);
}

/** Hints of runs of a function that are due, or have ended. Each message is the workflow's id. */
export function runTopic(name: string): string {
  return `run:${name}`;
}
