import { sized } from '../../port/limits.ts';
import type { Call } from '../../port/store.ts';
import {
  type Burial,
  type ConsumeCall,
  DEAD_PAGE,
  type DeadCall,
  type DeadPage,
  type Delivery,
  type ExtendCall,
  type Held,
  type HeldReply,
  type RetryLater,
  type StreamEntry,
  type StreamStore,
  streamTopic,
} from '../../port/stream-store.ts';
import type { Transactions } from '../file/lock-queue.ts';
import type { Tx } from '../file/sqlite-connection.ts';
import {
  addEntry,
  advance,
  ensureStream,
  findStream,
  firstJson,
  giveOut,
  heldLane,
  type Lane,
  lanesInTurn,
  lengthenClaim,
  putAside,
  rest,
} from '../tables/lanes.ts';
import { asJson } from './json.ts';
import { pageOf, positionOf } from './pages.ts';

/** What streams and workflows need of the store around them. */
export interface WorkParts {
  /** Put before every name elsewhere in the file: whose streams and workflows these are. */
  readonly scope: string;
  readonly turns: Transactions;
  /** Publishes a signal, once the transaction is committed. */
  readonly tell: (tx: Tx, topic: string, message: string) => void;
}

export class SqliteStreams implements StreamStore {
  readonly #parts: WorkParts;

  constructor(parts: WorkParts) {
    this.#parts = parts;
  }

  async append(stream: string, entries: readonly StreamEntry[], call: Call): Promise<void> {
    if (entries.length === 0) return;
    const { scope, turns, tell } = this.#parts;
    const added = entries.map(({ lane, priority, value }) => {
      return { lane, priority, json: sized('stream entry', lane, asJson(value)) };
    });
    await turns.writeOne('append to stream', call, (tx) => {
      const number = ensureStream(tx, scope, stream);
      for (const entry of added) addEntry(tx, number, entry);
      tell(tx, streamTopic(stream), stream);
    });
  }

  consume(stream: string, call: ConsumeCall): Promise<Delivery[]> {
    const { scope, turns } = this.#parts;
    return turns.writeOne('consume', call, (tx) => {
      const number = findStream(tx, scope, stream);
      if (number === null) return [];
      return lanesInTurn(tx, number, call.most).map((lane): Delivery => {
        const value = JSON.parse(firstJson(tx, lane));
        const fence = giveOut(tx, lane, call);
        return { lane: lane.lane, fence, value, tries: lane.tries + 1 };
      });
    });
  }

  extend(stream: string, held: readonly Held[], call: ExtendCall): Promise<HeldReply[]> {
    const { claimMs } = call;
    return this.#each('extend', stream, held, call, (tx, lane) => lengthenClaim(tx, lane, claimMs));
  }

  ack(stream: string, held: readonly Held[], call: Call): Promise<HeldReply[]> {
    return this.#each('ack', stream, held, call, (tx, lane) => advance(tx, lane));
  }

  retry(stream: string, held: readonly RetryLater[], call: Call): Promise<HeldReply[]> {
    return this.#each('retry', stream, held, call, (tx, lane, { afterMs }) =>
      rest(tx, lane, afterMs),
    );
  }

  bury(stream: string, held: readonly Burial[], call: Call): Promise<HeldReply[]> {
    return this.#each('bury', stream, held, call, (tx, lane, { reason }) => {
      putAside(tx, lane, firstJson(tx, lane), reason);
      advance(tx, lane);
    });
  }

  dead(stream: string, call: DeadCall): Promise<DeadPage> {
    const { scope, turns } = this.#parts;
    const size = Math.min(call.most ?? DEAD_PAGE, DEAD_PAGE);
    return turns.readOne('read the dead', call, (tx): DeadPage => {
      const rows = tx.session.rows<[number, string, string, number, string, number]>(
        'SELECT number, lane, json, tries, hex(reason), at FROM dead WHERE stream = ? AND number > ? ORDER BY number LIMIT ?',
        findStream(tx, scope, stream),
        positionOf(call.after),
        size + 1,
      );
      const { page, more } = pageOf(rows, size);
      const entries = page.map(([number, lane, json, tries, hex, atMs]) => {
        // In hex, because the driver cuts a text at its first NUL.
        const reason = Buffer.from(hex, 'hex').toString();
        return { id: String(number), lane, value: JSON.parse(json), tries, reason, atMs };
      });
      return { entries, more };
    });
  }

  async drop(stream: string, ids: readonly string[], call: Call): Promise<number> {
    const { scope, turns } = this.#parts;
    const each = (tx: Tx, i: number) =>
      tx.session.run(
        'DELETE FROM dead WHERE number = ? AND stream = ?',
        positionOf(ids[i]),
        findStream(tx, scope, stream),
      );
    const dropped = await turns.write({ operation: 'drop', count: ids.length, each }, call);
    return dropped.reduce((sum, count) => sum + count, 0);
  }

  names(call: Call): Promise<string[]> {
    const { scope, turns } = this.#parts;
    return turns.readOne('name streams', call, ({ session }) =>
      session
        .rows<[string]>('SELECT name FROM streams WHERE scope = ? ORDER BY name', scope)
        .map(([name]) => name),
    );
  }

  /** Does something with each entry that is in the hands it is said to be in. */
  #each<H extends Held>(
    operation: string,
    stream: string,
    held: readonly H[],
    call: Call,
    change: (tx: Tx, lane: Lane, held: H) => void,
  ): Promise<HeldReply[]> {
    const { scope, turns } = this.#parts;
    const each = (tx: Tx, i: number): HeldReply => {
      const one = held[i] as H;
      const number = findStream(tx, scope, stream);
      const lane = number === null ? undefined : heldLane(tx, number, one.lane, one.fence);
      if (lane === undefined) return 'gone';
      change(tx, lane, one);
      return 'done';
    };
    return turns.write({ operation, count: held.length, each }, call);
  }
}
