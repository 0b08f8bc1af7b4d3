import { type Clock, timeLeft } from '../../../core/clock.ts';
import type { BaseRuntime } from '../../../core/runtime.ts';
import { sized } from '../../port/limits.ts';
import type {
  BeatCall,
  LiveMember,
  Member,
  MemberListCall,
  MemberStore,
} from '../../port/member-store.ts';
import type { Call } from '../../port/store.ts';
import type { Keys } from '../keys.ts';
import { scripts } from '../scripts.ts';
import { onlyReply, type Servers } from '../topology/servers.ts';
import { timeForSteps, walk } from './walk.ts';

type Attributes = LiveMember['attributes'];
/** An id, its heartbeat, and in how many ms that expires. */
type Beating = [id: string, text: string, remainingMs: number];

/**
 * A member is a heartbeat that expires, under a name that other programs know too. A set has the
 * ids of all members. The heartbeat decides: an id without one is removed from the set, and a
 * heartbeat whose id is not in the set is found by a thorough `list`, or by its own next beat. On a
 * Cluster the two lie apart, and a verb is more than one request.
 */
export class RedisMembers implements MemberStore {
  readonly #keys: Keys;
  readonly #servers: Servers;
  readonly #clock: Clock;
  readonly #isApart: boolean;
  /** The heartbeats of the last listing, by their text: most stay the same. */
  #known = new Map<string, Attributes>();

  constructor({ clock }: BaseRuntime, keys: Keys, servers: Servers) {
    this.#keys = keys;
    this.#servers = servers;
    this.#clock = clock;
    this.#isApart = servers.shardOf !== undefined;
  }

  async beat({ id, attributes }: Member, { ttlMs, timeoutMs }: BeatCall): Promise<void> {
    const leftMs = timeLeft(this.#clock, timeoutMs);
    const key = this.#keys.member(id);
    const text = sized('heartbeat', id, JSON.stringify(attributes));
    if (!this.#isApart) {
      const keys = [key, this.#keys.members];
      const work = { script: scripts['member/beat'], keys, perKey: [[text, String(ttlMs), id]] };
      await this.#servers.run(work, leftMs());
      return;
    }
    // In this order: an id without a heartbeat is removed from the set.
    await this.#servers.send('beat', key, ['SET', key, text, 'PX', String(ttlMs)], leftMs());
    await this.#index('SADD', [id], leftMs());
  }

  async leave(id: string, { timeoutMs }: Call): Promise<void> {
    const key = this.#keys.member(id);
    await Promise.all([
      this.#servers.send('leave', key, ['DEL', key], timeoutMs),
      this.#index('SREM', [id], timeoutMs),
    ]);
  }

  async list({ timeoutMs, thorough = false }: MemberListCall): Promise<LiveMember[]> {
    const where = { store: this.#servers.name, operation: 'list members' };
    const leftMs = timeForSteps(this.#clock, timeoutMs, where);
    if (thorough) await this.#enterUnlisted(leftMs);
    const found = this.#isApart ? await this.#listApart(leftMs) : await this.#listAtOnce(leftMs);
    const before = this.#known;
    this.#known = new Map();
    return found.map(([id, text, remainingMs]) => {
      const attributes = before.get(text) ?? readAttributes(text);
      this.#known.set(text, attributes);
      const expiresInMs = remainingMs < 0 ? Number.POSITIVE_INFINITY : remainingMs;
      return { id, attributes, expiresInMs };
    });
  }

  async #listAtOnce(leftMs: () => number): Promise<Beating[]> {
    const perKey = [[this.#keys.member('')]];
    const work = { script: scripts['member/list'], keys: [this.#keys.members], perKey };
    return onlyReply(await this.#servers.run(work, leftMs())) as Beating[];
  }

  async #listApart(leftMs: () => number): Promise<Beating[]> {
    const set = this.#keys.members;
    const ids = (await this.#servers.send('members', set, ['SMEMBERS', set], leftMs())) as string[];
    if (ids.length === 0) return [];
    const keys = ids.map((id) => this.#keys.member(id));
    const work = { script: scripts['member/read'], keys, perKey: keys.map(() => []) };
    const found: Beating[] = [];
    const gone = new Set(ids);
    for (const part of await this.#servers.run(work, leftMs())) {
      if (part.kind === 'failed') throw part.error;
      if (part.kind !== 'reply') continue;
      for (const [i, reply] of (part.reply as ([string, number] | null)[]).entries()) {
        const id = ids[part.from + i];
        if (reply === null || id === undefined) continue;
        gone.delete(id);
        found.push([id, ...reply]);
      }
    }
    if (gone.size > 0) await this.#index('SREM', [...gone], leftMs());
    return found;
  }

  /** Enters ids that have a heartbeat but are not in the set: those of non-Holdfast programs. */
  async #enterUnlisted(leftMs: () => number): Promise<void> {
    for await (const ids of walk(this.#servers, this.#keys.member(''), leftMs))
      await this.#index('SADD', ids, leftMs());
  }

  #index(command: 'SADD' | 'SREM', ids: readonly string[], timeoutMs: number): Promise<unknown> {
    const members = this.#keys.members;
    return this.#servers.send('members', members, [command, members, ...ids], timeoutMs);
  }
}

/** The attributes of a member, or null: the heartbeat of another program may be a bare `1`. */
function readAttributes(text: string): Attributes {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
