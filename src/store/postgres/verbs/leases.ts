import { StoreRefusedError } from '../../../core/errors.ts';
import type { MaxTtls } from '../../port/keyspaces.ts';
import {
  type AcquireCall,
  type AcquireReply,
  type AcquireRequest,
  type Handover,
  type KeepAliveCall,
  type KeepAliveReply,
  type LeasePage,
  type LeaseStore,
  type ListCall,
  type ReadReply,
  type ReassertCall,
  type ReassertReply,
  type ReleaseReply,
  type Renewal,
  type RenewCall,
  type RenewReply,
  type RevokeCall,
  type RevokeReply,
  type Tenancy,
  TOMBSTONE,
  type TransferCall,
  type TransferReply,
  type WakeCall,
} from '../../port/lease-store.ts';
import type { Call } from '../../port/store.ts';
import type { EraReply, PostgresQuarantine } from '../postgres-quarantine.ts';
import type { FunctionConnection, ReturnedHint } from './function-connection.ts';

/** A page of a listing has at most so many leases. */
const PAGE = 500;
/** A btree entry has room for this and the fence. */
const MAX_KEY_BYTES = 2_000;

type NotHeld = [holder: string | null, fence: number];
type Answered<R> = EraReply & { readonly replies: readonly R[] };

export class PostgresLeases implements LeaseStore {
  readonly #leases: FunctionConnection;
  readonly #work: FunctionConnection;
  readonly #quarantine: PostgresQuarantine;
  readonly #store: string;
  readonly maxTtls?: MaxTtls;

  /**
   * Verbs that may wait for a guarded transaction go over `work`, so that no renewal is behind
   * them.
   */
  constructor(
    leases: FunctionConnection,
    work: FunctionConnection,
    quarantine: PostgresQuarantine,
    store: string,
  ) {
    this.#leases = leases;
    this.#work = work;
    this.#quarantine = quarantine;
    this.#store = store;
    if (quarantine.maxTtls !== null) this.maxTtls = quarantine.maxTtls;
  }

