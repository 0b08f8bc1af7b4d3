/**
 * Watches workflow functions by what their store has carried out, and by what their lines say:
 *
 * - **steps**: a step that is kept is not run again by the tenure that the store names; it is kept
 *   by that tenure alone; a call has one
 *   action; a sleep lasts as long as it was told to; a signal is received by one line.
 *
 * When the store has lost data, what was kept may be gone: all begins anew.
 */
import type { Reply } from '../../src/store/redis/client/wire.ts';
import type { Counters } from './counters.ts';
import type { WorkflowSight } from './workflow-sight.ts';

export interface FunctionAuditParts {
  nowMs(): number;
  readonly counters: Counters;
  readonly sight: WorkflowSight;
  report(text: string, workflow: string): void;
}

interface Kept {
  readonly isDone: boolean;
  readonly trueMs: number;
}

/** Clocks are read a little apart. */
const TOLERANCE_MS = 5;

export class FunctionAudit {
  readonly #parts: FunctionAuditParts;
  /** By workflow and step. */
  readonly #kept = new Map<string, Kept>();
  readonly #actions = new Map<string, string>();
  readonly #received = new Map<string, string>();

  constructor(parts: FunctionAuditParts) {
    this.#parts = parts;
  }

  storeForgot(): void {
    this.#kept.clear();
    this.#actions.clear();
    this.#received.clear();
  }

  /** A line runs its step now. A tenure that is over may still do so, and keeps nothing. */
  stepRuns(workflow: string, name: string, leaseId: string): void {
    this.#parts.counters.add('step run');
    const isKept = this.#kept.get(`${workflow} ${name}`)?.isDone === true;
    if (isKept && this.#parts.sight.holderOf(workflow) === leaseId)
      this.#parts.report(`step ${name} of ${workflow} runs again, although it is kept`, workflow);
  }

  /** workflow, lease id, name, kind, done, value, signal → 1, µs of the first keep, µs now */
  kept(argv: readonly string[], reply: Reply): void {
    const [, id = '', leaseId = '', name = '', kind, done, json = '', signal = ''] = argv;
    const [outcome, atUs, nowUs] = reply as [number, string, string];
    const { counters, sight, report, nowMs } = this.#parts;
    if (outcome === 2) counters.add('keep refused: not held');
    if (outcome !== 1) return;
    if (sight.holderOf(id) !== leaseId)
      report(`step ${name} of ${id} was kept for ${leaseId}, which does not hold it`, id);
    const key = `${id} ${name}`;
    const before = this.#kept.get(key);
    const isDone = done === '1';
    if (before?.isDone) counters.add('keep found taken');
    else if (kind === 'sleep' && isDone && before !== undefined) {
      const { ms } = JSON.parse(json) as { ms: number };
      const tookMs = Math.max(nowMs() - before.trueMs, (Number(nowUs) - Number(atUs)) / 1_000);
      counters.add('slept');
      if (tookMs < ms - TOLERANCE_MS)
        report(`sleep ${name} of ${id} took ${tookMs} ms instead of ${ms}`, id);
    }
    if (signal !== '') this.#receive(id, name, signal);
    if (before?.isDone) return;
    this.#kept.set(key, { isDone, trueMs: before?.trueMs ?? nowMs() });
  }

  #receive(id: string, name: string, signal: string): void {
    const by = this.#received.get(signal) ?? name;
    this.#received.set(signal, by);
    this.#parts.counters.add('signal received');
    if (by !== name)
      this.#parts.report(`signal ${signal} of ${id} was received by ${by} and ${name}`, id);
  }

  /**
   * workflow, function, input, state → 1, or what is there: a workflow that was lost begins anew.
   */
  started([, id = '']: readonly string[], reply: Reply): void {
    if (reply !== 1) return;
    this.#parts.counters.add('function started');
    for (const all of [this.#kept, this.#actions])
      for (const key of all.keys()) if (key.startsWith(`${id} `)) all.delete(key);
  }

  /** A call was emitted. */
  called(id: string, name: string, action: string): void {
    const key = `${id} ${name}`;
    const before = this.#actions.get(key) ?? action;
    this.#actions.set(key, before);
    if (before !== action)
      this.#parts.report(`call ${name} of ${id} has two actions: ${before} and ${action}`, id);
  }
}
