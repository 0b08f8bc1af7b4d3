import {
  type Advance,
  type AdvanceReply,
  CLIENTS_MOST,
  type IntentStore,
  type PruneCall,
  SESSIONS_PAGE,
  type SessionListCall,
  type StartReply,
  type StartRequest,
  type StopReply,
  type StopRequest,
  type StoredSession,
  type StoredSessionPage,
} from '../../port/intent-store.ts';
import { sized } from '../../port/limits.ts';
import type { Call } from '../../port/store.ts';
import { pageOf, positionOf } from '../../values.ts';
import type { FunctionConnection, ReturnedHint } from './function-connection.ts';

interface Hinting {
  readonly hints: readonly ReturnedHint[];
}

export class PostgresIntents implements IntentStore {
  readonly #functions: FunctionConnection;

  constructor(functions: FunctionConnection) {
    this.#functions = functions;
  }

  async start(request: StartRequest, call: Call): Promise<StartReply> {
    type Reply = Hinting & (StartReply | { kind: 'taken' });
    sized('session', request.id, request.body + request.status);
    const { id, tenant, kind, body, status, priority } = request;
    const asked = {
      id,
      tenant,
      kind,
      label: JSON.stringify(request.label),
      body,
      status,
      priority,
      keys: request.keys.map(escaped),
      client: escaped(request.client),
      crowd: CLIENTS_MOST,
    };
    const { hints, ...reply } = await this.#functions.call<Reply>(
      'start',
      'intent_start',
      asked,
      call,
    );
    this.#functions.send(hints);
    if (reply.kind === 'taken') throw new TypeError(`there is already a session '${request.id}'`);
    return reply;
  }

  async stop(request: StopRequest, call: Call): Promise<StopReply> {
    type Reply = (Hinting & { session: StoredSession; changed: boolean }) | null;
    const asked = { ...request, client: escaped(request.client) };
    const reply = await this.#functions.call<Reply>('stop', 'intent_stop', asked, call);
    if (reply === null) return { kind: 'absent' };
    this.#functions.send(reply.hints);
    return { kind: 'found', session: reply.session, changed: reply.changed };
  }

  async advance(id: string, change: Advance, call: Call): Promise<AdvanceReply> {
    type Reply = (Hinting & { session: StoredSession; isDone: boolean }) | null;
    const { ifRevision: revision, state, status } = change;
    sized('session', id, status);
    const request = { id, revision, state, status };
    const reply = await this.#functions.call<Reply>('advance', 'intent_advance', request, call);
    if (reply === null) return { kind: 'absent' };
    this.#functions.send(reply.hints);
    return { kind: reply.isDone ? 'advanced' : 'conflict', session: reply.session };
  }

  async republish(ids: readonly string[], call: Call): Promise<string[]> {
    const [again, hints] = await this.#functions.call<[string[], ReturnedHint[]]>(
      'republish',
      'intent_republish',
      { ids },
      call,
    );
    this.#functions.send(hints);
    return again;
  }

  read(ids: readonly string[], call: Call): Promise<(StoredSession | null)[]> {
    return this.#functions.call('read sessions', 'intent_read', { ids }, call);
  }

  async list(call: SessionListCall): Promise<StoredSessionPage> {
    type Row = [number: string, session: StoredSession];
    const size = Math.min(call.most ?? SESSIONS_PAGE, SESSIONS_PAGE);
    const before = positionOf(call.cursor) || Number.MAX_SAFE_INTEGER;
    const { tenant, kind, isOpen: open = false } = call;
    const label = call.label === undefined ? undefined : JSON.stringify(call.label);
    const request = { tenant, kind, label, open, before, most: size };
    const rows = await this.#functions.call<Row[]>('list sessions', 'intent_list', request, call);
    const { page, more } = pageOf(rows, size);
    const sessions = page.map(([, session]) => session);
    const last = page.at(-1);
    return more && last !== undefined ? { sessions, cursor: last[0] } : { sessions };
  }

  prune({ endedBeforeMs, most, ...call }: PruneCall): Promise<number> {
    return this.#functions.call('prune', 'intent_prune', { before: endedBeforeMs, most }, call);
  }
}

/** PostgreSQL stores no NUL, and these texts are only compared. */
function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\0', '\\0');
}
