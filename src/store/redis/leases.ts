import type { Clock } from '../../base/clock.ts';
import { StoreUnreachableError } from '../../base/errors.ts';
import type {
  AcquireCall,
  AcquireReply,
  AcquireRequest,
  Call,
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
} from '../store.ts';
import { TOMBSTONE } from '../store.ts';
import type { Connection } from './connection.ts';
import type { Keys } from './keys.ts';
import type { ExaminationCause, Quarantine, RunScript } from './quarantine.ts';
import { isWrongServer, keyFailure } from './replies.ts';
import { scripts } from './scripts.ts';

/** How often a changed era is examined again within one call before the call gives up. */
const ERA_ATTEMPTS = 3;
/** How long a tombstone stays where somebody else's lease had no expiry. */
const TOMBSTONE_MS = 60_000;
/** How many keys one SCAN step of a listing looks at. */
const SCAN_COUNT = '500';

export class RedisLeases implements LeaseStore {
  readonly #name: string;
  readonly #keys: Keys;
  readonly #connection: Connection;
  readonly #quarantine: Quarantine;
  readonly #clock: Clock;

  constructor(parts: {
    name: string;
    keys: Keys;
    connection: Connection;
    quarantine: Quarantine;
    clock: Clock;
  }) {
    this.#name = parts.name;
    this.#keys = parts.keys;
    this.#connection = parts.connection;
    this.#quarantine = parts.quarantine;
    this.#clock = parts.clock;
  }

