import {
  CLIENTS_MOST,
  type IntentStore,
  SESSIONS_PAGE,
  type StartReply,
  type StoredSession,
} from '../../port/intent-store.ts';
import { sized } from '../../port/limits.ts';
import { pageOf, positionOf } from '../../values.ts';
import type { FunctionConnection, ReturnedHint } from './function-connection.ts';

interface Hinting {
  readonly hints: readonly ReturnedHint[];
}

export function postgresIntents(functions: FunctionConnection): IntentStore {
  return {
    async start(request, call) {
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
      const { hints, ...reply } = await functions.call<Reply>('start', 'intent_start', asked, call);
      functions.send(hints);
      if (reply.kind === 'taken') throw new TypeError(`there is already a session '${request.id}'`);
      return reply;
    },
    async stop(request, call) {
      type Reply = (Hinting & { session: StoredSession; changed: boolean }) | null;
      const asked = { ...request, client: escaped(request.client) };
      const reply = await functions.call<Reply>('stop', 'intent_stop', asked, call);
      if (reply === null) return { kind: 'absent' };
      functions.send(reply.hints);
      return { kind: 'found', session: reply.session, changed: reply.changed };
    },
    async advance(id, change, call) {
      type Reply = (Hinting & { session: StoredSession; isDone: boolean }) | null;
      const { ifRevision: revision, state, status } = change;
      sized('session', id, status);
      const request = { id, revision, state, status };
      const reply = await functions.call<Reply>('advance', 'intent_advance', request, call);
      if (reply === null) return { kind: 'absent' };
      functions.send(reply.hints);
      return { kind: reply.isDone ? 'advanced' : 'conflict', session: reply.session };
    },
    async republish(ids, call) {
      type Reply = [again: string[], hints: ReturnedHint[]];
      const reply = await functions.call<Reply>('republish', 'intent_republish', { ids }, call);
      const [again, hints] = reply;
      functions.send(hints);
      return again;
    },
    read(ids, call) {
      return functions.call('read sessions', 'intent_read', { ids }, call);
    },
    async list(call) {
      type Row = [number: string, session: StoredSession];
      const size = Math.min(call.most ?? SESSIONS_PAGE, SESSIONS_PAGE);
      const before = positionOf(call.cursor) || Number.MAX_SAFE_INTEGER;
      const { tenant, kind, isOpen: open = false } = call;
      const label = call.label === undefined ? undefined : JSON.stringify(call.label);
      const request = { tenant, kind, label, open, before, most: size };
      const rows = await functions.call<Row[]>('list sessions', 'intent_list', request, call);
      const { page, more } = pageOf(rows, size);
      const sessions = page.map(([, session]) => session);
      const last = page.at(-1);
      return more && last !== undefined ? { sessions, cursor: last[0] } : { sessions };
    },
    prune({ endedBeforeMs, most, ...call }) {
      return functions.call('prune', 'intent_prune', { before: endedBeforeMs, most }, call);
    },
  };
}

/** PostgreSQL stores no NUL, and these texts are only compared. */
function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\0', '\\0');
}
