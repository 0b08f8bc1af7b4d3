import { type Clock, timeLeft } from '../../../core/clock.ts';
import { StoreUnreachableError } from '../../../core/errors.ts';
import type { BaseRuntime } from '../../../core/runtime.ts';
import { keyspaceOf, type MaxTtls } from '../../port/keyspaces.ts';
import type {
  AcquireCall,
  AcquireReply,
  AcquireRequest,
  Handover,
  Holding,
  LeasePage,
  LeaseStore,
  ListCall,
  ReadReply,
  ReassertCall,
  ReassertReply,
  ReleaseReply,
  RenewCall,
  RenewReply,
  RevokeCall,
  RevokeReply,
  Tenancy,
  TransferCall,
  TransferReply,
  WakeCall,
} from '../../port/lease-store.ts';
import { TOMBSTONE } from '../../port/lease-store.ts';
import type { Call } from '../../port/store.ts';
import { isWrongServer, keyFailure } from '../client/replies.ts';
import type { Keys } from '../keys.ts';
import { VANISHED } from '../quarantine.ts';
import { scripts } from '../scripts.ts';
import type { PrimaryServer } from '../topology/primary-server.ts';
import { onlyReply, type Part, type Servers, type Work } from '../topology/servers.ts';

/** How often a changed era is examined again within one call before the call gives up. */
const ERA_ATTEMPTS = 3;
/** How long a tombstone stays where the lease of another program had no expiry. */
const TOMBSTONE_MS = 60_000;

export class RedisLeases implements LeaseStore {
  readonly #servers: Servers;
  readonly #keys: Keys;
  readonly #clock: Clock;
  readonly lane?: (key: string) => string;
  readonly maxTtls?: MaxTtls;

  constructor({ clock }: BaseRuntime, keys: Keys, servers: Servers, maxTtls: MaxTtls | null) {
    if (maxTtls !== null) this.maxTtls = maxTtls;
    this.#servers = servers;
    this.#keys = keys;
    this.#clock = clock;
    if (servers.shardOf !== undefined)
      this.lane = (key) => servers.shardOf?.(keys.lease(key)) ?? '';
  }

