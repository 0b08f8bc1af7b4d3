/**
 * Holds a store to what it promises of keepalives, by what it has carried out and answered alone:
 *
 * - a keepalive that has lapsed, or that a takeover has buried, renews nothing;
 * - no lease outlives both its own expiry and its keepalive, and none ends before;
 * - a lease that its holder has given up expires although its process lives.
 *
 * It keeps a model of every lease and keepalive, on the clock of the store.
 */
import type {
  AcquireCall,
  AcquireReply,
  AcquireRequest,
  Handover,
  KeepAliveCall,
  KeepAliveReply,
  ReassertCall,
  ReassertReply,
  ReleaseReply,
  Renewal,
  RenewCall,
  RenewReply,
  RevokeCall,
  RevokeReply,
  Tenancy,
  TransferCall,
  TransferReply,
} from '../../src/store/port/lease-store.ts';
import type { Counters } from './counters.ts';

interface Modelled {
  readonly holder: string;
  readonly fence: number;
  untilMs: number;
  keepalive: string | null;
}

export interface KeepaliveAuditParts {
  /** The clock of the store. */
  nowMs(): number;
  readonly counters: Counters;
  report(key: string, text: string): void;
}

const TOMBSTONE = '!revoked';
/** Rounding. */
const SLACK_MS = 0.001;

export class KeepaliveAudit {
  readonly #parts: KeepaliveAuditParts;
  readonly #leases = new Map<string, Modelled>();
  readonly #keepalives = new Map<string, number>();
  readonly #buried = new Set<string>();

  constructor(parts: KeepaliveAuditParts) {
    this.#parts = parts;
  }

  /** How many leases are attached to keepalives that are alive. */
  get attached(): number {
    return [...this.#leases.values()].filter(
      ({ keepalive }) => this.#untilOf(keepalive) > this.#nowMs,
    ).length;
  }

