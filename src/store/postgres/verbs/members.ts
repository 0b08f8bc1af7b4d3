import { sized } from '../../port/limits.ts';
import type {
  BeatCall,
  LiveMember,
  Member,
  MemberListCall,
  MemberStore,
} from '../../port/member-store.ts';
import type { Call } from '../../port/store.ts';
import type { FunctionConnection } from './function-connection.ts';

export class PostgresMembers implements MemberStore {
  readonly #functions: FunctionConnection;

  constructor(functions: FunctionConnection) {
    this.#functions = functions;
  }

  async beat({ id, attributes }: Member, call: BeatCall): Promise<void> {
    const json = sized('heartbeat', id, JSON.stringify(attributes));
    const request = { id, attributes: json, ttl: call.ttlMs };
    await this.#functions.call('beat', 'member_beat', request, call);
  }

  async leave(id: string, call: Call): Promise<void> {
    await this.#functions.call('leave', 'member_leave', { id }, call);
  }

  /** The table is the only source, so a thorough listing finds no more than this one. */
  async list(call: MemberListCall): Promise<LiveMember[]> {
    type Row = [id: string, attributes: string, expiresInMs: number];
    const rows = await this.#functions.call<Row[]>('list members', 'member_list', {}, call);
    return rows.map(([id, json, expiresInMs]) => {
      return { id, attributes: JSON.parse(json), expiresInMs };
    });
  }
}
