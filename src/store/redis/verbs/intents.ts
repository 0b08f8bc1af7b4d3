import { KeyForeignError } from '../../../core/errors.ts';
import {
  type IntentStore,
  SESSION_STATES,
  SESSIONS_PAGE,
  type SessionListCall,
  type SessionState,
  type StoredSession,
  type StoredSessionPage,
} from '../../port/intent-store.ts';
import { sized } from '../../port/limits.ts';
import { scripts } from '../scripts.ts';
import { atMost, CHUNK, type WorkConnection } from './work-connection.ts';

type ScriptFacts = [
  tenant: string,
  state: string,
  revision: string | number,
  body: string,
  status: string,
  clients: string | number,
  createdMs: string,
  changedMs: string | number,
];
/** A value of another program lies in the place of a session. */
type ScriptForeign = [kind: 0, name: string];
type ScriptStart = [1, number] | [2 | 3, ScriptFacts, string] | ScriptForeign;
type ScriptChange = [1 | 2, ScriptFacts] | ScriptForeign | null;
type ScriptRow = [id: string, place: string, ScriptFacts | [name: string] | null];

/** A cursor is a place in an index, without its sign. */
const PLACE = /^\d{1,16}$/;

export function redisIntents(work: WorkConnection): IntentStore {
  const session = (id: string, facts: ScriptFacts) => {
    const found = sessionOf(id, facts);
    if (found === null) throw foreign(`${work.keys.intents}session:${id}`);
    return found;
  };
  return {
    /** Every intent passes here: one request, and the reply has only facts that are new here. */
    async start({ id, tenant, keys, client, body, status, priority }, call) {
      sized('session', id, body + status);
      const args = [id, tenant, client, body, status, String(priority), entryOf(id), ...keys];
      const reply = (await work.run(scripts['intent/start'], args, call)) as ScriptStart;
      if (reply[0] === 0) throw foreign(reply[1]);
      if (reply[0] !== 1)
        return {
          kind: reply[0] === 2 ? 'replayed' : 'crowded',
          session: session(reply[2], reply[1]),
        };
      const [, atMs] = reply;
      const made = { state: 'NEW', revision: 1, clients: 1 } as const;
      const times = { createdAtMs: atMs, changedAtMs: atMs };
      return { kind: 'created', session: { id, tenant, ...made, body, status, ...times } };
    },
    async stop({ id, client, force, ending, tenant }, call) {
      const args = [id, client, force ? '1' : '0', ending];
      if (tenant !== null) args.push(tenant);
      const reply = (await work.run(scripts['intent/stop'], args, call)) as ScriptChange;
      if (reply === null) return { kind: 'absent' };
      if (reply[0] === 0) throw foreign(reply[1]);
      return { kind: 'found', session: session(id, reply[1]), changed: reply[0] === 2 };
    },
    async advance(id, change, call) {
      const status = sized('session', id, change.status);
      const args = [id, String(change.ifRevision), change.state, status];
      const reply = (await work.run(scripts['intent/advance'], args, call)) as ScriptChange;
      if (reply === null) return { kind: 'absent' };
      if (reply[0] === 0) throw foreign(reply[1]);
      return { kind: reply[0] === 1 ? 'advanced' : 'conflict', session: session(id, reply[1]) };
    },
    async republish(ids, call) {
      const each = ids.map((id) => [id, entryOf(id)]);
      const replies = await work.runEach(scripts['intent/republish'], [], each, call);
      return ids.filter((_, i) => replies[i] === 1);
    },
    async read(ids, call) {
      const each = ids.map((id) => [id]);
      const replies = await work.runEach(scripts['intent/read'], [], each, call);
      return replies.map((reply, i) => {
        return reply === null ? null : session(ids[i] ?? '', reply as ScriptFacts);
      });
    },
    list: (call) => list(work, call),
    async prune(call) {
      const left = work.within(call);
      let forgotten = 0;
      let isMore = true;
      while (isMore && forgotten < call.most) {
        const count = Math.min(CHUNK, call.most - forgotten);
        const args = [String(call.endedBeforeMs), String(count)];
        const reply = await work.run(scripts['intent/prune'], args, left());
        const [met, gone] = reply as [met: number, gone: number];
        forgotten += gone;
        isMore = met === count;
      }
      return forgotten;
    },
  };
}

/**
 * A value that another program has put in the place of a session is left out. The other sessions
 * are listed all the same.
 */
async function list(work: WorkConnection, call: SessionListCall): Promise<StoredSessionPage> {
  const { tenant, isOpen = false, cursor = '' } = call;
  const size = atMost(call.most, SESSIONS_PAGE);
  const index = (isOpen ? 'open' : 'all') + (tenant === undefined ? '' : `:${tenant}`);
  const left = work.within(call);
  const found: { readonly place: string; readonly session: StoredSession }[] = [];
  const foreign: string[] = [];
  let from = PLACE.test(cursor) ? `-${cursor}` : '-inf';
  let isMore = true;
  while (isMore && found.length <= size) {
    const count = Math.min(CHUNK, size + 1 - found.length);
    const args = [index, from, String(count)];
    const rows = (await work.run(scripts['intent/list'], args, left())) as ScriptRow[];
    for (const [id, place, facts] of rows) {
      const session = facts && isFacts(facts) ? sessionOf(id, facts) : null;
      if (session !== null) found.push({ place, session });
      else if (facts !== null) foreign.push(id);
      from = place;
    }
    isMore = rows.length === count;
  }
  const page = found.slice(0, size);
  const sessions = page.map(({ session }) => session);
  const listed = { sessions, ...(foreign.length > 0 && { foreign }) };
  if (found.length === page.length) return listed;
  return { ...listed, cursor: (page.at(-1)?.place ?? '').slice(1) };
}

/** The entry of a session in the stream of starts. */
function entryOf(session: string): string {
  return JSON.stringify({ session });
}

/** Null if these are not the facts of a session. */
function sessionOf(id: string, facts: ScriptFacts): StoredSession | null {
  const [tenant, state, revision, body, status, clients, createdMs, changedMs] = facts;
  const numbers = [revision, clients, createdMs, changedMs].map(Number);
  const isOurs =
    isState(state) && numbers.every(Number.isSafeInteger) && body !== null && status !== null;
  if (!isOurs) return null;
  const [rev = 0, count = 0, createdAtMs = 0, changedAtMs = 0] = numbers;
  return {
    id,
    tenant,
    state,
    revision: rev,
    body,
    status,
    clients: count,
    createdAtMs,
    changedAtMs,
  };
}

/** Otherwise the reply has only the name of the key. */
function isFacts(facts: ScriptFacts | [name: string]): facts is ScriptFacts {
  return facts.length > 1;
}

function isState(text: string): text is SessionState {
  return (SESSION_STATES as readonly string[]).includes(text);
}

function foreign(key: string): KeyForeignError {
  return new KeyForeignError({ key, found: 'no session of ours' });
}
