import type { Clock } from '../../core/clock.ts';
import { sized } from '../port/limits.ts';
import type { MemberStore } from '../port/member-store.ts';
import { notExpired } from './expiry.ts';

export function memoryMembers(clock: Clock): MemberStore {
  const members = new Map<string, { json: string; expiresAtMs: number }>();
  return {
    async beat({ id, attributes }, { ttlMs }) {
      const expiresAtMs = clock.monotonicMs() + ttlMs;
      members.set(id, {
        json: sized('heartbeat', id, JSON.stringify(attributes)),
        expiresAtMs,
      });
    },
    async leave(id) {
      members.delete(id);
    },
    async list() {
      const nowMs = clock.monotonicMs();
      return [...members.keys()].flatMap((id) => {
        const found = notExpired(members, id, nowMs);
        if (found === undefined) return [];
        return [{ id, attributes: JSON.parse(found.json), expiresInMs: found.expiresAtMs - nowMs }];
      });
    },
  };
}