  async acquire(requests: readonly AcquireRequest[], call: AcquireCall): Promise<AcquireReply[]> {
    const quarantine = this.#quarantine;
    if (quarantine.isBarred) return requests.map(() => quarantined(Number.POSITIVE_INFINITY));
    return this.#forEach<AcquireRequest, AcquireReply>('acquire', requests, async (valid) => {
      const { scope } = this.#leases;
      const { standbys } = quarantine;
      const args = [
        valid.map(({ key }) => scope + key),
        valid.map(({ holder }) => holder),
        Math.round(call.ttlMs * 1_000),
        standbys,
        scope + call.inbox,
        shared(valid.map(({ key }) => quarantine.boundMs(key) * 1_000)),
        given(valid.map(({ fence }) => fence)),
        given(valid.map(({ fenceFloor }) => fenceFloor)),
        given(valid.map(({ waitedMs }) => waitedMs && Math.round(waitedMs * 1_000))),
      ];
      const reply = await this.#leases.callWith<Answered<AskReply>>(
        'acquire',
        'lease_acquire',
        args,
        call,
      );
      quarantine.adopt(reply);
      quarantine.announce(valid.map(({ key }) => key));
      return reply.replies.map(acquired);
    });
  }

  async renew(tenures: readonly Renewal[], call: RenewCall): Promise<RenewReply[]> {
    type Failure = [number, string | null, number, boolean, boolean];
    type Reply = [Failure[], number | null, number[]];
    return this.#forEach<Renewal, RenewReply>('renew', tenures, async (valid) => {
      const { ttlMs: ttl, keepFences: keep = false, attachTo } = call;
      const holdings = valid.map(({ key, holder, fence }) => [key, holder, fence ?? null]);
      const attach = attachTo === undefined ? null : [attachTo.id, attachTo.isNew];
      const request = { ttl, keep, holdings, attach };
      const [failures, version, unattached] = await this.#leases.call<Reply>(
        'renew',
        'lease_renew',
        request,
        call,
      );
      const renewed: RenewReply = version === null ? RENEWED : { kind: 'renewed', version };
      const replies = new Array<RenewReply>(valid.length).fill(renewed);
      for (const n of unattached) replies[n - 1] = RENEWED;
      for (const [n, holder, fence, revoked, isLocked] of failures) {
        if (isLocked) replies[n - 1] = this.#failed('renew', 'its row stays locked');
        else if (holder === null) replies[n - 1] = { kind: 'vanished', fence, revoked };
        else replies[n - 1] = { kind: 'other', holder, revoked: holder === TOMBSTONE };
      }
      return replies;
    });
  }

  async keepAlive(id: string, call: KeepAliveCall): Promise<KeepAliveReply> {
    const { ttlMs: ttl, version, acknowledged } = call;
    const request = { id, ttl, version, acknowledged };
    const detached = await this.#leases.call<[number, string][] | null>(
      'keep alive',
      'lease_keep_alive',
      request,
      call,
    );
    if (detached === null) return { kind: 'gone' };
    return { kind: 'kept', detached: detached.map(([number, key]) => ({ number, key })) };
  }

  async reassert(tenures: readonly Tenancy[], call: ReassertCall): Promise<ReassertReply[]> {
    const quarantine = this.#quarantine;
    const { ttlMs: ttl, forgotten } = call;
    const asked = tenures.map((tenure) => {
      return { ...tenure, bound: quarantine.boundMs(tenure.key) };
    });
    const request = { ttl, forgotten, standbys: quarantine.standbys, tenures: asked };
    const reply = await this.#leases.call<Answered<boolean>>(
      'reassert',
      'lease_reassert',
      request,
      call,
    );
    quarantine.adopt(reply);
    return reply.replies.map((isBack) => (isBack ? 'reasserted' : 'refused'));
  }

  async release(tenures: readonly Tenancy[], call: Call): Promise<ReleaseReply[]> {
    type Reply = { replies: (0 | 1 | NotHeld)[] | null; hints: ReturnedHint[] };
    return this.#forEach<Tenancy, ReleaseReply>('release', tenures, async (valid) => {
      const { scope } = this.#leases;
      const args = [
        scope,
        valid.map(({ key }) => scope + key),
        valid.map(({ holder }) => holder),
        valid.map(({ fence }) => fence),
      ];
      // A crash of the server may bring the lease back, until its TTL is over. No later grant of
      // the key is durable without this release, which came before it.
      const released = { ...call, isDurable: false };
      const reply = await this.#leases.callWith<Reply>('release', 'lease_release', args, released);
      this.#leases.send(reply.hints);
      if (reply.replies === null) return valid.map(() => ({ kind: 'released', woke: false }));
      return reply.replies.map((one): ReleaseReply => {
        if (typeof one === 'number') return { kind: 'released', woke: one === 1 };
        return notHeld(one);
      });
    });
  }

  async transfer(handovers: readonly Handover[], call: TransferCall): Promise<TransferReply[]> {
    type Reply = { replies: (number | NotHeld)[]; hints: ReturnedHint[] };
    return this.#forEach<Handover, TransferReply>('transfer', handovers, async (valid) => {
      const named = valid.map(({ key, holder, fence, successor }) => [
        key,
        holder,
        fence,
        successor,
      ]);
      const request = {
        window: call.windowMs,
        quarantine: this.#quarantine.longestBoundMs,
        handovers: named,
      };
      const reply = await this.#work.call<Reply>('transfer', 'lease_transfer', request, call);
      this.#work.send(reply.hints);
      return reply.replies.map((one): TransferReply => {
        return typeof one === 'number' ? { kind: 'transferred', fence: one } : notHeld(one);
      });
    });
  }

  async revoke(key: string, call: RevokeCall): Promise<RevokeReply> {
    type Reply = NotHeld | [string, number, number, ReturnedHint[]];
    const { force, fence } = call;
    const request = { key, force, fence };
    const reply = await this.#work.call<Reply>('revoke', 'lease_revoke', request, call);
    if (reply.length === 2) return notHeld(reply);
    const [holder, minted, mayActForMs, hints] = reply;
    this.#work.send(hints);
    return { kind: 'revoked', holder, fence: minted, mayActForMs, woke: hints.length > 0 };
  }

  async read(keys: readonly string[], call: Call): Promise<ReadReply[]> {
    type Row = [string | null, number, number];
    const asked = keys.map((key) => ({ key }));
    return this.#forEach<{ readonly key: string }, ReadReply>('read', asked, async (valid) => {
      const request = { keys: valid.map(({ key }) => key) };
      const rows = await this.#leases.call<Row[]>('read', 'lease_read', request, call);
      return rows.map(([holder, fence, expiresInMs]): ReadReply => {
        if (holder === null) return { kind: 'free', fence };
        return holder === TOMBSTONE
          ? { kind: 'revoked', fence, expiresInMs }
          : { kind: 'held', holder, fence, expiresInMs };
      });
    });
  }

  async list(prefix: string, call: ListCall): Promise<LeasePage> {
    type Reply = [string | null, [string, string, number, number][]];
    const request = { prefix, cursor: call.cursor, most: PAGE };
    const [cursor, rows] = await this.#work.call<Reply>('list', 'lease_list', request, call);
    const leases = rows.map(([key, holder, fence, expiresInMs]) => {
      return { key, holder, fence, expiresInMs };
    });
    return cursor === null ? { leases } : { leases, cursor };
  }

  async wakeNext(keys: readonly string[], call: WakeCall): Promise<number[]> {
    const { leaving, most, apartMs } = call;
    const request = { keys, leaving, most, apart: Math.round(apartMs) };
    const [counts, hints] = await this.#leases.call<[number[], ReturnedHint[]]>(
      'wake',
      'lease_wake_next',
      request,
      call,
    );
    this.#leases.send(hints);
    return counts;
  }

  /** A key that PostgreSQL cannot store fails alone. */
  async #forEach<T extends { readonly key: string }, R>(
    operation: string,
    requests: readonly T[],
    ask: (valid: readonly T[]) => Promise<readonly (R | Failed)[]>,
  ): Promise<(R | Failed)[]> {
    const valid = requests.filter(({ key }) => isStorable(key));
    const answers = valid.length === 0 ? [] : await ask(valid);
    if (valid.length === requests.length) return [...answers];
    let next = 0;
    return requests.map(({ key }) =>
      isStorable(key)
        ? (answers[next++] as R)
        : this.#failed(operation, `a key of ${key.length} characters`),
    );
  }

  #failed(operation: string, reply: string): Failed {
    const advice =
      'Nothing was changed. A key has no NUL and at most 2,000 bytes; a row that stays locked is in the way of an open transaction.';
    const error = new StoreRefusedError({ store: this.#store, operation, reply, advice });
    return { kind: 'failed', error };
  }
}

