import type { BeatCall, Call, LiveMember, Member, MemberListCall, MemberStore } from '../store.ts';
import type { Fleet } from './fleet.ts';
import { escapeGlob, type Keys } from './keys.ts';
import { scripts } from './scripts.ts';

/**
 * A member is a heartbeat that expires, under a name that other programs know too; a set says whom to look for. The
 * heartbeat is the truth: who is in the set without one is taken out, and who has one without being in the set is found
 * by a thorough look, and by its own next beat.
 */
export class RedisMembers implements MemberStore {
  readonly #keys: Keys;
  readonly #fleet: Fleet;

  constructor(parts: { keys: Keys; fleet: Fleet }) {
    this.#keys = parts.keys;
    this.#fleet = parts.fleet;
  }

  async beat({ id, attributes }: Member, { ttlMs, timeoutMs }: BeatCall): Promise<void> {
    const beat = ['SET', this.#keys.member(id), JSON.stringify(attributes), 'PX', String(ttlMs)];
    await Promise.all([
      this.#send('beat', this.#keys.member(id), beat, timeoutMs),
      this.#index('SADD', [id], timeoutMs),
    ]);
  }

  async leave(id: string, { timeoutMs }: Call): Promise<void> {
    await Promise.all([
      this.#send('leave', this.#keys.member(id), ['DEL', this.#keys.member(id)], timeoutMs),
      this.#index('SREM', [id], timeoutMs),
    ]);
  }

  async list({ timeoutMs, thorough = false }: MemberListCall): Promise<LiveMember[]> {
    const members = this.#keys.members;
    const known = (await this.#send(
      'members',
      members,
      ['SMEMBERS', members],
      timeoutMs,
    )) as string[];
    const strangers = thorough ? await this.#strangers(known, timeoutMs) : [];
    const ids = [...known, ...strangers];
    const found = await this.#look(ids, timeoutMs);
    const gone = known.filter((id) => !found.has(id));
    const come = strangers.filter((id) => found.has(id));
    if (gone.length > 0) await this.#index('SREM', gone, timeoutMs);
    if (come.length > 0) await this.#index('SADD', come, timeoutMs);
    return [...found.values()];
  }

  async #look(ids: readonly string[], timeoutMs: number): Promise<Map<string, LiveMember>> {
    const found = new Map<string, LiveMember>();
    if (ids.length === 0) return found;
    const keys = ids.map((id) => this.#keys.member(id));
    const work = { script: scripts.look, keys, perKey: keys.map(() => []) };
    for (const part of await this.#fleet.run(work, timeoutMs)) {
      if (part.kind === 'failed') throw part.error;
      if (part.kind !== 'reply') continue;
      for (const [i, reply] of (part.reply as ([string, number] | null)[]).entries()) {
        const id = ids[part.from + i];
        if (reply === null || id === undefined) continue;
        const [text, remainingMs] = reply;
        const expiresInMs = remainingMs < 0 ? Number.POSITIVE_INFINITY : remainingMs;
        found.set(id, { id, attributes: readAttributes(text), expiresInMs });
      }
    }
    return found;
  }

  /** Who beats without being in the set: members of another make. */
  async #strangers(known: readonly string[], timeoutMs: number): Promise<string[]> {
    const found = new Set<string>();
    const pattern = `${escapeGlob(this.#keys.member(''))}*`;
    let cursor: string | undefined;
    do {
      const page = await this.#fleet.scan(pattern, cursor, timeoutMs);
      for (const name of page.names) found.add(name.slice(this.#keys.member('').length));
      cursor = page.cursor;
    } while (cursor !== undefined);
    for (const id of known) found.delete(id);
    return [...found];
  }

  #index(command: 'SADD' | 'SREM', ids: readonly string[], timeoutMs: number): Promise<unknown> {
    const members = this.#keys.members;
    return this.#send('members', members, [command, members, ...ids], timeoutMs);
  }

  #send(operation: string, key: string, args: readonly string[], timeoutMs: number) {
    return this.#fleet.send(operation, key, args, timeoutMs);
  }
}

/** The object a Holdfast says of itself, or null: somebody else's heartbeat is a bare `1`. */
function readAttributes(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
