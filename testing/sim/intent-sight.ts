/** The sessions in a store, read and spoiled without a client. */
import { startStream } from '../../src/store/port/intent-store.ts';
import { factsIn, type SessionFacts } from './intent-record.ts';
import type { Peek } from './workflow-sight.ts';

/** What stands before all keys of intents and streams. */
const HUB = '{holdfast}:';
/** The kinds that a world may have. */
export const SIM_KINDS = ['live', 'vod', 'job', 'rare'] as const;
/** What stands before a client among the fields of a session. */
const CLIENT = 'c:';

export class IntentSight {
  readonly #peek: Peek;

  constructor(peek: Peek) {
    this.#peek = peek;
  }

  /** Null where there is none. */
  factsOf(id: string): SessionFacts | null {
    const fields = ['tenant', 'state', 'revision', 'body', 'status', 'clients'];
    const facts = this.#peek(['HMGET', sessionAt(id), ...fields]) as (string | null)[];
    return facts[1] === null ? null : factsIn(facts);
  }

  /** Whether the index of open sessions names it. */
  isListed(id: string): boolean {
    return this.#peek(['ZSCORE', `${HUB}intent:open`, id]) !== null;
  }

  clientsOf(id: string): string[] {
    const fields = this.#peek(['HKEYS', sessionAt(id)]) as string[];
    return fields
      .filter((field) => field.startsWith(CLIENT))
      .map((field) => field.slice(CLIENT.length));
  }

  /** Whether the stream of starts has it, waiting or claimed. */
  isToStart(id: string): boolean {
    const stream = startStream(String(this.#peek(['HGET', sessionAt(id), 'kind'])));
    const state = String(this.#peek(['HGET', lanesAt(stream), id]));
    const [how, priority = '', entry = ''] = state.split(' ');
    if (this.#peek(['EXISTS', laneAt(stream, id)]) !== 1) return false;
    if (how !== 'w') return this.#peek(['ZSCORE', `${HUB}stream:due:${stream}`, id]) !== null;
    const found = this.#peek(['XRANGE', busAt(stream, priority), entry, entry]) as unknown[];
    return found.length === 1;
  }

  /** The secret that was made where nobody was given one. */
  hasSecret(): boolean {
    return this.#peek(['EXISTS', 'secret:idempotency']) === 1;
  }

  /** Which of the keys lead to it. */
  leading(id: string, keys: readonly string[]): string[] {
    return keys.filter((key) => this.#peek(['HGET', `${HUB}intent:keys`, key]) === id);
  }
}

/**
 * How much of a start that waits is lost: its place among the others, its lane, or what the stream
 * knows of that.
 */
const LOSSES = [
  (stream: string, _: string, state: string) => {
    const [, priority = '', entry = ''] = state.split(' ');
    return ['XDEL', busAt(stream, priority), entry];
  },
  (stream: string, lane: string) => ['DEL', laneAt(stream, lane)],
  (stream: string, lane: string) => ['HDEL', lanesAt(stream), lane],
];

/**
 * Takes out of the stream sessions that are new and wait for a worker; says which. A session that a
 * worker has claimed is left alone: that it is brought to its end is the worker's affair.
 */
export function loseStarts(peek: Peek, choice: number): string[] {
  return SIM_KINDS.flatMap((kind) => loseStartsOf(startStream(kind), peek, choice));
}

function loseStartsOf(stream: string, peek: Peek, choice: number): string[] {
  const lose = LOSSES[Math.floor(choice * LOSSES.length)];
  const found = peek(['HGETALL', lanesAt(stream)]) as string[];
  const lost: string[] = [];
  for (let i = 0; i < found.length; i += 2) {
    const [lane = '', state = ''] = found.slice(i, i + 2);
    if (lose === undefined || !state.startsWith('w ')) continue;
    if (peek(['HGET', sessionAt(lane), 'state']) !== 'NEW') continue;
    if (peek(lose(stream, lane, state)) === 1) lost.push(lane);
  }
  return lost;
}

function lanesAt(stream: string): string {
  return `${HUB}stream:lanes:${stream}`;
}

function laneAt(stream: string, lane: string): string {
  return `${HUB}stream:lane:{${stream}}:${lane}`;
}

function busAt(stream: string, priority: string): string {
  return `${HUB}stream:bus:${priority}:${stream}`;
}

function sessionAt(id: string): string {
  return `${HUB}intent:session:${id}`;
}
