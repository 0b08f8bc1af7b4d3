/** The list of workflows, page by page, sorted by id. */
import type {
  ApiWorkflow,
  WorkflowsPage,
  WorkflowsQuery,
} from '../../../../src/client/operating-messages.ts';
import {
  isRunState,
  RUN_STATE_NAMES,
  RUN_STATES,
  type RunState,
  runStateOf,
} from '../../data/run-words.ts';

export interface WorkflowList {
  readonly workflows: readonly ApiWorkflow[];
  /** There are more. */
  readonly hasMore: boolean;
}

/** What the address says. Text that is no filter of ours shows all: the user may have typed it. */
export interface Filter {
  readonly text: string;
  /** The name of a function; `NO_FUNCTION` for workflows without one. */
  readonly name: string;
  readonly state: string;
}

/** Names of functions have no brackets. */
export const NO_FUNCTION = '(none)';

/** Which of them are shown. */
export const SHOWN: Readonly<Record<string, string>> = {
  '': 'all states',
  ...Object.fromEntries(
    RUN_STATE_NAMES.map((state) => [state, RUN_STATES[state].word.toLowerCase()]),
  ),
  held: 'held now',
  free: 'not held',
  acting: 'with actions in progress',
};

const PAGE = 1_000;
/** A filter may leave pages empty: so many requests, and then the user asks for more. */
const MOST_PAGES = 40;

export async function listOf(
  page: (query: WorkflowsQuery) => Promise<WorkflowsPage>,
  most: number,
  filter: WorkflowsQuery = {},
): Promise<WorkflowList> {
  const workflows: ApiWorkflow[] = [];
  let cursor: string | undefined;
  let pages = 0;
  do {
    const next = await page({ limit: PAGE, ...filter, ...(cursor !== undefined && { cursor }) });
    workflows.push(...next.workflows);
    cursor = next.cursor;
  } while (cursor !== undefined && workflows.length < most && ++pages < MOST_PAGES);
  return { workflows, hasMore: cursor !== undefined };
}

/** The part of a filter that the server knows; null if it knows none of it. */
export function serverFilter({ name, state }: Filter): WorkflowsQuery | null {
  const query = {
    ...(name !== '' && name !== NO_FUNCTION && { function: name }),
    ...(isRunState(state) && { phase: RUN_STATES[state].phase }),
  };
  // A run that an instance holds is shown as running, whatever it waited for before.
  if (state === 'running') return { ...query, phase: ['running', 'suspended', 'retrying'] };
  if (state === 'due') return { ...query, phase: ['running', 'suspended'] };
  return Object.keys(query).length === 0 ? null : query;
}

export function filtered(
  workflows: readonly ApiWorkflow[],
  { text, name, state }: Filter,
): readonly ApiWorkflow[] {
  const wanted = text.toLowerCase();
  return workflows.filter((workflow) => {
    const { id, run, isHeld, unresolved, leaseId } = workflow;
    return (
      (name === '' || (run?.function ?? NO_FUNCTION) === name) &&
      (!isRunState(state) || runStateOf(workflow) === state) &&
      (state !== 'held' || isHeld) &&
      (state !== 'free' || !isHeld) &&
      (state !== 'acting' || unresolved > 0) &&
      (id.toLowerCase().includes(wanted) ||
        leaseId?.startsWith(wanted) === true ||
        run?.error?.toLowerCase().includes(wanted) === true ||
        run?.waits.some((wait) => wait.name.toLowerCase().includes(wanted)) === true)
    );
  });
}

/** How many runs are in each state; null where no function runs any of them. */
export function runCounts(
  workflows: readonly ApiWorkflow[],
): Readonly<Record<RunState, number>> | null {
  const counts = Object.fromEntries(RUN_STATE_NAMES.map((state) => [state, 0]));
  let runs = 0;
  for (const workflow of workflows) {
    const state = runStateOf(workflow);
    if (state === null) continue;
    runs++;
    counts[state] = (counts[state] ?? 0) + 1;
  }
  return runs === 0 ? null : (counts as Record<RunState, number>);
}

/** The functions there are, and the chosen one. */
export function functionOptions(
  workflows: readonly ApiWorkflow[],
  chosen: string,
): Record<string, string> {
  const names = new Set(workflows.flatMap(({ run }) => run?.function ?? []));
  if (chosen !== '' && chosen !== NO_FUNCTION) names.add(chosen);
  const options = [...names].sort().map((name) => [name, name]);
  const hasOther = chosen === NO_FUNCTION || workflows.some(({ run }) => run === null);
  const other = names.size > 0 && hasOther ? { [NO_FUNCTION]: 'no function' } : {};
  return { '': 'all functions', ...Object.fromEntries(options), ...other };
}

/** Every epoch is one step that the store has taken: an action, a state, a handover. */
export function acceptedOf(workflows: readonly ApiWorkflow[]): number {
  return workflows.reduce((sum, { epoch }) => sum + epoch, 0);
}
