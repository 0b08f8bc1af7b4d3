/** The list of workflows, page by page, sorted by id. */
import type { ApiWorkflow, WorkflowsPage } from '../../../../src/client/operating-messages.ts';

export interface WorkflowList {
  readonly workflows: readonly ApiWorkflow[];
  /** There are more. */
  readonly hasMore: boolean;
}

/** Which of them are shown. */
export const SHOWN = {
  '': 'all',
  held: 'held',
  free: 'free',
  waiting: 'with actions in progress',
} as const;

const PAGE = 500;

export async function listOf(
  page: (query: { cursor?: string; limit: string }) => Promise<WorkflowsPage>,
  most: number,
): Promise<WorkflowList> {
  const workflows: ApiWorkflow[] = [];
  let cursor: string | undefined;
  do {
    const next = await page({ limit: String(PAGE), ...(cursor !== undefined && { cursor }) });
    workflows.push(...next.workflows);
    cursor = next.cursor;
  } while (cursor !== undefined && workflows.length < most);
  return { workflows, hasMore: cursor !== undefined };
}

/** A filter that is not in `SHOWN` shows all: the user may have typed the address. */
export function filtered(
  workflows: readonly ApiWorkflow[],
  { text, shown }: { text: string; shown: string },
): readonly ApiWorkflow[] {
  const wanted = text.toLowerCase();
  return workflows.filter(
    ({ id, isHeld, unresolved, leaseId }) =>
      (shown !== 'held' || isHeld) &&
      (shown !== 'free' || !isHeld) &&
      (shown !== 'waiting' || unresolved > 0) &&
      (id.toLowerCase().includes(wanted) || leaseId?.startsWith(wanted) === true),
  );
}

/** Every epoch is one step that the store has taken: an action, a state, a handover. */
export function acceptedOf(workflows: readonly ApiWorkflow[]): number {
  return workflows.reduce((sum, { epoch }) => sum + epoch, 0);
}