  async acquire(requests: readonly AcquireRequest[], call: AcquireCall): Promise<AcquireReply[]> {
    const left = this.#timeLeft(call);
    const keys = [this.#keys.marker];
    const perRequest: string[] = [];
    for (const request of requests) {
      keys.push(this.#keys.lease(request.key));
      perRequest.push(request.holder, acquireOptions(request));
    }
    if (!this.#quarantine.knows(call.leaseClass, call.ttlMs))
      await this.#reexamine(left(), { use: call });
    const inbox = this.#keys.channel(call.inbox);
    for (let attempt = 0; attempt < ERA_ATTEMPTS; attempt++) {
      // An examined era belongs to a connection: with none yet, sending waits for it, and the answer is ERA.
      const leftMs = this.#quarantine.leftMs(call.leaseClass);
      if (leftMs > 0) return requests.map(() => quarantined(leftMs));
      const head = [this.#quarantine.era, String(call.ttlMs), inbox];
      const reply = await this.#connection.script(
        scripts.acquire,
        keys,
        [...head, ...perRequest],
        left().timeoutMs,
      );
      if (reply !== 'ERA')
        return (reply as ScriptAcquireReply[]).map((one, i) =>
          this.#acquired(one, requests[i]?.key ?? ''),
        );
      await this.#reexamine(left(), {});
    }
    return requests.map(() => quarantined(call.ttlMs));
  }

  async renew(tenures: readonly Holding[], call: RenewCall): Promise<RenewReply[]> {
    const left = this.#timeLeft(call);
    const keys = new Array<string>(tenures.length);
    const args = new Array<string>(tenures.length + 1);
    args[0] = String(call.ttlMs);
    for (let i = 0; i < tenures.length; i++) {
      const tenure = tenures[i] as Holding;
      keys[i] = this.#keys.lease(tenure.key);
      args[i + 1] = tenure.holder;
    }
    const failures = (await this.#connection.script(
      scripts.renew,
      keys,
      args,
      call.timeoutMs,
    )) as ScriptFailure[];
    const replies = new Array<RenewReply>(tenures.length).fill(RENEWED);
    const vanished: number[] = [];
    for (const [index, found, mark] of failures) {
      const at = index - 1;
      if (mark === 'error')
        replies[at] = this.#failed(found ?? '', tenures[at]?.key ?? '', 'renew');
      else if (found === null) vanished.push(at);
      else replies[at] = { kind: 'other', holder: found, revoked: found === TOMBSTONE };
    }
    if (vanished.length > 0) await this.#describeVanished(tenures, vanished, replies, left());
    return replies;
  }

  async reassert(tenures: readonly Tenancy[], call: ReassertCall): Promise<ReassertReply[]> {
    const left = this.#timeLeft(call);
    const keys = [this.#keys.marker];
    const perTenure: string[] = [];
    for (const tenure of tenures) {
      keys.push(this.#keys.lease(tenure.key));
      perTenure.push(tenure.holder, String(tenure.fence));
    }
    for (let attempt = 0; attempt < ERA_ATTEMPTS; attempt++) {
      // A store that has forgotten must stop granting, for everybody, before anything vanished may be put back.
      if (call.forgotten && this.#quarantine.leftMs(call.leaseClass) === 0)
        await this.#reexamine(left(), { missing: true });
      const era = call.forgotten ? this.#quarantine.era : '';
      const args = [era, String(call.ttlMs), ...perTenure];
      const reply = await this.#connection.script(scripts.reassert, keys, args, left().timeoutMs);
      if (reply !== 'ERA')
        return (reply as number[]).map((put) => (put === 1 ? 'reasserted' : 'refused'));
      // Somebody has begun another era: no reason to lose what may still be put back.
      await this.#reexamine(left(), {});
    }
    const why = 'the store began a new era at every attempt';
    throw new StoreUnreachableError({ store: this.#name, operation: 'reassert', why });
  }

  async release(tenures: readonly Tenancy[], call: Call): Promise<ReleaseReply[]> {
    const keys: string[] = [];
    const args: string[] = [];
    for (const tenure of tenures) {
      keys.push(this.#keys.lease(tenure.key));
      args.push(tenure.holder, String(tenure.fence));
    }
    const failures = (await this.#connection.script(
      scripts.release,
      keys,
      args,
      call.timeoutMs,
    )) as [index: number, holder: string | null, fence: number][];
    const replies = new Array<ReleaseReply>(tenures.length).fill(RELEASED);
    for (const [index, holder, fence] of failures) {
      replies[index - 1] = { kind: 'not-held', holder, fence };
    }
    return replies;
  }

  async transfer(tenure: Tenancy, call: TransferCall): Promise<TransferReply> {
    const lease = this.#keys.lease(tenure.key);
    const inbox = this.#keys.channel(inboxOf(call.successor));
    const args = [
      tenure.holder,
      String(tenure.fence),
      call.successor,
      String(call.windowMs),
      inbox,
    ];
    const reply = await this.#connection.script(scripts.transfer, [lease], args, call.timeoutMs);
    const [done, ...facts] = reply as [1, number] | [0, string | null, number];
    if (done === 1) return { kind: 'transferred', fence: facts[0] as number };
    return { kind: 'not-held', holder: facts[0] as string | null, fence: facts[1] as number };
  }

  async revoke(key: string, call: RevokeCall): Promise<RevokeReply> {
    const lease = this.#keys.lease(key);
    const keys = [lease];
    const args = [TOMBSTONE, call.force ? '1' : '0', String(TOMBSTONE_MS)];
    const reply = await this.#connection.script(scripts.revoke, keys, args, call.timeoutMs);
    if (reply === null) return { kind: 'not-held' };
    const [holder, fence, mayActForMs] = reply as [string, number, number];
    return { kind: 'revoked', holder, fence, mayActForMs };
  }

  async read(keys: readonly string[], call: Call): Promise<ReadReply[]> {
    const replies = await this.#readRaw(keys, call);
    return replies.map((reply, i) => {
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
    const pattern = `${escapeGlob(this.#keys.lease(prefix))}*`;
    const args = [
      'SCAN',
      call.cursor ?? '0',
      'MATCH',
      pattern,
      'COUNT',
      SCAN_COUNT,
      'TYPE',
      'string',
    ];
    const [cursor, names] = (await this.#connection.send('list', args, call.timeoutMs)) as [
      string,
      string[],
    ];
    const keys = names
      .map((name) => this.#keys.withoutPrefix(name))
      .filter((key) => !key.endsWith(':fence'));
    const found = keys.length === 0 ? [] : await this.read(keys, call);
    const leases = found.flatMap((reply, i) =>
      reply.kind === 'held'
        ? [
            {
              key: keys[i] ?? '',
              holder: reply.holder,
              fence: reply.fence,
              expiresInMs: reply.expiresInMs,
            },
          ]
        : [],
    );
    return cursor === '0' ? { leases } : { leases, cursor };
  }

  async forgo(key: string, inbox: string, call: Call): Promise<void> {
    const lease = this.#keys.lease(key);
    await this.#connection.script(
      scripts.forgo,
      [lease],
      [this.#keys.channel(inbox)],
      call.timeoutMs,
    );
  }

  #acquired(reply: ScriptAcquireReply, key: string): AcquireReply {
    if (typeof reply === 'number') return { kind: 'granted', fence: reply };
    if (reply.length === 1) return this.#failed(reply[0], key, 'acquire');
    const [holder, fence, remainingMs] = reply;
    const reason = holder === TOMBSTONE ? 'revoked' : 'held';
    return { kind: 'busy', reason, holder, fence, expiresInMs: finite(remainingMs) };
  }

  #failed(reply: string, key: string, operation: string): { kind: 'failed'; error: Error } {
    if (isWrongServer(reply)) this.#connection.drop(reply);
    return { kind: 'failed', error: keyFailure(reply, key, { store: this.#name, operation }) };
  }

  /** What became of leases that are gone: only the failures pay for this second look. */
  async #describeVanished(
    tenures: readonly Holding[],
    at: readonly number[],
    into: RenewReply[],
    call: Call,
  ) {
    const replies = await this.#readRaw(
      at.map((i) => tenures[i]?.key ?? ''),
      call,
    );
    for (const [n, i] of at.entries()) {
      const reply = replies[n];
      if (reply === undefined || reply.length === 1)
        into[i] = this.#failed(reply?.[0] ?? '', tenures[i]?.key ?? '', 'renew');
      else into[i] = { kind: 'vanished', fence: reply[1], revoked: reply[3] === '!' };
    }
  }

  async #readRaw(keys: readonly string[], call: Call): Promise<ScriptReadReply[]> {
    const names = keys.map((key) => this.#keys.lease(key));
    return (await this.#connection.script(
      scripts.read,
      names,
      [],
      call.timeoutMs,
    )) as ScriptReadReply[];
  }

  /** A verb that needs more than one request has one time limit for all of them. */
  #timeLeft({ timeoutMs }: Call): () => Call {
    const untilMs = this.#clock.monotonicMs() + timeoutMs;
    return () => ({ timeoutMs: Math.max(1, untilMs - this.#clock.monotonicMs()) });
  }

  async #reexamine(call: Call, cause: ExaminationCause): Promise<void> {
    // What is known of the server belongs to its connection: it is looked up once there is one, not before.
    await this.#connection.use('examine', call.timeoutMs, (client) => {
      const run: RunScript = (script, keys, args) =>
        client.sendCommand(['EVAL', script.source, String(keys.length), ...keys, ...args]);
      return this.#quarantine.reexamine(run, cause);
    });
  }
}

type ScriptAcquireReply = number | [string] | [string, number, number];
type ScriptFailure = [index: number, found: string | null, mark?: number | 'error'];
type ScriptReadReply = [string] | [string | null, number, number, string];

const RENEWED: RenewReply = { kind: 'renewed' };
const RELEASED: ReleaseReply = { kind: 'released' };

function quarantined(leftMs: number): AcquireReply {
  return { kind: 'busy', reason: 'quarantine', holder: '', fence: 0, expiresInMs: leftMs };
}

function acquireOptions({ fence, fenceFloor, waitedMs }: AcquireRequest): string {
  if (fence === undefined && fenceFloor === undefined && waitedMs === undefined) return '';
  return `${fence ?? 0} ${fenceFloor ?? 0} ${waitedMs === undefined ? -1 : Math.round(waitedMs)}`;
}

/** A holder is an instance id, or begins with one and a slash; its instance listens on this topic. */
function inboxOf(holder: string): string {
  return holder.split('/', 1)[0] ?? holder;
}

function finite(remainingMs: number): number {
  return remainingMs < 0 ? Number.POSITIVE_INFINITY : remainingMs;
}

function escapeGlob(text: string): string {
  return text.replace(/[*?[\]\\]/g, '\\$&');
}
