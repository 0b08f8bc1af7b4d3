/**
 * Dead letters: actions that failed as often as they may be tried, kept for operators to inspect.
 */
import { ConfigError } from '../core/errors.ts';
import type { StoredAction } from '../store/port/workflow-store.ts';
import { actionStream } from '../store/port/workflow-store.ts';
import type { Runtime } from '../store/runtime.ts';
import { type Action, actionOf } from './action.ts';
import { skipForeign } from './skip-foreign.ts';

const CALL = { timeoutMs: 5_000 };
const STREAM = actionStream('');

export interface DeadLetter {
  /** `target/…`, for `retry` and `drop`. */
  readonly id: string;
  readonly workflow: string;
  /** Null if the entry is no action: it can only be dropped. */
  readonly action: Action | null;
  readonly tries: number;
  readonly reason: string;
  readonly diedAt: string;
}

export class DeadLetters {
  readonly #rt: Runtime;

  constructor(rt: Runtime) {
    this.#rt = rt;
  }

  /** All dead letters, or those of one target; of each target the oldest first. */
  async *list(target?: string): AsyncGenerator<DeadLetter, void, void> {
    const streams =
      target === undefined ? await this.#rt.store.streams.names(CALL) : [actionStream(target)];
    for (const stream of streams) if (stream.startsWith(STREAM)) yield* this.#readableOf(stream);
  }

  /**
   * Emits the action again: at once if its workflow is held, otherwise with the next claim. Returns
   * the workflow; null if there is no such dead letter.
   */
  async retry(id: string): Promise<string | null> {
    const { target, deadId } = readId(id);
    const reply = await this.#rt.store.workflows.revive(target, deadId, CALL);
    return reply.kind === 'revived' ? reply.workflow : null;
  }

  /**
   * Removes a dead letter, and says whether it was there. Its workflow already has the failure as a
   * result.
   */
  async drop(id: string): Promise<boolean> {
    const { target, deadId } = readId(id);
    return (await this.#rt.store.streams.drop(actionStream(target), [deadId], CALL)) > 0;
  }

  /** Skips a stream that a non-Holdfast program has overwritten, and reports it once. */
  async *#readableOf(stream: string): AsyncGenerator<DeadLetter, void, void> {
    try {
      yield* this.#of(stream);
    } catch (error) {
      skipForeign(this.#rt.events, error);
    }
  }

  async *#of(stream: string): AsyncGenerator<DeadLetter, void, void> {
    for (let after: string | undefined; ; ) {
      const { entries, more } = await this.#rt.store.streams.dead(stream, { ...CALL, after });
      for (const { id, lane, value, tries, reason, atMs } of entries) {
        yield {
          id: `${stream.slice(STREAM.length)}/${id}`,
          workflow: lane,
          action: readable(lane, value),
          tries,
          reason,
          diedAt: new Date(atMs).toISOString(),
        };
      }
      if (!more) return;
      after = entries.at(-1)?.id;
    }
  }
}

function readId(id: string): { target: string; deadId: string } {
  const slash = typeof id === 'string' ? id.indexOf('/') : -1;
  if (slash > 0) return { target: id.slice(0, slash), deadId: id.slice(slash + 1) };
  const rule = "the id of a dead letter is target/…, as 'holdfast deadletters ls' shows it";
  throw new ConfigError({ field: 'id', value: id, rule });
}

function readable(workflow: string, value: unknown): Action | null {
  try {
    return actionOf(workflow, value as StoredAction);
  } catch {
    return null;
  }
}
