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
  START_STREAM,
  type StartReply,
  type StartRequest,
  type StopReply,
  type StopRequest,
  type StoredSession,
  type StoredSessionPage,
} from '../../port/intent-store.ts';
import { sized } from '../../port/limits.ts';
import type { Call } from '../../port/store.ts';
import { streamTopic } from '../../port/stream-store.ts';
import type { Tx } from '../file/sqlite-connection.ts';
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
import { asJson } from './json.ts';
import { pageOf, positionOf } from './pages.ts';
import type { WorkParts } from './streams.ts';

export class SqliteIntents implements IntentStore {
  readonly #parts: WorkParts;

  constructor(parts: WorkParts) {
    this.#parts = parts;
  }

  async start(request: StartRequest, call: Call): Promise<StartReply> {
    sized('session', request.id, request.body + request.status);
    const reply = await this.#parts.turns.writeOne('start', call, (tx) => {
      const found = findByKeys(tx, this.#parts.scope, request.keys);
      return found === undefined ? this.#create(tx, request) : this.#replay(tx, found, request);
    });
    // Thrown only here: within the transaction it would be the end of all others in it.
    if (reply === null) throw new TypeError(`there has been a session '${request.id}' already`);
    return reply;
  }

  stop(request: StopRequest, call: Call): Promise<StopReply> {
    const { tenant, client, force, ending } = request;
    return this.#parts.turns.writeOne('stop', call, (tx): StopReply => {
      const row = findSession(tx, this.#parts.scope, request.id);
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
    { ifRevision, state, status }: Advance,
    call: Call,
  ): Promise<AdvanceReply> {
    sized('session', id, status);
    return this.#parts.turns.writeOne('advance', call, (tx): AdvanceReply => {
      const row = findSession(tx, this.#parts.scope, id);
      if (row === undefined) return { kind: 'absent' };
      if (row.state === 'ENDED' || row.revision !== ifRevision)
        return { kind: 'conflict', session: storedOf(row) };
      this.#change(tx, row, state, status);
      return { kind: 'advanced', session: storedOf(row) };
    });
  }

  async republish(ids: readonly string[], call: Call): Promise<string[]> {
    const each = (tx: Tx, i: number): string[] => {
      const row = findSession(tx, this.#parts.scope, ids[i] as string);
      if (row?.state !== 'NEW') return [];
      const stream = ensureStream(tx, this.#parts.scope, START_STREAM);
      if (findLane(tx, stream, row.id) !== undefined) return [];
      this.#publish(tx, row);
      return [row.id];
    };
    const batch = { operation: 'republish', count: ids.length, each };
    return (await this.#parts.turns.write(batch, call)).flat();
  }

  read(ids: readonly string[], call: Call): Promise<(StoredSession | null)[]> {
    const each = (tx: Tx, i: number): StoredSession | null => {
      const row = findSession(tx, this.#parts.scope, ids[i] as string);
      return row === undefined ? null : storedOf(row);
    };
    return this.#parts.turns.read({ operation: 'read sessions', count: ids.length, each }, call);
  }

  list(call: SessionListCall): Promise<StoredSessionPage> {
    const size = Math.min(call.most ?? SESSIONS_PAGE, SESSIONS_PAGE);
    const before = positionOf(call.cursor) || Number.MAX_SAFE_INTEGER;
    return this.#parts.turns.readOne('list sessions', call, (tx) => {
      const found = sessionsBefore(tx, this.#parts.scope, before, size + 1, call);
      const { page, more } = pageOf(found, size);
      const last = page.at(-1);
      const cursor = more && last !== undefined && { cursor: String(last.number) };
      return { sessions: page.map(storedOf), ...cursor };
    });
  }

  prune({ endedBeforeMs, most, ...call }: PruneCall): Promise<number> {
    const { scope, turns } = this.#parts;
    return turns.writeOne('prune', call, (tx) => {
      const ids = forgetEnded(tx, scope, endedBeforeMs, most);
      const stream = findStream(tx, scope, START_STREAM);
      for (const id of ids) {
        const lane = stream === null ? undefined : findLane(tx, stream, id);
        if (lane !== undefined) clearLane(tx, lane, false);
      }
      return ids.length;
    });
  }

  #create(tx: Tx, request: StartRequest): StartReply | null {
    const row = makeSession(tx, this.#parts.scope, request);
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
    leadTo(tx, this.#parts.scope, row.number, keys);
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
    if (isOther) this.#parts.tell(tx, SESSION_CHANGES_TOPIC, row.id);
  }

  #publish(tx: Tx, { id, priority }: SessionRow): void {
    const stream = ensureStream(tx, this.#parts.scope, START_STREAM);
    addEntry(tx, stream, { lane: id, priority, json: asJson({ session: id }) });
    this.#parts.tell(tx, streamTopic(START_STREAM), START_STREAM);
  }
}
