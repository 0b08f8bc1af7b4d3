/**
 * Replays a world against the rules of `testing/model/rules.ts`: what its store carried out, until
 * when its clients believe in their leases, and what they do under them.
 */
import type { EventName } from '../../src/core/events.ts';
import { LEASE_CLASSES, type LeaseClassName } from '../../src/lease/timings.ts';
import type { Reply } from '../../src/store/redis/client/wire.ts';
import { keysOf } from '../../src/store/redis/keys.ts';
import { LeaseModel, type ModelEvent } from '../model/rules.ts';
import type { SimProcess } from './host.ts';
import { verbOf } from './network.ts';

export interface ModelAuditParts {
  readonly nowMs: () => number;
  /** The shortest bound of the world's keyspaces. */
  readonly boundMs: number;
  readonly drift?: number | undefined;
  report(target: string, text: string): void;
}

/** Clocks of clients and of the store run this much faster or slower than true time, at most. */
const USUAL_DRIFT = 0.002;
/** A trace tells the time of each step exactly, but for the rounding of the store's clock. */
const SLACK_MS = 2;
/** Leases of workflows are granted and handed on by scripts of their own. */
const UNSEEN = 'workflow:lease:';

const ENDED: readonly EventName[] = ['lease.lost', 'lease.abandoned'];
const BELIEVED: readonly EventName[] = ['lease.acquired', 'lease.extended'];

export class ModelAudit {
  readonly #parts: ModelAuditParts;
  readonly #model: LeaseModel;
  #excusedUntilMs = 0;

  constructor(parts: ModelAuditParts) {
    this.#parts = parts;
    const { boundMs, drift = USUAL_DRIFT } = parts;
    this.#model = new LeaseModel({ boundMs, drift, slackMs: SLACK_MS });
  }

  /** How many steps were replayed. */
  get steps(): number {
    return this.#model.steps;
  }

