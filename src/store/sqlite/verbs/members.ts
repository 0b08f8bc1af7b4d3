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
import type { Names } from '../tables/names.ts';

export class SqliteMembers implements MemberStore {
  readonly #scope: string;
  readonly #turns: LockQueue;

  constructor(parts: { names: Names; turns: LockQueue }) {
    this.#scope = parts.names.prefix;
    this.#turns = parts.turns;
  }

  async beat({ id, attributes }: Member, call: BeatCall): Promise<void> {
    const json = sized('heartbeat', id, JSON.stringify(attributes));
    await this.#turns.writeOne('beat', call, ({ session, nowMs }) => {
      session.run('DELETE FROM members WHERE expires <= ?', nowMs);
      session.run(
        'INSERT OR REPLACE INTO members VALUES (?, ?, ?, ?)',
        this.#scope,
        id,
        json,
        nowMs + call.ttlMs,
      );
    });
  }

  async leave(id: string, call: Call): Promise<void> {
    await this.#turns.writeOne('leave', call, ({ session }) =>
      session.run('DELETE FROM members WHERE scope = ? AND id = ?', this.#scope, id),
    );
  }

  /** Nobody else writes this file, so there is nothing more to find by looking thoroughly. */
  list(call: MemberListCall): Promise<LiveMember[]> {
    return this.#turns.readOne('list members', call, ({ session, nowMs }) =>
      session
        .rows<[string, string, number]>(
          'SELECT id, attributes, expires FROM members WHERE scope = ? AND expires > ?',
          this.#scope,
          nowMs,
        )
        .map(([id, json, expires]) => {
          return { id, attributes: JSON.parse(json), expiresInMs: expires - nowMs };
        }),
    );
  }
}
