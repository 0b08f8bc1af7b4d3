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
import { asJson, pageOf, positionOf } from '../../values.ts';
import type { Transactions } from '../file/lock-queue.ts';
import type { Tx, TxSignals } from '../file/sqlite-connection.ts';
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

export class SqliteStreams implements StreamStore {
  readonly #transactions: Transactions;
  readonly #signals: TxSignals;

  constructor(transactions: Transactions, signals: TxSignals) {
    this.#transactions = transactions;
    this.#signals = signals;
  }

  async append(stream: string, entries: readonly StreamEntry[], call: Call): Promise<void> {
    if (entries.length === 0) return;
    const added = entries.map(({ lane, priority, value }) => {
      return { lane, priority, json: sized('stream entry', lane, asJson(value)) };
    });
    await this.#transactions.writeOne('append to stream', call, (tx) => {
      const number = ensureStream(tx, stream);
      for (const entry of added) addEntry(tx, number, entry);
      this.#signals.send(tx, streamTopic(stream), stream);
    });
  }

  consume(stream: string, call: ConsumeCall): Promise<Delivery[]> {
    return this.#transactions.writeOne('consume', call, (tx) => {
      const number = findStream(tx, stream);
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
    const size = Math.min(call.most ?? DEAD_PAGE, DEAD_PAGE);
    return this.#transactions.readOne('read the dead', call, (tx): DeadPage => {
      const rows = tx.connection.rows<[number, string, string, number, string, number]>(
        'SELECT number, lane, json, tries, hex(reason), at FROM dead WHERE stream = ? AND number > ? ORDER BY number LIMIT ?',
        findStream(tx, stream),
        positionOf(call.after),
        size + 1,
      );
      const { page, more } = pageOf(rows, size);
      const entries = page.map(([number, lane, json, tries, hex, atMs]) => {
        // SQLite returns hex because the driver cuts a text at its first NUL.
        const reason = Buffer.from(hex, 'hex').toString();
        return { id: String(number), lane, value: JSON.parse(json), tries, reason, atMs };
      });
      return { entries, more };
    });
  }

  async drop(stream: string, ids: readonly string[], call: Call): Promise<number> {
    const each = (tx: Tx, i: number) =>
      tx.connection.run(
        'DELETE FROM dead WHERE number = ? AND stream = ?',
        positionOf(ids[i]),
        findStream(tx, stream),
      );
    const dropped = await this.#transactions.write(
      { operation: 'drop', count: ids.length, each },
      call,
    );
    return dropped.reduce((sum, count) => sum + count, 0);
  }

  names(call: Call): Promise<string[]> {
    return this.#transactions.readOne('name streams', call, ({ connection, scope }) =>
      connection
        .rows<[string]>('SELECT name FROM streams WHERE scope = ? ORDER BY name', scope)
        .map(([name]) => name),
    );
  }

  /** Applies `change` to each entry whose claim is current. */
  #each<H extends Held>(
    operation: string,
    stream: string,
    held: readonly H[],
    call: Call,
    change: (tx: Tx, lane: Lane, held: H) => void,
  ): Promise<HeldReply[]> {
    const each = (tx: Tx, i: number): HeldReply => {
      const one = held[i] as H;
      const number = findStream(tx, stream);
      const lane = number === null ? undefined : heldLane(tx, number, one.lane, one.fence);
      if (lane === undefined) return 'gone';
      change(tx, lane, one);
      return 'done';
    };
    return this.#transactions.write({ operation, count: held.length, each }, call);
  }
}