  take(event: ModelEvent): void {
    // One request may have such keys beside others.
    if ('key' in event && event.key.includes(UNSEEN)) return;
    const refusal = this.#model.take(event);
    if (refusal === null || this.#parts.nowMs() <= this.#excusedUntilMs) return;
    const { rule, key, text } = refusal;
    this.#parts.report(key, `rule '${rule}' on ${key}: ${text}`);
  }

  /** The store may have lost data. */
  lost(): void {
    this.take({ what: 'lost', atMs: this.#parts.nowMs() });
  }

  /** What happens is not promised for so long. */
  excuse(ms: number): void {
    this.#excusedUntilMs = Math.max(this.#excusedUntilMs, this.#parts.nowMs() + ms);
  }

  clockSet(byMs: number): void {
    this.take({ what: 'clockSet', atMs: this.#parts.nowMs(), byMs });
  }

  /** A process has told an event of a lease. */
  heard(name: EventName, facts: object, process: SimProcess, prefix = ''): void {
    const isBelief = BELIEVED.includes(name);
    if (!isBelief && !ENDED.includes(name)) return;
    const { leaseClass, key: own, holder, fence, remainingMs = 0 } = facts as HeardFacts;
    const key = keysOf(prefix).lease(LEASE_CLASSES[leaseClass].keyspace + own);
    const step = { atMs: this.#parts.nowMs(), key, client: holder, fence };
    if (!isBelief) this.take({ ...step, what: 'ended' });
    else {
      const untilMs = process.trueMs + remainingMs / process.host.rate;
      this.take({ ...step, what: 'believed', untilMs });
    }
  }

  /** A process works under a lease: it has asked just now whether it may. */
  acted(key: string, fence: number, process: SimProcess): void {
    const client = this.#model.ownerOf(key, fence);
    if (client !== undefined)
      this.take({ what: 'acted', atMs: process.trueMs, key, client, fence });
  }

  /** A server of Redis has carried out a script. */
  served(args: readonly string[], reply: Reply): void {
    const verb = verbOf(args);
    const count = Number(args[2]);
    const keys = args.slice(3, 3 + count);
    if (!Array.isArray(reply)) return;
    const given = args.slice(3 + count);
    if (verb === 'lease/acquire') this.#acquired(keys.slice(1), given, reply, false);
    else if (verb === 'lease/claim') this.#acquired(keys.slice(1), given, reply, true);
    else if (verb === 'lease/renew') this.#renewed(keys, given, reply);
    else if (verb === 'lease/reassert') this.#restored(keys.slice(1), given, reply);
    else if (verb === 'lease/release') this.#released(keys, given, reply);
    else if (verb === 'lease/transfer') this.#transferred(keys, given, reply);
    else if (verb === 'lease/revoke') this.#revoked(keys, given, reply);
  }

  #step(key: string | undefined, client: string | undefined) {
    return { atMs: this.#parts.nowMs(), key: key ?? '', client: client ?? '' };
  }

  /** `era ttl inbox (holder options)…`; for a claim `era era ttl (holder floor)…`. */
  #acquired(keys: readonly string[], given: readonly string[], reply: Reply[], isClaim: boolean) {
    const ttlMs = Number(given[isClaim ? 2 : 1]);
    for (const [i, fence] of reply.entries()) {
      if (typeof fence !== 'number') continue;
      const step = this.#step(keys[i], given[3 + 2 * i]);
      this.take({ ...step, what: 'granted', fence, ttlMs, isClaim });
    }
  }

  /** `ttl keep holder…`; answered are those that were not renewed. */
  #renewed(keys: readonly string[], given: readonly string[], reply: Reply[]): void {
    const failed = new Set(reply.map((one) => (Array.isArray(one) ? one[0] : null)));
    const ttlMs = Number(given[0]);
    for (const [i, key] of keys.entries())
      if (!failed.has(i + 1))
        this.take({ ...this.#step(key, given[2 + i]), what: 'renewed', ttlMs });
  }

  /** `era ttl (holder fence)…` */
  #restored(keys: readonly string[], given: readonly string[], reply: Reply[]): void {
    const ttlMs = Number(given[1]);
    for (const [i, put] of reply.entries()) {
      if (put !== 1) continue;
      const fence = Number(given[3 + 2 * i]);
      this.take({ ...this.#step(keys[i], given[2 + 2 * i]), what: 'restored', fence, ttlMs });
    }
  }

  /** `(holder fence)…`; answered are those that were not released, and those that woke a waiter. */
  #released(keys: readonly string[], given: readonly string[], reply: Reply[]): void {
    const failed = new Set(
      reply.map((one) => (Array.isArray(one) && one.length > 1 ? one[0] : null)),
    );
    for (const [i, key] of keys.entries()) {
      if (failed.has(i + 1)) continue;
      const fence = Number(given[2 * i + 1]);
      this.take({ ...this.#step(key, given[2 * i]), what: 'released', fence });
    }
  }

  /** `window era ms (holder fence successor inbox)…` */
  #transferred(keys: readonly string[], given: readonly string[], reply: Reply[]): void {
    const windowMs = Number(given[0]);
    for (const [i, newFence] of reply.entries()) {
      if (typeof newFence !== 'number') continue;
      const [holder, fence, to = ''] = given.slice(3 + 4 * i);
      const step = this.#step(keys[i], holder);
      const facts = { fence: Number(fence), newFence, to, windowMs };
      this.take({ ...step, what: 'transferred', ...facts });
    }
  }

  /** `tombstone force …`, answered `{holder, fence, ms, woken}`; less where nothing was ended. */
  #revoked(keys: readonly string[], given: readonly string[], reply: Reply[]): void {
    const [holder, newFence] = reply;
    if (reply.length < 3 || typeof holder !== 'string' || typeof newFence !== 'number') return;
    const isForced = given[1] === '1';
    this.take({ ...this.#step(keys[0], holder), what: 'revoked', newFence, isForced });
  }
}

interface HeardFacts {
  readonly leaseClass: LeaseClassName;
  readonly key: string;
  readonly holder: string;
  readonly fence: number;
  readonly remainingMs?: number;
}