interface Failed {
  readonly kind: 'failed';
  readonly error: Error;
}

const RENEWED: RenewReply = { kind: 'renewed' };

type AskReply = number | [leftMs: number] | [holder: string, fence: number, leftMs: number];

function acquired(reply: AskReply): AcquireReply {
  if (typeof reply === 'number') return { kind: 'granted', fence: reply };
  if (reply.length === 1) return quarantined(reply[0]);
  const [holder, fence, expiresInMs] = reply;
  const reason = holder === TOMBSTONE ? 'revoked' : 'held';
  return { kind: 'busy', reason, holder, fence, expiresInMs };
}

/** One value if it is the same for all. */
function shared(values: readonly number[]): readonly number[] {
  const [first = 0] = values;
  return values.every((value) => value === first) ? [first] : values;
}

/** None if no value is given. */
function given(values: readonly (number | undefined)[]): readonly (number | null)[] {
  if (values.every((value) => value === undefined)) return [];
  return values.map((value) => value ?? null);
}

function quarantined(expiresInMs: number): AcquireReply {
  return { kind: 'busy', reason: 'quarantine', holder: '', fence: 0, expiresInMs };
}

function notHeld([holder, fence]: NotHeld): {
  kind: 'not-held';
  holder: string | null;
  fence: number;
} {
  return { kind: 'not-held', holder, fence };
}

function isStorable(key: string): boolean {
  return !key.includes('\0') && Buffer.byteLength(key) <= MAX_KEY_BYTES;
}
