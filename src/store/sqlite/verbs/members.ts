import { sized } from '../../port/limits.ts';
import type {
  BeatCall,
  LiveMember,
  Member,
  MemberListCall,
  MemberStore,
} from '../../port/member-store.ts';
import type { Call } from '../../port/store.ts';
import type { LockQueue } from '../file/lock-queue.ts';

export class SqliteMembers implements MemberStore {
  readonly #queue: LockQueue;

  constructor(queue: LockQueue) {
    this.#queue = queue;
  }

  async beat({ id, attributes }: Member, call: BeatCall): Promise<void> {
    const json = sized('heartbeat', id, JSON.stringify(attributes));
    await this.#queue.writeOne('beat', call, ({ connection, scope, nowMs }) => {
      connection.run('DELETE FROM members WHERE expires <= ?', nowMs);
      const sql = 'INSERT OR REPLACE INTO members VALUES (?, ?, ?, ?)';
      connection.run(sql, scope, id, json, nowMs + call.ttlMs);
    });
  }

  async leave(id: string, call: Call): Promise<void> {
    await this.#queue.writeOne('leave', call, ({ connection, scope }) =>
      connection.run('DELETE FROM members WHERE scope = ? AND id = ?', scope, id),
    );
  }

  /** The table is the only source, so a thorough listing finds no more than this one. */
  list(call: MemberListCall): Promise<LiveMember[]> {
    return this.#queue.readOne('list members', call, ({ connection, scope, nowMs }) =>
      connection
        .rows<[string, string, number]>(
          'SELECT id, attributes, expires FROM members WHERE scope = ? AND expires > ?',
          scope,
          nowMs,
        )
        .map(([id, json, expires]) => {
          return { id, attributes: JSON.parse(json), expiresInMs: expires - nowMs };
        }),
    );
  }
}
