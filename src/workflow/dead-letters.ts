/** Actions that were tried as often as they may be, and are kept for people to look at. */
import { ConfigError } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import type { Store } from '../store/port/store.ts';
import type { StoredAction } from '../store/port/workflow-store.ts';
import { actionStream } from '../store/port/workflow-store.ts';
import { type Action, actionOf } from './action.ts';
import { skipForeign } from './skip-foreign.ts';

/** For what has no lease, and so no timings of its own. */
const CALL = { timeoutMs: 5_000 };
const STREAM = actionStream('');

export interface DeadLetter {
  /** `target/…`, and the way to say which one. */
  readonly id: string;
  readonly workflow: string;
  /** Null for what somebody has put there that is no action: it can be dropped, and nothing else. */
  readonly action: Action | null;
  readonly tries: number;
  readonly reason: string;
  readonly diedAt: string;
}

export class DeadLetters {
  readonly #store: Store;
  readonly #events: Emitter;

  constructor({ store, events }: { store: Store; events: Emitter }) {
    this.#store = store;
    this.#events = events;
  }

  /** All there are, or those of one target; of each target the oldest first. */
  async *list(target?: string): AsyncGenerator<DeadLetter, void, void> {
    const streams =
      target === undefined ? await this.#store.streams.names(CALL) : [actionStream(target)];
    for (const stream of streams) if (stream.startsWith(STREAM)) yield* this.#readableOf(stream);
  }

  /** Has the action's workflow emit it anew: at once if somebody holds it, else by the next claim. Says which workflow, or null. */
  async retry(id: string): Promise<string | null> {
    const { target, deadId } = readId(id);
    const reply = await this.#store.workflows.revive(target, deadId, CALL);
    return reply.kind === 'revived' ? reply.workflow : null;
  }

  /** Throws it away; says whether it was there. Its workflow has been told of the failure long ago. */
  async drop(id: string): Promise<boolean> {
    const { target, deadId } = readId(id);
    return (await this.#store.streams.drop(actionStream(target), [deadId], CALL)) > 0;
  }

  /** What another program has put in the place of a target's letters is told of, once; those of the others are listed. */
  async *#readableOf(stream: string): AsyncGenerator<DeadLetter, void, void> {
    try {
      yield* this.#of(stream);
    } catch (error) {
      skipForeign(this.#events, error);
    }
  }

  async *#of(stream: string): AsyncGenerator<DeadLetter, void, void> {
    for (let after: string | undefined; ; ) {
      const call = { ...CALL, ...(after !== undefined && { after }) };
      const { entries, more } = await this.#store.streams.dead(stream, call);
      for (const { id, lane, value, tries, reason, atMs } of entries) {
        yield {
          id: `${stream.slice(STREAM.length)}/${id}`,
          workflow: lane,
          action: readable(lane, value),
          ...{ tries, reason, diedAt: new Date(atMs).toISOString() },
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
