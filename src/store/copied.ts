/** What the exports of all stores have in common. */
import type {
  CopiedEvent,
  CopiedResult,
  CopiedSignal,
  CopiedStep,
  CopiedWorkflow,
} from './port/copy-store.ts';
import { KEYSPACE_NAMES, KEYSPACES } from './port/keyspaces.ts';

/** Entries of one batch. */
export const COPY_PAGE = 200;
/** Fewer, because a workflow may have megabytes. */
export const COPIED_WORKFLOWS_PAGE = 5;

/** Whether a name without its prefix is a lease of ours, and not of a store with another prefix. */
export function isLeaseKey(key: string): boolean {
  return KEYSPACE_NAMES.some((name) => key.startsWith(KEYSPACES[name]));
}

/** A collection has no colon, so one that has belongs to a store with another prefix. */
export function isCollection(name: string): boolean {
  return !name.includes(':');
}

/** The order of bytes, as databases sort names. */
export function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/**
 * A workflow in the one form that all stores export. Stores round times differently, and some order
 * by them: so times are whole, and never fall.
 */
export function normalised(workflow: CopiedWorkflow): CopiedWorkflow {
  const { results, history, steps, signals, phase, inbox } = workflow;
  return {
    ...workflow,
    // It belongs to the tenure that has begun.
    inbox: phase === 'begun' ? inbox : '',
    createdMs: Math.floor(workflow.createdMs),
    changedMs: Math.floor(workflow.changedMs),
    actions: [...workflow.actions].sort((a, b) => a.epoch - b.epoch),
    taken: [...workflow.taken].sort((a, b) => byBytes(a.target, b.target)),
    results: rising<CopiedResult, 'atMs'>(results, 'atMs', 0),
    history: rising<CopiedEvent, 'atMs'>(history.map(compact), 'atMs', 0),
    steps: rising<CopiedStep, 'atUs'>(steps.map(rounded), 'atUs', 1),
    signals: rising<CopiedSignal, 'atUs'>(signals.map(rounded), 'atUs', 1),
  };
}

/** PostgreSQL writes JSON with spaces. */
function compact(event: CopiedEvent): CopiedEvent {
  return { ...event, what: JSON.stringify(JSON.parse(event.what)) };
}

/** Databases keep milliseconds with a fraction: its last digit differs after each conversion. */
function rounded<Row extends { readonly atUs: number }>(row: Row): Row {
  return { ...row, atUs: Math.round(row.atUs) };
}

/** The rows with whole times, each at least `by` after the one before. */
export function rising<Row extends { readonly [K in Field]: number }, Field extends string>(
  rows: readonly Row[],
  field: Field,
  by: number,
): Row[] {
  let last = 0;
  return rows.map((row) => {
    last = Math.max(Math.floor(row[field]), last + by);
    return { ...row, [field]: last };
  });
}
