import { sized } from '../../port/limits.ts';
import type { MemberStore } from '../../port/member-store.ts';
import type { FunctionConnection } from './function-connection.ts';

export function postgresMembers(functions: FunctionConnection): MemberStore {
  return {
    async beat({ id, attributes }, call) {
      const json = sized('heartbeat', id, JSON.stringify(attributes));
      const request = { id, attributes: json, ttl: call.ttlMs };
      await functions.call('beat', 'member_beat', request, call);
    },
    async leave(id, call) {
      await functions.call('leave', 'member_leave', { id }, call);
    },
    /** The table is the only source, so a thorough listing finds no more than this one. */
    async list(call) {
      type Row = [id: string, attributes: string, expiresInMs: number];
      const rows = await functions.call<Row[]>('list members', 'member_list', {}, call);
      return rows.map(([id, json, expiresInMs]) => {
        return { id, attributes: JSON.parse(json), expiresInMs };
      });
    },
  };
}
