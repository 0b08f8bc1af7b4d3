import { sized } from '../../port/limits.ts';
import type { Call } from '../../port/store.ts';
import {
  DEAD_PAGE,
  type DeadCall,
  type DeadPage,
  type Held,
  type HeldReply,
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

export function sqliteStreams(transactions: Transactions, signals: TxSignals): StreamStore {
  /** Applies `change` to each entry whose claim is current. */
  const forEach = <H extends Held>(
    operation: string,
    stream: string,
    held: readonly H[],
    call: Call,
    change: (tx: Tx, lane: Lane, held: H) => void,
  ) => {
    const each = (tx: Tx, one: H): HeldReply => {
      const number = findStream(tx, stream);
      const lane = number === null ? undefined : heldLane(tx, number, one.lane, one.fence);
      if (lane === undefined) return 'gone';
      change(tx, lane, one);
      return 'done';
    };
    return transactions.write({ operation, items: held, each }, call);
  };
  return {
    async append(stream, entries, call) {
      if (entries.length === 0) return;
      const added = entries.map(({ lane, priority, value }) => {
        return { lane, priority, json: sized('stream entry', lane, asJson(value)) };
      });
      await transactions.writeOne('append to stream', call, (tx) => {
        const number = ensureStream(tx, stream);
        for (const entry of added) addEntry(tx, number, entry);
        signals.send(tx, streamTopic(stream), stream);
      });
    },
    consume: (stream, call) =>
      transactions.writeOne('consume', call, (tx) => {
        const number = findStream(tx, stream);
        if (number === null) return [];
        return lanesInTurn(tx, number, call.most).map((lane) => {
          const value: unknown = JSON.parse(firstJson(tx, lane));
          const fence = giveOut(tx, lane, call);
          return { lane: lane.lane, fence, value, tries: lane.tries + 1 };
        });
      }),
    extend: (stream, held, call) =>
      forEach('extend', stream, held, call, (tx, lane) => lengthenClaim(tx, lane, call.claimMs)),
    ack: (stream, held, call) => forEach('ack', stream, held, call, advance),
    retry: (stream, held, call) =>
      forEach('retry', stream, held, call, (tx, lane, { afterMs }) => rest(tx, lane, afterMs)),
    bury: (stream, held, call) =>
      forEach('bury', stream, held, call, (tx, lane, { reason }) => {
        putAside(tx, lane, firstJson(tx, lane), reason);
        advance(tx, lane);
      }),
    dead: (stream, call) =>
      transactions.readOne('read the dead', call, (tx) => dead(tx, stream, call)),
    async drop(stream, ids, call) {
      const sql = 'DELETE FROM dead WHERE number = ? AND stream = ?';
      const each = (tx: Tx, id: string) =>
        tx.connection.run(sql, positionOf(id), findStream(tx, stream));
      const dropped = await transactions.write({ operation: 'drop', items: ids, each }, call);
      return dropped.reduce((sum, count) => sum + count, 0);
    },
    names: (call) =>
      transactions.readOne('name streams', call, ({ connection, scope }) =>
        connection
          .rows<[string]>('SELECT name FROM streams WHERE scope = ? ORDER BY name', scope)
          .map(([name]) => name),
      ),
  };
}

function dead(tx: Tx, stream: string, call: DeadCall): DeadPage {
  const size = Math.min(call.most ?? DEAD_PAGE, DEAD_PAGE);
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
}
