import { KeyForeignError } from '../../../core/errors.ts';
import {
  type Advance,
  type AdvanceReply,
  type IntentStore,
  type PruneCall,
  SESSION_STATES,
  SESSIONS_PAGE,
  type SessionListCall,
  type SessionState,
  type StartReply,
  type StartRequest,
  type StopReply,
  type StopRequest,
  type StoredSession,
  type StoredSessionPage,
} from '../../port/intent-store.ts';
import { sized } from '../../port/limits.ts';
import type { Call } from '../../port/store.ts';
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
  kind: string,
  label: string,
];
/** A value of another program lies in the place of a session. */
type ScriptForeign = [kind: 0, name: string];
type ScriptStart = [1, number] | [2 | 3, ScriptFacts, string] | ScriptForeign;
type ScriptChange = [1 | 2, ScriptFacts] | ScriptForeign | null;
type ScriptRow = [id: string, place: string, ScriptFacts | [name: string] | null];

/** Requests for one page, if the index has many sessions that are not wanted. */
const MAX_READS = 25;
/** A cursor is a place in an index, without its sign. */
const PLACE = /^\d{1,16}$/;

export class RedisIntents implements IntentStore {
  readonly #work: WorkConnection;

  constructor(work: WorkConnection) {
    this.#work = work;
  }

