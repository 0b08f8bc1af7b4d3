/**
 * The primaries of a Redis Cluster. Each key belongs to a slot, and each slot to one primary, until
 * it is moved or its primary fails. So every request may reach the wrong server:
 *
 * - `MOVED`: the slot has another primary now. Nothing was executed. The map is read again, and the
 *   key is requested there.
 * - `ASK`: this key has moved ahead of its slot. It is requested there, this once.
 * - `TRYAGAIN`, `CLUSTERDOWN`: the request waits a moment. While a lease and its fence record move
 *   separately, no grants are made.
 *
 * All of that happens within the caller's time limit. A request that was sent and not answered is
 * not sent again.
 *
 * Every primary is examined on each new connection, as a single server is, and every few seconds,
 * together with the map.
 */
import { type Clock, timeLeft } from '../../../core/clock.ts';
import { ClosedError, StoreUnreachableError } from '../../../core/errors.ts';
import type { BaseRuntime } from '../../../core/runtime.ts';
import type { Finding } from '../../port/examination.ts';
import type { RedisAddress } from '../client/address.ts';
import { sendScript } from '../client/connection.ts';
import { announcedDialer, type Deadline, type Link } from '../client/link.ts';
import { isWrongServer, refused } from '../client/replies.ts';
import type { StoreContext } from '../quarantine.ts';
import type { RunScript } from '../scripts.ts';
import { createClusterMarker, evalCommand, evaluate, evaluateAhead } from './cluster-marker.ts';
import { PrimaryServer } from './primary-server.ts';
import { PrimarySet, REFRESH_MS } from './primary-set.ts';
import { RedirectionError, replyOf, unsent } from './redirection.ts';
import {
  declared,
  onlyReply,
  type Part,
  type ScanPage,
  type Servers,
  scanOne,
  type Work,
} from './servers.ts';

/** The time limit for opening. */
const OPEN_MS = 5_000;
/** A retry with less time left than this might not be answered in time, and end the connection. */
const MIN_RETRY_MS = 100;
/** Between two attempts at a Cluster that is changing. */
const PAUSE_MS = 25;
/** How often the map is read and the primaries are examined without a reason. */
const RECHECK_EVERY_MS = 5_000;

const EXAMINE = { operation: 'examine' };

/** One request for keys that may lie on any server. */
interface Request {
  readonly operation: string;
  readonly isAboutLeases: boolean;
  readonly keys: readonly string[];
  readonly admit?: Work['admit'] | undefined;
  readonly prepare?: Work['prepare'] | undefined;
  /** Sends the command for the key at an index. */
  send(link: Link, at: number, primary: PrimaryServer, how: SendOptions): Promise<unknown>;
  /** A link that is being examined, and so the only one to its server yet. */
  readonly own?: { readonly address: string; readonly link: Link } | undefined;
}

interface SendOptions {
  /** The server answers for a key that has moved ahead of its slot. */
  readonly isAsking: boolean;
  readonly deadline?: Deadline | undefined;
}

/** Some keys of a request, by index, and the server they are requested from. */
interface Hop {
  readonly address: string;
  readonly isAsking: boolean;
  readonly at: readonly number[];
}

/** A request under way: until when, and the answers so far. */
interface RequestRun {
  readonly request: Request;
  readonly untilMs: number;
  readonly parts: Part[];
}

export class ClusterClient implements Servers {
  readonly name: string;
  onPrimaries = () => {};
  readonly #rt: BaseRuntime;
  readonly #clock: Clock;
  readonly #address: RedisAddress;
  readonly #context: StoreContext;
  readonly #set: PrimarySet;
  #isOpen = false;
  readonly #closing = new AbortController();