  carriedOut(verb: string, args: readonly unknown[], reply: unknown): void {
    const [first, call] = args;
    if (verb === 'acquire')
      this.#each(first as AcquireRequest[], reply as AcquireReply[], (request, one) =>
        this.#acquired(request, one, call as AcquireCall),
      );
    else if (verb === 'renew')
      this.#renewed(first as Renewal[], reply as RenewReply[], call as RenewCall);
    else if (verb === 'keepAlive')
      this.#kept(first as string, reply as KeepAliveReply, call as KeepAliveCall);
    else if (verb === 'reassert')
      this.#each(first as Tenancy[], reply as ReassertReply[], (tenancy, one) => {
        if (one === 'reasserted')
          this.#set(tenancy.key, {
            ...tenancy,
            untilMs: this.#nowMs + (call as ReassertCall).ttlMs,
          });
      });
    else if (verb === 'release')
      this.#each(first as Tenancy[], reply as ReleaseReply[], ({ key }, one) => {
        if (one.kind === 'released') this.#leases.delete(key);
      });
    else if (verb === 'transfer')
      this.#each(first as Handover[], reply as TransferReply[], ({ key, successor }, one) => {
        if (one.kind !== 'transferred') return;
        const untilMs = this.#nowMs + (call as TransferCall).windowMs;
        this.#set(key, { holder: successor, fence: one.fence, untilMs });
      });
    else if (verb === 'revoke')
      this.#revoked(first as string, reply as RevokeReply, call as RevokeCall);
  }

  get #nowMs(): number {
    return this.#parts.nowMs();
  }

  #each<Request, Reply>(
    requests: readonly Request[],
    replies: readonly Reply[],
    judge: (request: Request, reply: Reply) => void,
  ): void {
    for (const [i, request] of requests.entries()) judge(request, replies[i] as Reply);
  }

  #set(key: string, lease: Omit<Modelled, 'keepalive'>): void {
    const { holder, fence, untilMs } = lease;
    this.#leases.set(key, { holder, fence, untilMs, keepalive: null });
  }

  #untilOf(keepalive: string | null): number {
    return keepalive === null ? 0 : (this.#keepalives.get(keepalive) ?? 0);
  }

  /** The lease that the model has, and until when; the later of its two expiries. */
  #modelled(key: string): { lease: Modelled; untilMs: number } | null {
    const lease = this.#leases.get(key);
    if (lease === undefined) return null;
    return { lease, untilMs: Math.max(lease.untilMs, this.#untilOf(lease.keepalive)) };
  }

  #acquired({ key, holder }: AcquireRequest, reply: AcquireReply, { ttlMs }: AcquireCall): void {
    const { counters, report } = this.#parts;
    const nowMs = this.#nowMs;
    const known = this.#modelled(key);
    if (reply.kind === 'busy' && reply.reason !== 'quarantine') {
      if (known === null || known.untilMs + SLACK_MS < nowMs)
        report(key, `${key} is held by ${reply.holder}, whose lease and keepalive are over`);
      else if (Math.abs(known.untilMs - nowMs - reply.expiresInMs) > SLACK_MS)
        report(key, `${key} is said to expire in ${reply.expiresInMs} ms`);
    }
    if (reply.kind !== 'granted') return;
    const isOwn = known !== null && known.untilMs > nowMs;
    if (isOwn && known.lease.holder !== holder && known.untilMs > nowMs + SLACK_MS)
      report(key, `${key} was granted to ${holder} while ${known.lease.holder} had it`);
    const buried = known?.lease.keepalive ?? null;
    if (!isOwn && buried !== null && this.#keepalives.has(buried)) {
      this.#buried.add(buried);
      counters.add('keepalive buried by a takeover');
    }
    if (isOwn && buried !== null) counters.add('attached lease acquired again by its holder');
    const untilMs = Math.max(isOwn ? known.untilMs : 0, nowMs + ttlMs);
    this.#set(key, { holder, fence: reply.fence, untilMs });
  }

  #renewed(renewals: readonly Renewal[], replies: readonly RenewReply[], call: RenewCall): void {
    const { counters, report } = this.#parts;
    const nowMs = this.#nowMs;
    const { ttlMs, attachTo } = call;
    const isAttached = replies.some((one) => one.kind === 'renewed' && one.version !== undefined);
    if (attachTo !== undefined && isAttached) {
      if (attachTo.isNew && this.#keepalives.has(attachTo.id))
        report('', `keepalive ${attachTo.id} was made twice`);
      if (!attachTo.isNew) this.#checkAlive(attachTo.id);
    }
    if (attachTo !== undefined && isAttached)
      this.#keepalives.set(attachTo.id, Math.max(this.#untilOf(attachTo.id), nowMs + ttlMs));
    this.#each(renewals, replies, ({ key, holder }, reply) => {
      if (reply.kind !== 'renewed') return;
      const known = this.#modelled(key);
      if (known === null || known.lease.holder !== holder || known.untilMs + SLACK_MS < nowMs)
        return report(key, `${key} was renewed for ${holder}, whose lease and keepalive are over`);
      const { lease } = known;
      lease.untilMs = Math.max(lease.untilMs, nowMs + ttlMs);
      if (reply.version === undefined || attachTo === undefined) return;
      if (lease.keepalive !== null && lease.keepalive !== attachTo.id) {
        counters.add('attached to another keepalive');
        lease.untilMs = Math.max(lease.untilMs, known.untilMs);
      }
      lease.keepalive = attachTo.id;
    });
  }

  #kept(id: string, reply: KeepAliveReply, { ttlMs }: KeepAliveCall): void {
    const { counters } = this.#parts;
    counters.add(`keepalive ${reply.kind}`);
    if (reply.kind === 'gone') return;
    if (reply.detached.length > 0) counters.add('detachment told');
    this.#checkAlive(id);
    this.#keepalives.set(id, Math.max(this.#untilOf(id), this.#nowMs + ttlMs));
  }

  #checkAlive(id: string): void {
    const { report } = this.#parts;
    if (this.#buried.has(id)) report('', `keepalive ${id} was renewed after a takeover buried it`);
    else if (this.#untilOf(id) <= this.#nowMs)
      report('', `keepalive ${id} was renewed after it had lapsed`);
  }

  #revoked(key: string, reply: RevokeReply, { force }: RevokeCall): void {
    if (reply.kind !== 'revoked') return;
    const known = this.#modelled(key);
    if (this.#untilOf(known?.lease.keepalive ?? null) > this.#nowMs)
      this.#parts.counters.add('attached lease revoked');
    if (force) this.#leases.delete(key);
    else this.#set(key, { holder: TOMBSTONE, fence: reply.fence, untilMs: known?.untilMs ?? 0 });
  }
}
