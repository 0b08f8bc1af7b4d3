/**
 * The primaries of a Redis Cluster. Each key belongs to a slot, and each slot to one primary, until it is moved or its
 * primary fails. So every request may find that somebody else is in charge:
 *
 * - `MOVED`: the slot has another primary now. Nothing was done; the map is read anew and the key asked for there.
 * - `ASK`: this key has been moved ahead of its slot. It is asked for there, this once.
 * - `TRYAGAIN`, `CLUSTERDOWN`: wait a moment. A lease and its fence record that are on the move apart make no grants.
 *
 * All of that happens inside the caller's time limit. What was sent and not answered is not sent again.
 *
 * Every primary is examined on each new connection, as a single server is, and every few seconds, together with the map.
 */
import { type Clock, timeLeft } from '../../../core/clock.ts';
import { ClosedError, StoreUnreachableError } from '../../../core/errors.ts';
import type { Finding } from '../../port/examination.ts';
import type { RedisAddress } from '../client/address.ts';
import { sendScript } from '../client/connection.ts';
import { type Deadline, endpointDialer, type Link } from '../client/link.ts';
import { isWrongServer, refused } from '../client/replies.ts';
import type { RunScript } from '../scripts.ts';
import { createClusterMarker, evaluate, evaluateAhead } from './cluster-marker.ts';
import { ClusterNodes, LOOK_MS } from './cluster-nodes.ts';
import { Primary, type PrimaryContext } from './primary.ts';
import { Redirection, replyOf, unsent } from './redirection.ts';
import { declared, type Part, type ScanPage, type Servers, scanOne, type Work } from './servers.ts';
import { readAddress } from './slot-map.ts';

/** How long the first look may. */
const OPEN_MS = 5_000;
/** What would be sent again with less time than this left might not be answered in it, and cost the connection. */
const LEAST_MS = 100;
/** Between two attempts at a Cluster that is changing. */
const PAUSE_MS = 25;
/** How often map and primaries are looked at although nothing has happened. */
const TICK_MS = 5_000;

const EXAMINE = { operation: 'examine' };

type Context = Omit<PrimaryContext, 'topology' | 'onMarker'>;

/** Requests for keys that may lie anywhere. */
interface Errand {
  readonly operation: string;
  readonly isAboutLeases: boolean;
  readonly keys: readonly string[];
  readonly prepare?: Work['prepare'];
  /** Sends the request for one of them. */
  send(link: Link, at: number, primary: Primary, how: Sent): Promise<unknown>;
  /** A link that is being examined, and so the only way to its server yet. */
  readonly own?: { readonly address: string; readonly link: Link };
}

interface Sent {
  /** It is to be answered ahead of the map. */
  readonly isAsking: boolean;
  readonly deadline?: Deadline;
}

/** Some keys of an errand, and where they are sought. */
interface Leg {
  readonly address: string;
  readonly isAsking: boolean;
  readonly at: readonly number[];
}

export class ClusterServers implements Servers {
  readonly name: string;
  onPrimaries = () => {};
  readonly #address: RedisAddress;
  readonly #context: Context;
  readonly #clock: Clock;
  readonly #roster: ClusterNodes;
  #isOpen = false;
  readonly #closing = new AbortController();

