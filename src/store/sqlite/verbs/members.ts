import { sized } from '../../port/limits.ts';
import type { MemberStore } from '../../port/member-store.ts';
import type { LockQueue } from '../file/lock-queue.ts';

export function sqliteMembers(queue: LockQueue): MemberStore {
  return {
    async beat({ id, attributes }, call) {
      const json = sized('heartbeat', id, JSON.stringify(attributes));
      await queue.writeOne('beat', call, ({ connection, scope, nowMs }) => {
        connection.run('DELETE FROM members WHERE expires <= ?', nowMs);
        const sql = 'INSERT OR REPLACE INTO members VALUES (?, ?, ?, ?)';
        connection.run(sql, scope, id, json, nowMs + call.ttlMs);
      });
    },
    async leave(id, call) {
      await queue.writeOne('leave', call, ({ connection, scope }) =>
        connection.run('DELETE FROM members WHERE scope = ? AND id = ?', scope, id),
      );
    },
    /** The table is the only source, so a thorough listing finds no more than this one. */
    list: (call) =>
      queue.readOne('list members', call, ({ connection, scope, nowMs }) => {
        const sql = 'SELECT id, attributes, expires FROM members WHERE scope = ? AND expires > ?';
        const rows = connection.rows<[string, string, number]>(sql, scope, nowMs);
        return rows.map(([id, json, expires]) => {
          return { id, attributes: JSON.parse(json), expiresInMs: expires - nowMs };
        });
      }),
  };
}