  async acquire(requests: readonly AcquireRequest[], call: AcquireCall): Promise<AcquireReply[]> {
    const { ttlMs, timeoutMs } = call;
    const keys = new Array<string>(requests.length);
    const perKey = new Array<string[]>(requests.length);
    for (let i = 0; i < requests.length; i++) {
      const request = requests[i] as AcquireRequest;
      keys[i] = this.#keys.lease(request.key);
      perKey[i] = [request.holder, acquireOptions(request)];
    }
    const keyspace = keyspaceOf(requests[0]?.key ?? '');
    const isWaiting = requests.some(({ waitedMs }) => waitedMs !== undefined);
    const inbox = isWaiting ? this.#keys.channel(call.inbox) : '';
    const work: Work = {
      script: scripts['lease/acquire'],
      keys,
      perKey,
      before: this.#keys.marker,
      withFences: true,
      admit: (primary) => primary.admit(keyspace),
      head: ({ quarantine, at }) => [quarantine.era, String(ttlMs), inbox + at],
    };
    let running = this.#servers.run(work, timeoutMs);
    const leftMs = timeLeft(this.#clock, timeoutMs);
    for (let attempt = 1; ; attempt++) {
      const parts = await running;
      const changed = otherEra(parts);
      if (changed === null) {
        const replies = each(parts, quarantined, failed, (reply, i, primary) =>
          this.#acquired(reply as ScriptAcquireReply, requests[i]?.key ?? '', primary),
        );
        if (parts.some(({ kind }) => kind === 'quarantined'))
          await this.#claim(requests, replies, ttlMs, leftMs);
        return replies;
      }
      await changed.reexamine('', leftMs());
      if (attempt === ERA_ATTEMPTS) return requests.map(() => quarantined(ttlMs));
      running = this.#servers.run(work, leftMs());
    }
  }

  async renew(tenures: readonly Holding[], call: RenewCall): Promise<RenewReply[]> {
    const leftMs = timeLeft(this.#clock, call.timeoutMs);
    const keys = new Array<string>(tenures.length);
    const perKey = new Array<string[]>(tenures.length);
    for (let i = 0; i < tenures.length; i++) {
      const tenure = tenures[i] as Holding;
      keys[i] = this.#keys.lease(tenure.key);
      perKey[i] = [tenure.holder];
    }
    const withFences = call.keepFences ?? false;
    const head = () => [String(call.ttlMs), withFences ? '1' : '0'];
    const work = { script: scripts['lease/renew'], keys, perKey, head, withFences };
    const parts = await this.#servers.run(work, leftMs());
    const replies = new Array<RenewReply>(tenures.length).fill(RENEWED);
    const vanished: number[] = [];
    for (const part of parts) {
      markFailed(part, replies);
      const primary = part.kind === 'reply' ? part.primary : undefined;
      for (const [index, found, mark] of repliesOf<ScriptFailure>(part)) {
        const at = part.from + index - 1;
        const key = tenures[at]?.key ?? '';
        if (mark === 'error') replies[at] = this.#failed(found ?? '', key, 'renew', primary);
        else if (found === null) vanished.push(at);
        else replies[at] = { kind: 'other', holder: found, revoked: found === TOMBSTONE };
      }
    }
    if (vanished.length > 0) await this.#describeVanished(tenures, vanished, replies, leftMs());
    return replies;
  }

  async reassert(tenures: readonly Tenancy[], call: ReassertCall): Promise<ReassertReply[]> {
    const leftMs = timeLeft(this.#clock, call.timeoutMs);
    const keys = tenures.map(({ key }) => this.#keys.lease(key));
    const perKey = tenures.map(({ holder, fence }) => [holder, String(fence)]);
    const work: Work = {
      script: scripts['lease/reassert'],
      keys,
      perKey,
      before: this.#keys.marker,
      withFences: true,
      prepare: async (primary, withinMs) => {
        // A store that has forgotten must stop granting, for all clients, before a vanished lease
        // may be put back.
        if (call.forgotten && primary.quarantine.leftMs(keyspaceOf(tenures[0]?.key ?? '')) === 0)
          await primary.reexamine(VANISHED, withinMs);
      },
      head: ({ quarantine }) => [call.forgotten ? quarantine.forgetting : '', String(call.ttlMs)],
    };
    for (let attempt = 0; attempt < ERA_ATTEMPTS; attempt++) {
      const parts = await this.#servers.run(work, leftMs());
      const changed = otherEra(parts);
      if (changed === null) {
        const refuse = () => 'refused' as const;
        const fail = (error: Error): ReassertReply => {
          throw error;
        };
        return each(parts, refuse, fail, (put) => (put === 1 ? 'reasserted' : 'refused'));
      }
      // Another client has begun an era: the leases may still be put back in that one.
      await changed.reexamine('', leftMs());
    }
    const why = 'the store began a new era at every attempt';
    throw new StoreUnreachableError({ store: this.#servers.name, operation: 'reassert', why });
  }

  async release(tenures: readonly Tenancy[], call: Call): Promise<ReleaseReply[]> {
    const keys = new Array<string>(tenures.length);
    const perKey = new Array<string[]>(tenures.length);
    for (let i = 0; i < tenures.length; i++) {
      const tenure = tenures[i] as Tenancy;
      keys[i] = this.#keys.lease(tenure.key);
      perKey[i] = [tenure.holder, String(tenure.fence)];
    }
    const work = { script: scripts['lease/release'], keys, perKey, withFences: true };
    const replies = new Array<ReleaseReply>(tenures.length).fill(RELEASED);
    for (const part of await this.#servers.run(work, call.timeoutMs)) {
      markFailed(part, replies);
      for (const [index, holder, fence] of repliesOf<ScriptNotReleased>(part))
        replies[part.from + index - 1] =
          holder === undefined || fence === undefined
            ? RELEASED_AND_WOKE
            : { kind: 'not-held', holder, fence };
    }
    return replies;
  }

  async transfer(handovers: readonly Handover[], call: TransferCall): Promise<TransferReply[]> {
    const keys = new Array<string>(handovers.length);
    const perKey = new Array<string[]>(handovers.length);
    for (let i = 0; i < handovers.length; i++) {
      const { key, holder, fence, successor } = handovers[i] as Handover;
      keys[i] = this.#keys.lease(key);
      perKey[i] = [holder, String(fence), successor, this.#keys.channel(inboxOf(successor))];
    }
    // The era of this moment, in which the givers held these leases: a later connection may find
    // another.
    const known = new Map(this.#servers.primaries.map((one) => [one, one.quarantine.handover]));
    const head = (primary: PrimaryServer) => {
      const { era = '', leftMs = 0 } = known.get(primary) ?? {};
      return [String(call.windowMs), era, String(Math.max(call.windowMs, leftMs))];
    };
    const work = { script: scripts['lease/transfer'], keys, perKey, head, withFences: true };
    const parts = await this.#servers.run(work, call.timeoutMs);
    // A quarantine stops no handover.
    const never = (): TransferReply => failed(new Error('quarantined'));
    return each(parts, never, failed, (reply, i, primary) =>
      this.#transferred(reply as ScriptTransferReply, handovers[i]?.key ?? '', primary),
    );
  }

  async revoke(key: string, call: RevokeCall): Promise<RevokeReply> {
    const args = [TOMBSTONE, call.force ? '1' : '0', String(TOMBSTONE_MS), String(call.fence)];
    const keys = [this.#keys.lease(key)];
    const work = { script: scripts['lease/revoke'], keys, perKey: [args], withFences: true };
    const reply = onlyReply(await this.#servers.run(work, call.timeoutMs)) as ScriptRevokeReply;
    const [holder, fence, mayActForMs, woken = 0] = reply;
    if (holder === null || mayActForMs === undefined) return { kind: 'not-held', holder, fence };
    return { kind: 'revoked', holder, fence, mayActForMs, woke: woken > 0 };
  }

  async read(keys: readonly string[], call: Call): Promise<ReadReply[]> {
    const replies = await this.#readRaw(keys, call.timeoutMs);
    return replies.map((reply, i) => {
      if (reply instanceof Error) return failed(reply);
      if (reply.length === 1) return this.#failed(reply[0], keys[i] ?? '', 'read');
      const [holder, fence, remainingMs] = reply;
      if (holder === null) return { kind: 'free', fence };
      const expiresInMs = finite(remainingMs);
      return holder === TOMBSTONE
        ? { kind: 'revoked', fence, expiresInMs }
        : { kind: 'held', holder, fence, expiresInMs };
    });
  }

  async list(prefix: string, call: ListCall): Promise<LeasePage> {
    const leftMs = timeLeft(this.#clock, call.timeoutMs);
    const { names, cursor } = await this.#servers.scan(
      this.#keys.leases(prefix),
      call.cursor,
      leftMs(),
    );
    const keys = names.flatMap((name) => {
      const key = this.#keys.withoutPrefix(name);
      const isLease = this.#keys.lease(key) === name && key.startsWith(prefix);
      return isLease ? [key] : [];
    });
    const found = keys.length === 0 ? [] : await this.read(keys, { timeoutMs: leftMs() });
    const leases = found.flatMap((reply, i) => {
      if (reply.kind !== 'held') return [];
      const { holder, fence, expiresInMs } = reply;
      return [{ key: keys[i] ?? '', holder, fence, expiresInMs }];
    });
    return cursor === undefined ? { leases } : { leases, cursor };
  }

  async wakeNext(keys: readonly string[], call: WakeCall): Promise<number[]> {
    const { leaving, most, apartMs, timeoutMs } = call;
    const names = keys.map((key) => this.#keys.lease(key));
    const channel = leaving === undefined ? null : this.#keys.channel(leaving);
    const work = {
      script: scripts['lease/wake-next'],
      keys: names,
      perKey: names.map(() => [String(most)]),
      head: ({ at }: PrimaryServer) => [channel === null ? '' : channel + at, String(apartMs)],
      withFences: true,
    };
    const fail = (error: Error): number => {
      throw error;
    };
    const none = () => 0;
    return each(await this.#servers.run(work, timeoutMs), none, fail, (woken) => Number(woken));
  }

  /**
   * Grants the leases that the quarantine has refused, where they were handed over since the
   * quarantine began.
   */
  async #claim(
    requests: readonly AcquireRequest[],
    replies: AcquireReply[],
    ttlMs: number,
    leftMs: () => number,
  ): Promise<void> {
    const barred = [...replies.entries()].flatMap(([at, reply]) =>
      reply.kind === 'busy' && reply.reason === 'quarantine' ? [at] : [],
    );
    if (barred.length === 0) return;
    const asked = barred.map((at) => requests[at] as AcquireRequest);
    const work: Work = {
      script: scripts['lease/claim'],
      before: this.#keys.marker,
      withFences: true,
      keys: asked.map(({ key }) => this.#keys.lease(key)),
      perKey: asked.map(({ holder, fenceFloor = 0 }) => [holder, String(fenceFloor)]),
      head: ({ quarantine: { era, handover } }) => [era, handover.era, String(ttlMs)],
    };
    let parts = await this.#servers.run(work, leftMs());
    // Another client has begun an era: only handovers of that one count.
    await otherEra(parts)?.reexamine('', leftMs());
    if (otherEra(parts) !== null) parts = await this.#servers.run(work, leftMs());
    if (otherEra(parts) !== null) return;
    const nothing = (): AcquireReply | null => null;
    const claimed = each(parts, nothing, failed, (reply, i, primary) =>
      reply === null
        ? null
        : this.#acquired(reply as ScriptAcquireReply, asked[i]?.key ?? '', primary),
    );
    for (const [n, at] of barred.entries())
      replies[at] = claimed[n] ?? (replies[at] as AcquireReply);
  }

  #acquired(reply: ScriptAcquireReply, key: string, primary: PrimaryServer): AcquireReply {
    if (typeof reply === 'number') return { kind: 'granted', fence: reply };
    if (reply.length === 1) return this.#failed(reply[0], key, 'acquire', primary);
    const [holder, fence, remainingMs] = reply;
    const reason = holder === TOMBSTONE ? 'revoked' : 'held';
    return { kind: 'busy', reason, holder, fence, expiresInMs: finite(remainingMs) };
  }

  #transferred(reply: ScriptTransferReply, key: string, primary: PrimaryServer): TransferReply {
    if (typeof reply === 'number') return { kind: 'transferred', fence: reply };
    if (reply.length === 1) return this.#failed(reply[0], key, 'transfer', primary);
    const [holder, fence] = reply;
    return { kind: 'not-held', holder, fence };
  }

  #failed(
    reply: string,
    key: string,
    operation: string,
    primary?: PrimaryServer,
  ): { kind: 'failed'; error: Error } {
    if (isWrongServer(reply)) primary?.connection.drop(reply);
    return {
      kind: 'failed',
      error: keyFailure(reply, key, { store: this.#servers.name, operation }),
    };
  }

  /** Reads the fence records of vanished leases, in a second request for these alone. */
  async #describeVanished(
    tenures: readonly Holding[],
    at: readonly number[],
    into: RenewReply[],
    timeoutMs: number,
  ) {
    const keys = at.map((i) => tenures[i]?.key ?? '');
    const replies = await this.#readRaw(keys, timeoutMs);
    for (const [n, i] of at.entries()) {
      const reply = replies[n];
      if (reply instanceof Error) into[i] = { kind: 'failed', error: reply };
      else if (reply === undefined || reply.length === 1)
        into[i] = this.#failed(reply?.[0] ?? '', keys[n] ?? '', 'renew');
      else into[i] = { kind: 'vanished', fence: reply[1], revoked: reply[3] === '!' };
    }
  }

  async #readRaw(keys: readonly string[], timeoutMs: number): Promise<(ScriptReadReply | Error)[]> {
    const names = keys.map((key) => this.#keys.lease(key));
    const work = { script: scripts['lease/read'], keys: names, perKey: names.map(() => []) };
    const parts = await this.#servers.run(work, timeoutMs);
    const raw = (reply: unknown) => reply as ScriptReadReply | Error;
    return each(parts, () => new Error('quarantined'), raw, raw);
  }
}

type ScriptNotReleased = [index: number, holder?: string | null, fence?: number];
type ScriptAcquireReply = number | [string] | [string, number, number];
type ScriptTransferReply = number | [string] | [string | null, number];
type ScriptRevokeReply = [
  holder: string | null,
  fence: number,
  mayActForMs?: number,
  woken?: number,
];
type ScriptFailure = [index: number, found: string | null, mark?: number | 'error'];
type ScriptReadReply = [string] | [string | null, number, number, string];

const RENEWED: RenewReply = { kind: 'renewed' };
const RELEASED: ReleaseReply = { kind: 'released', woke: false };
const RELEASED_AND_WOKE: ReleaseReply = { kind: 'released', woke: true };

function quarantined(leftMs: number): AcquireReply {
  return { kind: 'busy', reason: 'quarantine', holder: '', fence: 0, expiresInMs: leftMs };
}

function failed(error: Error): { kind: 'failed'; error: Error } {
  return { kind: 'failed', error };
}

function acquireOptions({ fence, fenceFloor, waitedMs }: AcquireRequest): string {
  if (fence === undefined && fenceFloor === undefined && waitedMs === undefined) return '';
  return `${fence ?? 0} ${fenceFloor ?? 0} ${waitedMs === undefined ? -1 : Math.round(waitedMs)}`;
}

/**
 * A holder is an instance id, or begins with one and a slash; its instance listens on this topic.
 */
function inboxOf(holder: string): string {
  return holder.split('/', 1)[0] ?? holder;
}

function finite(remainingMs: number): number {
  return remainingMs < 0 ? Number.POSITIVE_INFINITY : remainingMs;
}

/** The first server that has begun another era than the one it was asked with, or null. */
function otherEra(parts: readonly Part[]): PrimaryServer | null {
  const found = parts.find((part) => part.kind === 'reply' && part.reply === 'ERA');
  return found?.kind === 'reply' ? found.primary : null;
}

/** One result per key, in the order of the keys. */
function each<T>(
  parts: readonly Part[],
  inQuarantine: (leftMs: number) => T,
  failed: (error: Error) => T,
  replied: (reply: unknown, at: number, primary: PrimaryServer) => T,
): T[] {
  const results: T[] = [];
  for (const part of parts) {
    for (let i = 0; i < part.count; i++) {
      const at = part.from + i;
      if (part.kind === 'quarantined') results[at] = inQuarantine(part.leftMs);
      else if (part.kind === 'failed') results[at] = failed(part.error);
      else results[at] = replied((part.reply as unknown[])[i], at, part.primary);
    }
  }
  return results;
}

function markFailed(part: Part, replies: ({ kind: 'failed'; error: Error } | object)[]): void {
  if (part.kind !== 'failed') return;
  replies.fill({ kind: 'failed', error: part.error }, part.from, part.from + part.count);
}

function repliesOf<T>(part: Part): readonly T[] {
  return part.kind === 'reply' ? (part.reply as T[]) : [];
}
