/** What the store keeps of a step, and how operators see it. */
import { createHash } from 'node:crypto';
import type { LoadedRun, StepKind, StoredStep } from '../store/port/run-store.ts';
import type { HistoryEntry, StoredResult } from '../store/port/workflow-store.ts';
import type { ActionFailure } from './action.ts';

/** A try of a step that failed, and that another try followed. */
export interface FailedTry {
  /** 1 for the first. */
  readonly tries: number;
  /** By the store's clock. */
  readonly atMs: number;
  readonly error: string;
}

export type StepOutcome = { readonly ok: unknown } | { readonly error: ActionFailure };

/** The value of a `step`. Earlier versions kept the outcome alone. */
export type StepValue = StepOutcome & {
  readonly tookMs?: number;
  readonly failed?: readonly FailedTry[];
};

/** The value of a `signal`. */
export interface WaitValue {
  readonly signal: string;
  readonly timeoutMs?: number;
  readonly received?: { readonly value: unknown; readonly atMs: number } | null;
}

/** The value of a `call`. `hash` finds out a different call under the same name. */
export interface CallFacts {
  readonly type: string;
  readonly target: string;
  readonly hash: string;
  /** As JSON, cut off. */
  readonly payload: string;
}

/** What a line waits for, as operators see it. */
export type WaitFact =
  | { readonly sleep: string; readonly untilMs: number }
  | { readonly signal: string; readonly as: string; readonly untilMs: number | null };

type StepState = 'done' | 'failed' | 'dead' | 'running' | 'sleeping' | 'waiting' | 'timeout';

/** The action of a call, and the size of its payload. */
interface EmittedCall extends Pick<CallFacts, 'type' | 'target'> {
  readonly bytes: number;
}

/** A step as operators see it. */
export interface StepView {
  readonly name: string;
  readonly kind: StepKind;
  readonly state: StepState;
  /** When the store first had it, by its clock; null for a wait that is not stored yet. */
  readonly atMs: number | null;
  /** Null if it has not ended, or if the store does not know. */
  readonly tookMs: number | null;
  /** When a sleep or a wait ends at the latest. */
  readonly untilMs: number | null;
  readonly tries: number;
  readonly failed: readonly FailedTry[];
  /** Why it failed. */
  readonly error: string | null;
  /** What a step returned, the payload of a call as text, or the value of a received signal. */
  readonly value: unknown;
  /** Of a call. */
  readonly action: EmittedCall | null;
  /** What the processor of a call returned; null while there is none, or none is kept. */
  readonly result: { readonly value: unknown } | null;
  /** The signal that it waits for, or has received. */
  readonly signal: string | null;
}

/** Of calls, by the id of the action. */
export type CallResults = ReadonlyMap<string, StoredResult>;

/** The results of so many calls are read, the last ones. */
const MAX_RESULTS = 100;

/** The actions of the last calls, for their results. */
export function calledActions(workflow: string, steps: readonly StoredStep[]): string[] {
  const calls = steps.filter(({ kind }) => kind === 'call').slice(-MAX_RESULTS);
  return calls.map(({ name }) => derivedUuid(workflow, name));
}

/** The steps of a workflow in order, and then the waits that the store has no step of yet. */
export function stepViews(
  workflow: string,
  { run, steps }: Pick<LoadedRun, 'run' | 'steps'>,
  history: readonly HistoryEntry[],
  results: CallResults = new Map(),
): StepView[] {
  const past = pastActions(history, results);
  const names = new Set(steps.map(({ name }) => name));
  const waits = run?.phase === 'suspended' ? waitFacts(run.waits) : [];
  return [
    ...steps.map((step) => VIEWS[step.kind](step, past, workflow)),
    ...waits.flatMap((wait) => ('as' in wait && !names.has(wait.as) ? openWait(wait) : [])),
  ];
}

/** What a suspended run waits for; none if it waits for an instance. */
export function waitFacts(waits: unknown): readonly WaitFact[] {
  return Array.isArray(waits) ? (waits as WaitFact[]) : [];
}

const NOTHING = {
  tookMs: null,
  untilMs: null,
  tries: 1,
  failed: [],
  error: null,
  value: null,
  action: null,
  result: null,
  signal: null,
} as const;

type Viewing = (
  step: StoredStep,
  past: ReadonlyMap<string, PastAction>,
  workflow: string,
) => StepView;

const VIEWS: Readonly<Record<StepKind, Viewing>> = { step: stepView, call, sleep, signal };

