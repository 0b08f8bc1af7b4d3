/** What the function of a workflow does, in plain words. */
import type { ApiRun, ApiWorkflow, RunPhase } from '../../../src/client/operating-messages.ts';
import type { IconName } from '../parts/icon.tsx';

/** As operators see it. The store's `suspended` is a sleep, or a wait for a signal. */
export type RunState = 'running' | 'due' | 'sleeping' | 'waiting' | 'retrying' | 'failed' | 'done';

export interface StateWords {
  readonly word: string;
  readonly icon: IconName;
  readonly tone: 'good' | 'warn' | 'bad' | '';
  readonly means: string;
  /** The server's name for it. */
  readonly phase: RunPhase;
}

export const RUN_STATES: Readonly<Record<RunState, StateWords>> = {
  running: {
    word: 'Running',
    icon: 'dot',
    tone: 'good',
    means: 'An instance runs its function.',
    phase: 'running',
  },
  due: {
    word: 'Due',
    icon: 'ring',
    tone: 'warn',
    means: 'No instance runs it yet. One that runs its function takes it.',
    phase: 'running',
  },
  sleeping: {
    word: 'Sleeping',
    icon: 'waiting',
    tone: '',
    means: 'Its function sleeps. No instance holds it.',
    phase: 'suspended',
  },
  waiting: {
    word: 'Waiting',
    icon: 'half',
    tone: '',
    means: 'Its function waits for a signal. No instance holds it.',
    phase: 'suspended',
  },
  retrying: {
    word: 'Retrying',
    icon: 'warning',
    tone: 'warn',
    means: 'Its function failed, and is tried again.',
    phase: 'retrying',
  },
  failed: {
    word: 'Failed',
    icon: 'cross',
    tone: 'bad',
    means: 'Its function failed for the last time. Restart it to try again.',
    phase: 'failed',
  },
  done: {
    word: 'Done',
    icon: 'check',
    tone: '',
    means: 'Its function returned.',
    phase: 'done',
  },
};

export const RUN_STATE_NAMES = Object.keys(RUN_STATES) as readonly RunState[];

export function isRunState(text: string): text is RunState {
  return Object.hasOwn(RUN_STATES, text);
}

/** Null for a workflow that no function runs. */
export function runStateOf({ run, isHeld }: Pick<ApiWorkflow, 'run' | 'isHeld'>): RunState | null {
  if (run === null) return null;
  if (run.phase === 'done' || run.phase === 'failed') return run.phase;
  if (isHeld) return 'running';
  if (run.phase === 'retrying') return 'retrying';
  if (run.phase === 'running' || run.waits.length === 0) return 'due';
  return run.waits.some(({ kind }) => kind === 'signal') ? 'waiting' : 'sleeping';
}

/** The names of the sleeps and signals that it waits for. */
export function waitsText({ waits }: ApiRun): string {
  return waits.map(({ name }) => name).join(' or ');
}
