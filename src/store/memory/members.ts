import type { Clock } from '../../core/clock.ts';
import { sized } from '../port/limits.ts';
import type { BeatCall, LiveMember, Member, MemberStore } from '../port/member-store.ts';
import { notExpired } from './expiry.ts';

export class MemoryMembers implements MemberStore {
  readonly #clock: Clock;
  readonly #members = new Map<string, { json: string; expiresAtMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async beat({ id, attributes }: Member, { ttlMs }: BeatCall): Promise<void> {
    const expiresAtMs = this.#clock.monotonicMs() + ttlMs;
    const json = sized('heartbeat', id, JSON.stringify(attributes));
    this.#members.set(id, { json, expiresAtMs });
  }

  async leave(id: string): Promise<void> {
    this.#members.delete(id);
  }

  async list(): Promise<LiveMember[]> {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#members.keys()].flatMap((id) => {
      const found = notExpired(this.#members, id, nowMs);
      if (found === undefined) return [];
      return [{ id, attributes: JSON.parse(found.json), expiresInMs: found.expiresAtMs - nowMs }];
    });
  }
}
