import {
  CLIENTS_MOST,
  type IntentStore,
  SESSION_CHANGES_TOPIC,
  SESSIONS_PAGE,
  type SessionState,
  START_STREAM,
  type StartReply,
  type StartRequest,
  type StopReply,
  type StopRequest,
} from '../../port/intent-store.ts';
import { sized } from '../../port/limits.ts';
import { streamTopic } from '../../port/stream-store.ts';
import type { Transactions } from '../file/lock-queue.ts';
import type { Tx, TxSignals } from '../file/sqlite-connection.ts';
import {
  addClient,
  cutLoose,
  dropClient,
  dropClients,
  findByKeys,
  findSession,
  forgetEnded,
  hasClient,
  leadTo,
  makeSession,
  type SessionRow,
  saveSession,
  sessionsBefore,
  storedOf,
} from '../tables/intents.ts';
import { addEntry, clearLane, ensureStream, findLane, findStream } from '../tables/lanes.ts';
import { pageOf, positionOf } from './values.ts';

export function sqliteIntents(transactions: Transactions, signals: TxSignals): IntentStore {
  return {
    async start(request, call) {
      sized('session', request.id, request.body + request.status);
      const reply = await transactions.writeOne('start', call, (tx) => {
        const found = findByKeys(tx, request.keys);
        return found === undefined ? create(tx, signals, request) : replay(tx, found, request);
      });
      // Thrown outside the transaction: an error inside would roll back the other requests in it.
      if (reply === null) throw new TypeError(`there is already a session '${request.id}'`);
      return reply;
    },
    stop: (request, call) =>
      transactions.writeOne('stop', call, (tx) => stopSession(tx, signals, request)),
    async advance(id, { ifRevision, state, status }, call) {
      sized('session', id, status);
      return transactions.writeOne('advance', call, (tx) => {
        const row = findSession(tx, id);
        if (row === undefined) return { kind: 'absent' };
        if (row.state === 'ENDED' || row.revision !== ifRevision)
          return { kind: 'conflict', session: storedOf(row) };
        change(tx, signals, row, { state, status });
        return { kind: 'advanced', session: storedOf(row) };
      });
    },
    async republish(ids, call) {
      const each = (tx: Tx, id: string): string[] => {
        const row = findSession(tx, id);
        if (row?.state !== 'NEW') return [];
        const stream = ensureStream(tx, START_STREAM);
        if (findLane(tx, stream, row.id) !== undefined) return [];
        publish(tx, signals, row);
        return [row.id];
      };
      return (await transactions.write({ operation: 'republish', items: ids, each }, call)).flat();
    },
    read(ids, call) {
      const each = (tx: Tx, id: string) => {
        const row = findSession(tx, id);
        return row === undefined ? null : storedOf(row);
      };
      return transactions.read({ operation: 'read sessions', items: ids, each }, call);
    },
    list(call) {
      const size = Math.min(call.most ?? SESSIONS_PAGE, SESSIONS_PAGE);
      const before = positionOf(call.cursor) || Number.MAX_SAFE_INTEGER;
      return transactions.readOne('list sessions', call, (tx) => {
        const found = sessionsBefore(tx, before, size + 1, call);
        const { page, more } = pageOf(found, size);
        const last = page.at(-1);
        const cursor = more && last !== undefined && { cursor: String(last.number) };
        return { sessions: page.map(storedOf), ...cursor };
      });
    },
    prune: ({ endedBeforeMs, most, ...call }) =>
      transactions.writeOne('prune', call, (tx) => {
        const ids = forgetEnded(tx, endedBeforeMs, most);
        const stream = findStream(tx, START_STREAM);
        for (const id of ids) {
          const lane = stream === null ? undefined : findLane(tx, stream, id);
          if (lane !== undefined) clearLane(tx, lane, false);
        }
        return ids.length;
      }),
  };
}

function create(tx: Tx, signals: TxSignals, request: StartRequest): StartReply | null {
  const row = makeSession(tx, request);
  if (row === null) return null;
  publish(tx, signals, row);
  return { kind: 'created', session: storedOf(row) };
}

function replay(tx: Tx, row: SessionRow, { keys, client }: StartRequest): StartReply {
  if (!hasClient(tx, row, client)) {
    if (row.clients >= CLIENTS_MOST) return { kind: 'crowded', session: storedOf(row) };
    addClient(tx, row, client);
    saveSession(tx, row);
  }
  leadTo(tx, row.number, keys);
  return { kind: 'replayed', session: storedOf(row) };
}

function stopSession(tx: Tx, signals: TxSignals, request: StopRequest): StopReply {
  const { tenant, client, force, ending } = request;
  const row = findSession(tx, request.id);
  if (row === undefined || (tenant !== null && row.tenant !== tenant)) return { kind: 'absent' };
  const isStopping = row.state === 'STOPPING' || row.state === 'ENDED';
  if (isStopping) return { kind: 'found', session: storedOf(row), changed: false };
  if (force) dropClients(tx, row);
  else dropClient(tx, row, client);
  const changed = row.clients === 0;
  if (!changed) saveSession(tx, row);
  else if (row.state === 'NEW') change(tx, signals, row, { state: 'ENDED', status: ending });
  else change(tx, signals, row, { state: 'STOPPING', status: row.status });
  return { kind: 'found', session: storedOf(row), changed };
}

function change(
  tx: Tx,
  signals: TxSignals,
  row: SessionRow,
  { state, status }: { readonly state: SessionState; readonly status: string },
): void {
  const isOther = row.state !== state;
  row.state = state;
  row.status = status;
  row.revision++;
  row.changedAtMs = tx.wallMs;
  if (state === 'ENDED') cutLoose(tx, row);
  saveSession(tx, row);
  if (isOther) signals.send(tx, SESSION_CHANGES_TOPIC, row.id);
}

function publish(tx: Tx, signals: TxSignals, { id, priority }: SessionRow): void {
  const stream = ensureStream(tx, START_STREAM);
  addEntry(tx, stream, { lane: id, priority, json: JSON.stringify({ session: id }) });
  signals.send(tx, streamTopic(START_STREAM), START_STREAM);
}