function stepView({ name, kind, value, atMs }: StoredStep): StepView {
  const { tookMs = null, failed = [], ...outcome } = value as StepValue;
  const isFailed = 'error' in outcome;
  return {
    ...NOTHING,
    name,
    kind,
    state: isFailed ? 'failed' : 'done',
    atMs: atMs - (tookMs ?? 0),
    tookMs,
    tries: (failed.at(-1)?.tries ?? 0) + 1,
    failed,
    error: isFailed ? outcome.error.message : null,
    value: isFailed ? null : outcome.ok,
  };
}

function call(
  { name, kind, value, atMs }: StoredStep,
  past: ReadonlyMap<string, PastAction>,
  workflow: string,
): StepView {
  const { type, target, payload } = value as CallFacts;
  const { bytes, failed, settled, result } = past.get(derivedUuid(workflow, name)) ?? {
    failed: [],
  };
  const states = { succeeded: 'done', failed: 'failed', dead: 'dead' } as const;
  return {
    ...NOTHING,
    name,
    kind,
    state: settled === undefined ? 'running' : states[settled.outcome],
    atMs,
    tookMs: settled === undefined ? null : Math.max(0, settled.atMs - atMs),
    tries: settled?.tries ?? failed.length + 1,
    failed,
    error: settled?.error ?? null,
    value: payload,
    action: { type, target, bytes: bytes ?? Buffer.byteLength(payload) },
    result: result?.outcome === 'succeeded' ? { value: result.value } : null,
  };
}

function sleep({ name, kind, isDone, value, atMs }: StoredStep): StepView {
  const { ms } = value as { readonly ms: number };
  const ended = isDone ? { tookMs: ms } : { untilMs: atMs + ms };
  return { ...NOTHING, name, kind, state: isDone ? 'done' : 'sleeping', atMs, ...ended };
}

function signal({ name, kind, isDone, value, atMs }: StoredStep): StepView {
  const { signal: awaited, timeoutMs, received } = value as WaitValue;
  const view = { ...NOTHING, name, kind, atMs, signal: awaited };
  if (!isDone) {
    const untilMs = timeoutMs === undefined ? null : atMs + timeoutMs;
    return { ...view, state: 'waiting', untilMs };
  }
  if (!received) return { ...view, state: 'timeout' };
  const tookMs = Math.max(0, received.atMs - atMs);
  return { ...view, state: 'done', tookMs: tookMs || null, value: received.value };
}

function openWait(wait: Extract<WaitFact, { as: string }>): StepView {
  const { as: name, signal: awaited, untilMs } = wait;
  const open = { kind: 'signal', state: 'waiting', atMs: null, untilMs } as const;
  return { ...NOTHING, name, ...open, signal: awaited };
}

interface PastAction {
  bytes?: number;
  failed: FailedTry[];
  settled?: Settlement;
  result?: StoredResult;
}

interface Settlement {
  readonly outcome: StoredResult['outcome'];
  readonly atMs: number;
  readonly tries?: number | undefined;
  readonly error?: string | undefined;
}

/** What the history says of each action, by its id, and its result. */
function pastActions(
  history: readonly HistoryEntry[],
  results: CallResults,
): ReadonlyMap<string, PastAction> {
  const all = new Map<string, PastAction>();
  for (const { atMs, what } of history) {
    if (what.kind !== 'emitted' && what.kind !== 'settled' && what.kind !== 'retried') continue;
    const action = all.get(what.actionId) ?? { failed: [] };
    all.set(what.actionId, action);
    if (what.kind === 'settled') action.settled = { ...what, atMs };
    if (what.kind === 'retried') action.failed.push({ tries: what.tries, atMs, error: what.error });
    if (what.kind === 'emitted' && what.payloadBytes !== undefined)
      action.bytes = what.payloadBytes;
  }
  for (const [id, result] of results) {
    const action = all.get(id) ?? { failed: [] };
    // The history may have dropped the end of an action whose result is still kept.
    all.set(id, { settled: endOf(result), ...action, result });
  }
  return all;
}

function endOf({ outcome, atMs, value }: StoredResult): Settlement {
  return { outcome, atMs, ...(outcome !== 'succeeded' && { error: failureText(value) }) };
}

/** The message of an error that the store keeps; any other value as JSON. */
export function failureText(value: unknown): string {
  const isError = typeof value === 'object' && value !== null && 'message' in value;
  return isError ? String(value.message) : (JSON.stringify(value) ?? '');
}

/** A UUID (version 8) that follows from its parts. */
export function derivedUuid(...parts: readonly string[]): string {
  const hex = createHash('sha256').update(JSON.stringify(parts)).digest('hex');
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 3) | 8).toString(16);
  const end = `${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${end}`;
}