  constructor(address: RedisAddress, context: Context) {
    this.name = address.name;
    this.#address = address;
    this.#context = context;
    this.#clock = context.clock;
    this.#roster = new ClusterNodes({
      ...{ address, clock: context.clock, signal: this.#closing.signal },
      make: (server, onDisconnected) => this.#primary(server, onDisconnected),
      onChange: () => this.onPrimaries(),
    });
  }

  get primaries(): readonly Primary[] {
    return this.#roster.primaries;
  }

  lane(key: string): string {
    return this.#roster.ownerOf(key);
  }

  async open(): Promise<void> {
    const leftMs = timeLeft(this.#clock, OPEN_MS);
    await this.#roster.refresh(OPEN_MS);
    // One that has just been formed may not know all of its servers yet.
    while (this.lane(this.#context.marker) === '' && leftMs() > 1) {
      await this.#clock.sleep(PAUSE_MS, this.#closing.signal);
      await this.#roster.refresh();
    }
    const { primaries, name } = this;
    const owner = this.lane(this.#context.marker);
    const { credentials } = this.#address;
    const parts = { ...this.#context, name, primaries, owner, credentials };
    await createClusterMarker(parts, OPEN_MS, this.#closing.signal);
    const opening = this.primaries.map(async (primary) => {
      try {
        await primary.connection.open();
      } catch (error) {
        // One that has left the map meanwhile is not missed.
        if (this.#roster.has(primary)) throw error;
      }
    });
    await Promise.all(opening);
    this.#isOpen = true;
    this.#roster.welcome();
    void this.#tickForEver();
  }

  async close(): Promise<void> {
    this.#closing.abort(new ClosedError({ operation: 'connection' }));
    await this.#roster.settled();
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
    const { script, keys, perKey, prepare } = work;
    const heads = new Map<Primary, readonly string[]>();
    const send: Errand['send'] = (link, at, primary, how) => {
      const head = heads.get(primary) ?? work.head?.(primary) ?? [];
      heads.set(primary, head);
      const args = [...head, ...(perKey[at] ?? [])];
      return sendScript(link, script, declared(work, keys[at] ?? ''), args, how);
    };
    const { operation, isAboutLeases } = script;
    return this.#do(
      { operation, isAboutLeases, keys, send, ...(prepare && { prepare }) },
      timeoutMs,
    );
  }

  send(operation: string, key: string, args: readonly string[], timeoutMs: number) {
    return this.#command({ operation, isAboutLeases: false }, key, args, timeoutMs);
  }

  async #command(
    about: Pick<Errand, 'operation' | 'isAboutLeases' | 'own'>,
    key: string,
    args: readonly string[],
    timeoutMs: number,
  ): Promise<unknown> {
    const send: Errand['send'] = (link, _at, _primary, { isAsking, deadline }) => {
      if (isAsking) void link.send(['ASKING'], deadline).catch(() => {});
      return link.send(args, deadline);
    };
    const errand = { ...about, keys: [key], send };
    const [part] = await this.#do(errand, timeoutMs);
    if (part?.kind === 'failed') throw part.error;
    return part?.kind === 'reply' ? part.reply : null;
  }

  /** The cursor says on which server the walk is, and how far there. */
  async scan(pattern: string, cursor: string | undefined, timeoutMs: number): Promise<ScanPage> {
    const addresses = this.primaries.map(({ address }) => address).sort();
    const [, at = addresses[0] ?? '', step = '0'] = /^(.*) (\d+)$/.exec(cursor ?? '') ?? [];
    const primary = this.#roster.at(at);
    const next = addresses.find((address) => address > at);
    const page: ScanPage =
      primary === undefined ? { names: [] } : await scanOne(primary, pattern, step, timeoutMs);
    if (page.cursor !== undefined) return { ...page, cursor: `${at} ${page.cursor}` };
    return next === undefined ? { names: page.names } : { names: page.names, cursor: `${next} 0` };
  }

  /** Sees to it that every key is answered for, wherever it is, or that its time is over. */
  async #do(errand: Errand, timeoutMs: number): Promise<Part[]> {
    const untilMs = this.#clock.monotonicMs() + timeoutMs;
    const parts: Part[] = [];
    const all = errand.keys.map((_, i) => i);
    await Promise.all(this.#legs(errand, all).map((leg) => this.#go(errand, leg, untilMs, parts)));
    return parts;
  }

  #legs({ keys }: Errand, at: readonly number[]): Leg[] {
    const byAddress = new Map<string, number[]>();
    for (const i of at) {
      const address = this.lane(keys[i] ?? '');
      const some = byAddress.get(address);
      if (some === undefined) byAddress.set(address, [i]);
      else some.push(i);
    }
    return [...byAddress].map(([address, some]) => ({ address, isAsking: false, at: some }));
  }

  async #go(errand: Errand, leg: Leg, untilMs: number, parts: Part[]): Promise<void> {
    const leftMs = () => Math.max(1, untilMs - this.#clock.monotonicMs());
    if (leg.isAsking) this.#roster.visit(leg.address);
    const primary = this.#roster.at(leg.address);
    const connection = primary?.connectionFor(errand.isAboutLeases);
    const own = errand.own?.address === leg.address ? errand.own.link : null;
    if (primary === undefined || (own === null && !connection?.isConnected)) {
      connection?.connect();
      const why = `${leg.address || 'the server of the slot'} is not connected`;
      return this.#later(errand, leg.at, untilMs, parts, why);
    }
    try {
      const quarantineMs = (await errand.prepare?.(primary, leftMs()).catch(unsent)) ?? 0;
      if (quarantineMs > 0) {
        const quarantined = { kind: 'quarantined', leftMs: quarantineMs, count: 1 } as const;
        for (const from of leg.at) parts.push({ ...quarantined, from });
        return;
      }
      const { isAsking } = leg;
      const ask = (link: Link, deadline?: Deadline) => {
        const how = { isAsking, ...(deadline && { deadline }) };
        return Promise.all(leg.at.map((at) => replyOf(errand.send(link, at, primary, how))));
      };
      const replies = await (own === null
        ? primary.connectionFor(errand.isAboutLeases).use(errand.operation, leftMs(), ask)
        : ask(own));
      await this.#sort(errand, leg, replies, primary, untilMs, parts);
    } catch (error) {
      // Nothing was sent: somebody else may be in charge by now. Closed is what a server is that has left the map.
      const isUnsent = error instanceof StoreUnreachableError || error instanceof ClosedError;
      if (isUnsent && !this.#closing.signal.aborted)
        return this.#later(errand, leg.at, untilMs, parts, error.message);
      fail(parts, leg.at, error);
    }
  }

  /** Which of the replies are answers, and where the others lead. */
  async #sort(
    errand: Errand,
    leg: Leg,
    replies: readonly unknown[],
    primary: Primary,
    untilMs: number,
    parts: Part[],
  ): Promise<void> {
    const ahead = new Map<string, number[]>();
    const again: number[] = [];
    let why = '';
    for (const [n, found] of replies.entries()) {
      const from = leg.at[n] ?? 0;
      if (!(found instanceof Redirection)) {
        if (found instanceof Error)
          fail(parts, [from], refused(found.message, this.#where(errand)));
        else parts.push({ kind: 'reply', from, count: 1, reply: found, primary });
      } else if (found.isAsk) {
        const address = found.addressFrom(leg.address);
        ahead.set(address, [...(ahead.get(address) ?? []), from]);
      } else {
        why = found.meaning;
        if (found.isMoved) {
          this.#roster.outdated();
          this.#roster.visit(found.addressFrom(leg.address));
        }
        again.push(from);
        if (isWrongServer(found.text)) primary.connection.drop(found.text);
      }
    }
    const legs = [...ahead].map(([address, at]) => ({ address, isAsking: true, at }));
    const goes = legs.map((next) => this.#go(errand, next, untilMs, parts));
    if (again.length > 0) goes.push(this.#later(errand, again, untilMs, parts, why));
    await Promise.all(goes);
  }

  /** Looks where the keys are by then, and goes there; unless there is no time left for it. */
  async #later(
    errand: Errand,
    at: readonly number[],
    untilMs: number,
    parts: Part[],
    why: string,
  ): Promise<void> {
    const isTooLate = () => untilMs - this.#clock.monotonicMs() <= LEAST_MS;
    const giveUp = () =>
      fail(parts, at, new StoreUnreachableError({ ...this.#where(errand), why }));
    if (isTooLate()) return giveUp();
    const pause = this.#clock.sleep(PAUSE_MS);
    if (this.#roster.isDue) {
      // A look at the map that takes longer goes on without us.
      const look = this.#roster.refresh().catch(() => {});
      await Promise.race([look, this.#clock.sleep(PAUSE_MS * 4)]);
    }
    // No listener for the end: hundreds of requests may be here at once.
    await pause;
    if (this.#closing.signal.aborted)
      return fail(parts, at, new ClosedError({ operation: errand.operation }));
    if (isTooLate()) return giveUp();
    await Promise.all(this.#legs(errand, at).map((leg) => this.#go(errand, leg, untilMs, parts)));
  }

  #where({ operation }: Pick<Errand, 'operation'>): { store: string; operation: string } {
    return { store: this.name, operation };
  }

  #primary(address: string, onDisconnected: () => void): Primary {
    const scheme = this.#address.credentials.tls === undefined ? 'redis:' : 'rediss:';
    const dialer = endpointDialer(
      `${scheme}//${address}`,
      readAddress(address),
      this.#address.credentials,
    );
    const context: PrimaryContext = {
      ...this.#context,
      topology: 'cluster',
      served: this.#roster.slotsOf(address),
      onMarker: (link, ...script) => this.#onMarker(address, link, ...script),
      atMarker: (timeoutMs, ...script) => this.#atMarker(timeoutMs, script),
    };
    return new Primary(dialer, context, { address, onDisconnected });
  }

  /** While a link is being examined it is the only way to its own server; the marker may be there, or on another. */
  async #onMarker(address: string, link: Link, ...script: Parameters<RunScript>): Promise<unknown> {
    const withinMs = this.#isOpen ? LOOK_MS : OPEN_MS;
    const untilMs = this.#clock.monotonicMs() + withinMs;
    while (this.lane(this.#context.marker) === address) {
      const found = await replyOf(evaluate(link, ...script));
      if (found instanceof Error) throw found;
      if (!(found instanceof Redirection)) return found;
      if (found.isAsk) {
        const at = { address: found.addressFrom(address), credentials: this.#address.credentials };
        return evaluateAhead(at, script, this.#clock, LOOK_MS, this.#closing.signal);
      }
      if (this.#clock.monotonicMs() > untilMs)
        throw new StoreUnreachableError({ ...this.#where(EXAMINE), why: found.meaning });
      await this.#roster.refresh().catch(() => {});
      await this.#clock.sleep(PAUSE_MS, this.#closing.signal);
    }
    return this.#atMarker(withinMs, script, { address, link });
  }

  async #atMarker(
    timeoutMs: number,
    script: Parameters<RunScript>,
    own?: Errand['own'],
  ): Promise<unknown> {
    const [{ source }, keys, args] = script;
    const command = ['EVAL', source, String(keys.length), ...keys, ...args];
    const about = { ...EXAMINE, isAboutLeases: true, ...(own && { own }) };
    return this.#command(about, this.#context.marker, command, timeoutMs);
  }

  async #tickForEver(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#clock.sleep(TICK_MS, signal).catch(() => {});
      if (signal.aborted) return;
      await this.#roster.refresh().catch(() => {});
      const connected = this.primaries.filter(({ connection }) => connection.isConnected);
      await Promise.all(connected.map((primary) => primary.recheck(LOOK_MS).catch(() => {})));
    }
  }
}

function fail(parts: Part[], at: readonly number[], reason: unknown): void {
  const error = reason instanceof Error ? reason : new Error(String(reason));
  for (const from of at) parts.push({ kind: 'failed', from, count: 1, error });
}