  /** Every intent passes here: one request, and the reply has only facts that are new here. */
  async start(request: StartRequest, call: Call): Promise<StartReply> {
    const { id, tenant, kind, label, keys, client, body, status, priority } = request;
    sized('session', id, body + status);
    const facts = [id, tenant, client, body, status, String(priority), entryOf(id), kind, label];
    const args = [...facts, ...keys];
    const reply = (await this.#work.run(scripts['intent/start'], args, call)) as ScriptStart;
    if (reply[0] === 0) throw foreign(reply[1]);
    if (reply[0] !== 1) {
      const session = this.#session(reply[2], reply[1]);
      return { kind: reply[0] === 2 ? 'replayed' : 'crowded', session };
    }
    const [, atMs] = reply;
    const made = { state: 'NEW', revision: 1, clients: 1 } as const;
    const times = { createdAtMs: atMs, changedAtMs: atMs };
    const session = { id, tenant, kind, label, ...made, body, status, ...times };
    return { kind: 'created', session };
  }

  async stop(request: StopRequest, call: Call): Promise<StopReply> {
    const { id, client, force, ending, tenant } = request;
    const args = [id, client, force ? '1' : '0', ending];
    if (tenant !== null) args.push(tenant);
    const reply = (await this.#work.run(scripts['intent/stop'], args, call)) as ScriptChange;
    if (reply === null) return { kind: 'absent' };
    if (reply[0] === 0) throw foreign(reply[1]);
    return { kind: 'found', session: this.#session(id, reply[1]), changed: reply[0] === 2 };
  }

  async advance(id: string, change: Advance, call: Call): Promise<AdvanceReply> {
    const status = sized('session', id, change.status);
    const args = [id, String(change.ifRevision), change.state, status];
    if (change.ifChangedAtMs !== undefined) args.push(String(change.ifChangedAtMs));
    const reply = (await this.#work.run(scripts['intent/advance'], args, call)) as ScriptChange;
    if (reply === null) return { kind: 'absent' };
    if (reply[0] === 0) throw foreign(reply[1]);
    const session = this.#session(id, reply[1]);
    return { kind: reply[0] === 1 ? 'advanced' : 'conflict', session };
  }

  async republish(ids: readonly string[], call: Call): Promise<string[]> {
    const each = ids.map((id) => [id, entryOf(id)]);
    const replies = await this.#work.runEach(scripts['intent/republish'], [], each, call);
    return ids.filter((_, i) => replies[i] === 1);
  }

  async read(ids: readonly string[], call: Call): Promise<(StoredSession | null)[]> {
    const each = ids.map((id) => [id]);
    const replies = await this.#work.runEach(scripts['intent/read'], [], each, call);
    return replies.map((reply, i) => {
      return reply === null ? null : this.#session(ids[i] ?? '', reply as ScriptFacts);
    });
  }

  /**
   * A value that another program has put in the place of a session is left out. The other sessions
   * are listed all the same.
   */
  async list(call: SessionListCall): Promise<StoredSessionPage> {
    const { cursor = '' } = call;
    const size = atMost(call.most, SESSIONS_PAGE);
    const index = indexOf(call);
    const left = this.#work.within(call);
    const found: { readonly place: string; readonly session: StoredSession }[] = [];
    const foreign: string[] = [];
    let from = PLACE.test(cursor) ? `-${cursor}` : '-inf';
    let isMore = true;
    for (let reads = 0; isMore && found.length <= size && reads < MAX_READS; reads++) {
      // A page of an index that has other sessions, too, is read in whole chunks.
      const count = index.isExact ? Math.min(CHUNK, size + 1 - found.length) : CHUNK;
      const args = [index.name, from, String(count)];
      const rows = (await this.#work.run(scripts['intent/list'], args, left())) as ScriptRow[];
      for (const [id, place, facts] of rows) {
        const session = facts && isFacts(facts) ? sessionOf(id, facts) : null;
        if (session === null && facts !== null) foreign.push(id);
        else if (session !== null && isWanted(session, call)) found.push({ place, session });
        from = place;
        if (found.length > size) break;
      }
      isMore = rows.length === count;
    }
    const page = found.slice(0, size);
    const sessions = page.map(({ session }) => session);
    const listed = { sessions, ...(foreign.length > 0 && { foreign }) };
    // The next page begins behind this one, or behind what was read in vain.
    if (found.length > size) return { ...listed, cursor: (page.at(-1)?.place ?? '').slice(1) };
    return isMore ? { ...listed, cursor: from.slice(1) } : listed;
  }

  async prune(call: PruneCall): Promise<number> {
    const left = this.#work.within(call);
    let forgotten = 0;
    let isMore = true;
    while (isMore && forgotten < call.most) {
      const count = Math.min(CHUNK, call.most - forgotten);
      const args = [String(call.endedBeforeMs), String(count)];
      const reply = await this.#work.run(scripts['intent/prune'], args, left());
      const [met, gone] = reply as [met: number, gone: number];
      forgotten += gone;
      isMore = met === count;
    }
    return forgotten;
  }

  #session(id: string, facts: ScriptFacts): StoredSession {
    const session = sessionOf(id, facts);
    if (session === null) throw foreign(`${this.#work.keys.intents}session:${id}`);
    return session;
  }
}

/** The entry of a session in the stream of starts. */
function entryOf(session: string): string {
  return JSON.stringify({ session });
}

/** `isExact`: the index has no sessions that are not wanted. */
function indexOf({ tenant, kind, label, isOpen = false }: SessionListCall): {
  readonly name: string;
  readonly isExact: boolean;
} {
  const which = isOpen ? 'open' : 'all';
  if (kind === undefined)
    return { name: tenant === undefined ? which : `${which}:${tenant}`, isExact: true };
  if (label !== undefined)
    return { name: `label:${kind}:${label}`, isExact: !isOpen && tenant === undefined };
  return { name: `of:${which}:${kind}`, isExact: tenant === undefined };
}

function isWanted(session: StoredSession, { tenant, isOpen = false }: SessionListCall): boolean {
  const isOfTenant = tenant === undefined || session.tenant === tenant;
  return isOfTenant && !(isOpen && session.state === 'ENDED');
}

/** Null if these are not the facts of a session. */
function sessionOf(id: string, facts: ScriptFacts): StoredSession | null {
  const [tenant, state, revision, body, status, clients, createdMs, changedMs, kind, label] = facts;
  const numbers = [revision, clients, createdMs, changedMs].map(Number);
  const isOurs =
    isState(state) && numbers.every(Number.isSafeInteger) && body !== null && status !== null;
  if (!isOurs) return null;
  const [rev = 0, count = 0, createdAtMs = 0, changedAtMs = 0] = numbers;
  return {
    id,
    tenant,
    kind,
    label,
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
