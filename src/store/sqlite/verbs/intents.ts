import {
  type Advance,
  type AdvanceReply,
  CLIENTS_MOST,
  type IntentStore,
  type PruneCall,
  SESSION_CHANGES_TOPIC,
  SESSIONS_PAGE,
  type SessionListCall,
  type SessionState,
  type StartReply,
  type StartRequest,
  type StopReply,
  type StopRequest,
  type StoredSession,
  type StoredSessionPage,
  startStream,
} from '../../port/intent-store.ts';
import { sized } from '../../port/limits.ts';
import type { Call } from '../../port/store.ts';
import { streamTopic } from '../../port/stream-store.ts';
import { pageOf, positionOf } from '../../values.ts';
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

export class SqliteIntents implements IntentStore {
  readonly #transactions: Transactions;
  readonly #signals: TxSignals;

  constructor(transactions: Transactions, signals: TxSignals) {
    this.#transactions = transactions;
    this.#signals = signals;
  }

  async start(request: StartRequest, call: Call): Promise<StartReply> {
    sized('session', request.id, request.body + request.status);
    const reply = await this.#transactions.writeOne('start', call, (tx) => {
      const found = findByKeys(tx, request.keys);
      return found === undefined ? this.#create(tx, request) : this.#replay(tx, found, request);
    });
    // Thrown outside the transaction: an error inside would roll back the other requests in it.
    if (reply === null) throw new TypeError(`there is already a session '${request.id}'`);
    return reply;
  }

  stop(request: StopRequest, call: Call): Promise<StopReply> {
    const { tenant, client, force, ending } = request;
    return this.#transactions.writeOne('stop', call, (tx): StopReply => {
      const row = findSession(tx, request.id);
      if (row === undefined || (tenant !== null && row.tenant !== tenant))
        return { kind: 'absent' };
      const isStopping = row.state === 'STOPPING' || row.state === 'ENDED';
      if (isStopping) return { kind: 'found', session: storedOf(row), changed: false };
      if (force) dropClients(tx, row);
      else dropClient(tx, row, client);
      const changed = row.clients === 0;
      if (!changed) saveSession(tx, row);
      else if (row.state === 'NEW') this.#change(tx, row, 'ENDED', ending);
      else this.#change(tx, row, 'STOPPING', row.status);
      return { kind: 'found', session: storedOf(row), changed };
    });
  }

  async advance(
    id: string,
    { ifRevision, ifChangedAtMs, state, status }: Advance,
    call: Call,
  ): Promise<AdvanceReply> {
    sized('session', id, status);
    return this.#transactions.writeOne('advance', call, (tx): AdvanceReply => {
      const row = findSession(tx, id);
      if (row === undefined) return { kind: 'absent' };
      const isSame =
        row.revision === ifRevision && (ifChangedAtMs ?? row.changedAtMs) === row.changedAtMs;
      if (row.state === 'ENDED' || !isSame) return { kind: 'conflict', session: storedOf(row) };
      this.#change(tx, row, state, status);
      return { kind: 'advanced', session: storedOf(row) };
    });
  }

  async republish(ids: readonly string[], call: Call): Promise<string[]> {
    const each = (tx: Tx, id: string): string[] => {
      const row = findSession(tx, id);
      if (row?.state !== 'NEW') return [];
      const stream = ensureStream(tx, startStream(row.kind));
      if (findLane(tx, stream, row.id) !== undefined) return [];
      this.#publish(tx, row);
      return [row.id];
    };
    const batch = { operation: 'republish', items: ids, each };
    return (await this.#transactions.write(batch, call)).flat();
  }

  read(ids: readonly string[], call: Call): Promise<(StoredSession | null)[]> {
    const each = (tx: Tx, id: string): StoredSession | null => {
      const row = findSession(tx, id);
      return row === undefined ? null : storedOf(row);
    };
    return this.#transactions.read({ operation: 'read sessions', items: ids, each }, call);
  }

  list(call: SessionListCall): Promise<StoredSessionPage> {
    const size = Math.min(call.most ?? SESSIONS_PAGE, SESSIONS_PAGE);
    const before = positionOf(call.cursor) || Number.MAX_SAFE_INTEGER;
    return this.#transactions.readOne('list sessions', call, (tx) => {
      const found = sessionsBefore(tx, before, size + 1, call);
      const { page, more } = pageOf(found, size);
      const last = page.at(-1);
      const cursor = more && last !== undefined && { cursor: String(last.number) };
      return { sessions: page.map(storedOf), ...cursor };
    });
  }

  prune({ endedBeforeMs, most, ...call }: PruneCall): Promise<number> {
    return this.#transactions.writeOne('prune', call, (tx) => {
      const forgotten = forgetEnded(tx, endedBeforeMs, most);
      for (const { id, kind } of forgotten) {
        const stream = findStream(tx, startStream(kind));
        const lane = stream === null ? undefined : findLane(tx, stream, id);
        if (lane !== undefined) clearLane(tx, lane, false);
      }
      return forgotten.length;
    });
  }

  #create(tx: Tx, request: StartRequest): StartReply | null {
    const row = makeSession(tx, request);
    if (row === null) return null;
    this.#publish(tx, row);
    return { kind: 'created', session: storedOf(row) };
  }

  #replay(tx: Tx, row: SessionRow, { keys, client }: StartRequest): StartReply {
    if (!hasClient(tx, row, client)) {
      if (row.clients >= CLIENTS_MOST) return { kind: 'crowded', session: storedOf(row) };
      addClient(tx, row, client);
      saveSession(tx, row);
    }
    leadTo(tx, row.number, keys);
    return { kind: 'replayed', session: storedOf(row) };
  }

  #change(tx: Tx, row: SessionRow, state: SessionState, status: string): void {
    const isOther = row.state !== state;
    row.state = state;
    row.status = status;
    row.revision++;
    row.changedAtMs = tx.wallMs;
    if (state === 'ENDED') cutLoose(tx, row);
    saveSession(tx, row);
    if (isOther) this.#signals.send(tx, SESSION_CHANGES_TOPIC, row.id);
  }

  #publish(tx: Tx, { id, kind, priority }: SessionRow): void {
    const name = startStream(kind);
    const stream = ensureStream(tx, name);
    addEntry(tx, stream, { lane: id, priority, json: JSON.stringify({ session: id }) });
    this.#signals.send(tx, streamTopic(name), name);
  }
}
