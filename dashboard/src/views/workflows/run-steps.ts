/** The steps of a function as they are listed, with one that fails just now. */
import type { ApiEvent } from '../../../../src/client/messages.ts';
import type { ApiRunStep, WorkflowDetail } from '../../../../src/client/operating-messages.ts';

export type ListedStep = Omit<ApiRunStep, 'state'> & {
  /** `retrying`: the store has nothing of it yet; its failed tries are in the log. */
  readonly state: ApiRunStep['state'] | 'retrying';
};

export const STEP_FAILED = 'step.failed';

/** Steps that are tried again now come last: the store keeps a step when it has ended. */
export function listedSteps(
  workflow: WorkflowDetail,
  events: readonly ApiEvent[],
): readonly ListedStep[] {
  const { run, isHeld, steps: history } = workflow;
  if (run === null) return [];
  const claimedAt = history.find(({ kind }) => kind === 'claimed')?.at ?? Number.POSITIVE_INFINITY;
  const known = new Set(run.steps.map(({ name }) => name));
  const open = new Map<string, ApiEvent[]>();
  for (const event of isHeld ? events : []) {
    const { step, at, workflow: of } = event;
    if (typeof step !== 'string' || known.has(step) || at < claimedAt || of !== workflow.id)
      continue;
    open.set(step, [...(open.get(step) ?? []), event]);
  }
  return [...run.steps, ...[...open].map(([name, failures]) => retrying(name, failures))];
}

function retrying(name: string, failures: readonly ApiEvent[]): ListedStep {
  const sorted = [...failures].sort((a, b) => a.at - b.at);
  const last = sorted.at(-1);
  return {
    name,
    kind: 'step',
    state: 'retrying',
    at: null,
    tookMs: null,
    until: last === undefined ? null : last.at + Number(last.retryInMs),
    tries: Number(last?.tries ?? 0) + 1,
    failed: sorted.map(({ at, tries, why }) => ({ at, tries: Number(tries), error: String(why) })),
    error: null,
    value: null,
    action: null,
    result: null,
    signal: null,
  };
}

export interface StepWords {
  readonly word: string;
  readonly tone: 'good' | 'warn' | 'bad' | '';
}

export const STEP_STATES: Readonly<Record<ListedStep['state'], StepWords>> = {
  done: { word: 'done', tone: '' },
  failed: { word: 'failed', tone: 'bad' },
  dead: { word: 'dead letter', tone: 'bad' },
  running: { word: 'in progress', tone: 'good' },
  sleeping: { word: 'sleeping', tone: '' },
  waiting: { word: 'waiting', tone: '' },
  timeout: { word: 'no signal in time', tone: 'warn' },
  retrying: { word: 'retrying', tone: 'warn' },
};

export const KINDS: Readonly<Record<ApiRunStep['kind'], string>> = {
  step: 'step',
  call: 'call',
  sleep: 'sleep',
  signal: 'wait',
};