  constructor(rt: BaseRuntime, address: RedisAddress, context: StoreContext) {
    this.name = address.name;
    this.#rt = rt;
    this.#clock = rt.clock;
    this.#address = address;
    this.#context = context;
    this.#set = new PrimarySet(rt.clock, address, {
      signal: this.#closing.signal,
      createPrimary: (server, onDisconnected) => this.#createPrimary(server, onDisconnected),
      onChange: () => this.onPrimaries(),
    });
  }

  get primaries(): readonly PrimaryServer[] {
    return this.#set.primaries;
  }

  shardOf(key: string): string {
    return this.#set.ownerOf(key);
  }

  async open(): Promise<void> {
    const leftMs = timeLeft(this.#clock, OPEN_MS);
    await this.#set.refresh(OPEN_MS);
    // A Cluster that has just been formed may not know all of its servers yet.
    while (this.shardOf(this.#context.marker) === '' && leftMs() > 1) {
      await this.#clock.sleep(PAUSE_MS, this.#closing.signal);
      await this.#set.refresh();
    }
    const { primaries, name } = this;
    const owner = this.shardOf(this.#context.marker);
    const cluster = { name, primaries, owner, access: this.#address };
    const limit = { timeoutMs: OPEN_MS, signal: this.#closing.signal };
    await createClusterMarker(this.#rt, this.#context, cluster, limit);
    const opening = this.primaries.map(async (primary) => {
      try {
        await primary.connection.open();
      } catch (error) {
        // A server that has left the map meanwhile is not needed.
        if (this.#set.has(primary)) throw error;
      }
    });
    await Promise.all(opening);
    this.#isOpen = true;
    this.#set.connectNew();
    void this.#recheckUntilClosed();
  }

  async close(): Promise<void> {
    this.#closing.abort(new ClosedError({ operation: 'connection' }));
    await this.#set.idle();
    await Promise.all(this.primaries.map((primary) => primary.close()));
  }

  async examine(timeoutMs: number): Promise<readonly Finding[]> {
    const all = this.primaries.map(async (primary) => {
      const findings = await primary.examine(timeoutMs);
      return findings.map((finding) => ({ ...finding, fact: `${primary.name}: ${finding.fact}` }));
    });
    return (await Promise.all(all)).flat();
  }

  async run(work: Work, timeoutMs: number): Promise<Part[]> {
    const { script, keys, perKey, admit, prepare } = work;
    const heads = new Map<PrimaryServer, readonly string[]>();
    const send: Request['send'] = (link, at, primary, how) => {
      const head = heads.get(primary) ?? work.head?.(primary) ?? [];
      heads.set(primary, head);
      const args = [...head, ...(perKey[at] ?? [])];
      return sendScript(link, script, declared(work, keys[at] ?? ''), args, how);
    };
    const { operation, isAboutLeases } = script;
    return this.#perform({ operation, isAboutLeases, keys, send, admit, prepare }, timeoutMs);
  }

  send(operation: string, key: string, args: readonly string[], timeoutMs: number) {
    return this.#command({ operation, isAboutLeases: false }, key, args, timeoutMs);
  }

  async #command(
    about: Pick<Request, 'operation' | 'isAboutLeases' | 'own'>,
    key: string,
    args: readonly string[],
    timeoutMs: number,
  ): Promise<unknown> {
    const send: Request['send'] = (link, _at, _primary, { isAsking, deadline }) => {
      if (isAsking) void link.send(['ASKING'], deadline).catch(() => {});
      return link.send(args, deadline);
    };
    return onlyReply(await this.#perform({ ...about, keys: [key], send }, timeoutMs));
  }

  /** The cursor names the server that the scan has reached, and the cursor there. */
  async scan(
    pattern: string,
    cursor: string | undefined,
    timeoutMs: number,
    any?: 'any',
  ): Promise<ScanPage> {
    const addresses = this.primaries.map(({ address }) => address).sort();
    const [, at = addresses[0] ?? '', step = '0'] = /^(.*) (\d+)$/.exec(cursor ?? '') ?? [];
    const primary = this.#set.at(at);
    const next = addresses.find((address) => address > at);
    const from = { pattern, cursor: step, any };
    const page: ScanPage =
      primary === undefined ? { names: [] } : await scanOne(primary, from, timeoutMs);
    if (page.cursor !== undefined) return { ...page, cursor: `${at} ${page.cursor}` };
    return next === undefined ? { names: page.names } : { names: page.names, cursor: `${next} 0` };
  }

  /** Resolves when every key is answered for, or the time is over. */
  async #perform(request: Request, timeoutMs: number): Promise<Part[]> {
    const untilMs = this.#clock.monotonicMs() + timeoutMs;
    const run: RequestRun = { request, untilMs, parts: [] };
    const all = request.keys.map((_, i) => i);
    await Promise.all(this.#hopsFor(request, all).map((hop) => this.#go(run, hop)));
    return run.parts;
  }

  #hopsFor({ keys }: Request, at: readonly number[]): Hop[] {
    const byAddress = new Map<string, number[]>();
    for (const i of at) {
      const address = this.shardOf(keys[i] ?? '');
      const some = byAddress.get(address);
      if (some === undefined) byAddress.set(address, [i]);
      else some.push(i);
    }
    return [...byAddress].map(([address, some]) => ({ address, isAsking: false, at: some }));
  }

  async #go(run: RequestRun, hop: Hop): Promise<void> {
    const { request, untilMs, parts } = run;
    const leftMs = () => Math.max(1, untilMs - this.#clock.monotonicMs());
    if (hop.isAsking) this.#set.addRedirected(hop.address);
    const primary = this.#set.at(hop.address);
    const connection = primary?.connectionFor(request.isAboutLeases);
    const own = request.own?.address === hop.address ? request.own.link : null;
    if (primary === undefined || (own === null && !connection?.isConnected)) {
      connection?.connect();
      const why = `${hop.address || 'the server of the slot'} is not connected`;
      return this.#retry(run, hop.at, why);
    }
    try {
      const quarantineMs = request.admit?.(primary) ?? 0;
      await request.prepare?.(primary, leftMs()).catch(unsent);
      if (quarantineMs > 0) {
        const quarantined = { kind: 'quarantined', leftMs: quarantineMs, count: 1 } as const;
        for (const from of hop.at) parts.push({ ...quarantined, from });
        return;
      }
      const { isAsking } = hop;
      const send = (link: Link, deadline?: Deadline) => {
        const how = { isAsking, deadline };
        return Promise.all(hop.at.map((at) => replyOf(request.send(link, at, primary, how))));
      };
      const replies = await (own === null
        ? primary.connectionFor(request.isAboutLeases).use(request.operation, leftMs(), send)
        : send(own));
      await this.#follow(run, hop, primary, replies);
    } catch (error) {
      // Nothing was sent: another server may have the keys by now. `CLOSED` means that the server
      // has left the map.
      const isUnsent = error instanceof StoreUnreachableError || error instanceof ClosedError;
      if (isUnsent && !this.#closing.signal.aborted) return this.#retry(run, hop.at, error.message);
      fail(parts, hop.at, error);
    }
  }

  /** Keeps the replies that are answers, and follows the redirections. */
  async #follow(
    run: RequestRun,
    hop: Hop,
    primary: PrimaryServer,
    replies: readonly unknown[],
  ): Promise<void> {
    const { request, parts } = run;
    const ahead = new Map<string, number[]>();
    const again: number[] = [];
    let why = '';
    for (const [n, found] of replies.entries()) {
      const from = hop.at[n] ?? 0;
      if (!(found instanceof RedirectionError)) {
        if (found instanceof Error)
          fail(parts, [from], refused(found.message, this.#where(request)));
        else parts.push({ kind: 'reply', from, count: 1, reply: found, primary });
      } else if (found.isAsk) {
        const address = found.addressFrom(hop.address);
        ahead.set(address, [...(ahead.get(address) ?? []), from]);
      } else {
        why = found.meaning;
        if (found.isMoved) {
          this.#set.invalidate();
          this.#set.addRedirected(found.addressFrom(hop.address));
        }
        again.push(from);
        if (isWrongServer(found.message)) primary.connection.drop(found.message);
      }
    }
    const next = [...ahead].map(([address, at]) => this.#go(run, { address, isAsking: true, at }));
    if (again.length > 0) next.push(this.#retry(run, again, why));
    await Promise.all(next);
  }

  /**
   * Waits a moment, then requests the keys where they are by then, unless too little time is left.
   */
  async #retry(run: RequestRun, at: readonly number[], why: string): Promise<void> {
    const { request, untilMs, parts } = run;
    const isTooLate = () => untilMs - this.#clock.monotonicMs() <= MIN_RETRY_MS;
    const giveUp = () =>
      fail(parts, at, new StoreUnreachableError({ ...this.#where(request), why }));
    if (isTooLate()) return giveUp();
    const pause = this.#clock.sleep(PAUSE_MS);
    if (this.#set.isDue) {
      // A read of the map that takes longer continues without this request.
      const refreshed = this.#set.refresh().catch(() => {});
      await Promise.race([refreshed, this.#clock.sleep(PAUSE_MS * 4)]);
    }
    // The pause has no abort listener: hundreds of requests may be here at once.
    await pause;
    if (this.#closing.signal.aborted)
      return fail(parts, at, new ClosedError({ operation: request.operation }));
    if (isTooLate()) return giveUp();
    await Promise.all(this.#hopsFor(request, at).map((hop) => this.#go(run, hop)));
  }

  #where({ operation }: Pick<Request, 'operation'>): { store: string; operation: string } {
    return { store: this.name, operation };
  }

  #createPrimary(address: string, onDisconnected: () => void): PrimaryServer {
    const scheme = this.#address.credentials.tls === undefined ? 'redis:' : 'rediss:';
    const dialer = announcedDialer(`${scheme}//${address}`, address, this.#address);
    return new PrimaryServer(this.#rt, dialer, this.#context, {
      topology: 'cluster',
      address,
      served: this.#set.slotsOf(address),
      onMarker: (link, ...script) => this.#onMarker(address, link, ...script),
      atMarker: (timeoutMs, ...script) => this.#atMarker(timeoutMs, script),
      onDisconnected,
    });
  }

  /**
   * A link that is being examined is the only one to its server. The marker may be there, or on
   * another server.
   */
  async #onMarker(address: string, link: Link, ...script: Parameters<RunScript>): Promise<unknown> {
    const withinMs = this.#isOpen ? REFRESH_MS : OPEN_MS;
    const untilMs = this.#clock.monotonicMs() + withinMs;
    while (this.shardOf(this.#context.marker) === address) {
      const found = await replyOf(evaluate(link, ...script));
      if (!(found instanceof RedirectionError)) {
        if (found instanceof Error) throw found;
        return found;
      }
      if (found.isAsk) {
        const at = announcedDialer(this.name, found.addressFrom(address), this.#address);
        const limit = { timeoutMs: REFRESH_MS, signal: this.#closing.signal };
        return evaluateAhead(this.#clock, at, script, limit);
      }
      if (this.#clock.monotonicMs() > untilMs)
        throw new StoreUnreachableError({ ...this.#where(EXAMINE), why: found.meaning });
      await this.#set.refresh().catch(() => {});
      await this.#clock.sleep(PAUSE_MS, this.#closing.signal);
    }
    return this.#atMarker(withinMs, script, { address, link });
  }

  async #atMarker(
    timeoutMs: number,
    script: Parameters<RunScript>,
    own?: Request['own'],
  ): Promise<unknown> {
    const about = { ...EXAMINE, isAboutLeases: true, own };
    return this.#command(about, this.#context.marker, evalCommand(...script), timeoutMs);
  }

  async #recheckUntilClosed(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#clock.sleep(RECHECK_EVERY_MS, signal).catch(() => {});
      if (signal.aborted) return;
      await this.#set.refresh().catch(() => {});
      const connected = this.primaries.filter(({ connection }) => connection.isConnected);
      await Promise.all(connected.map((primary) => primary.recheck(REFRESH_MS).catch(() => {})));
    }
  }
}

function fail(parts: Part[], at: readonly number[], reason: unknown): void {
  const error = reason instanceof Error ? reason : new Error(String(reason));
  for (const from of at) parts.push({ kind: 'failed', from, count: 1, error });
}
