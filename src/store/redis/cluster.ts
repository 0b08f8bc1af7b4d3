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
import type { Clock } from '../../base/clock.ts';
import { ClosedError, StoreUnreachableError } from '../../base/errors.ts';
import type { Finding } from '../store.ts';
import type { RedisAddress } from './address.ts';
import { sendScript } from './connection.ts';
import { declared, type Fleet, type Part, type ScanPage, scanOne, type Work } from './fleet.ts';
import { dialEndpoint, endpointDialer, type Link } from './link.ts';
import { lookAt, Primary, type PrimaryContext } from './primary.ts';
import { found, type RunScript } from './quarantine.ts';
import { isErrorReply, isWrongServer, refused } from './replies.ts';
import { askForSlots, explained, readAddress, type SlotMap } from './slot-map.ts';
import { slotOf } from './slots.ts';

/** How long a look at the map, or at a server, may take. */
const LOOK_MS = 2_000;
/** Between two looks at a Cluster that is changing. */
const PAUSE_MS = 25;
/** How often map and primaries are looked at although nothing has happened. */
const TICK_MS = 5_000;

type Context = Omit<PrimaryContext, 'topology' | 'onMarker'>;

/** Requests for keys that may lie anywhere. */
interface Errand {
  readonly operation: string;
  readonly keys: readonly string[];
  readonly prepare?: Work['prepare'];
  /** Sends the request for one of them; `isAsking` where it is to be answered ahead of the map. */
  send(link: Link, at: number, primary: Primary, isAsking: boolean): Promise<unknown>;
}

/** Some keys of an errand, and where they are sought. */
interface Leg {
  readonly address: string;
  readonly isAsking: boolean;
  readonly at: readonly number[];
}

export class ClusterFleet implements Fleet {
  readonly name: string;
  onPrimaries = () => {};
  readonly #address: RedisAddress;
  readonly #context: Context;
  readonly #clock: Clock;
  #map: SlotMap = [];
  readonly #primaries = new Map<string, Primary>();
  #refreshing: Promise<void> | null = null;
  readonly #closing = new AbortController();

  constructor(address: RedisAddress, context: Context) {
    this.name = address.name;
    this.#address = address;
    this.#context = context;
    this.#clock = context.clock;
  }

  get primaries(): readonly Primary[] {
    return [...this.#primaries.values()];
  }

  lane(key: string): string {
    return this.#map[slotOf(key)] ?? '';
  }

  async open(): Promise<void> {
    await this.#refresh();
    if (this.#context.mode === 'on') await this.#foundMarker();
    await Promise.all(this.primaries.map(({ connection }) => connection.open()));
    void this.#tickForEver();
  }

  async close(): Promise<void> {
    this.#closing.abort(new ClosedError('connection'));
    await this.#refreshing?.catch(() => {});
    await Promise.all(this.primaries.map(({ connection }) => connection.close()));
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
    const send: Errand['send'] = (link, at, primary, isAsking) => {
      const args = work.head?.(primary) ?? [];
      for (const arg of perKey[at] ?? []) args.push(arg);
      return sendScript(link, script, declared(work, keys[at] ?? ''), args, isAsking);
    };
    return this.#do({ operation: script.verb, keys, send, ...(prepare && { prepare }) }, timeoutMs);
  }

  async send(operation: string, key: string, args: readonly string[], timeoutMs: number) {
    const send: Errand['send'] = (link, _at, _primary, isAsking) => {
      if (isAsking) void link.send(['ASKING']).catch(() => {});
      return link.send(args);
    };
    const [part] = await this.#do({ operation, keys: [key], send }, timeoutMs);
    if (part?.kind === 'failed') throw part.error;
    return part?.kind === 'reply' ? part.reply : null;
  }

  /** The cursor says on which server the walk is, and how far there. */
  async scan(pattern: string, cursor: string | undefined, timeoutMs: number): Promise<ScanPage> {
    const addresses = [...this.#primaries.keys()].sort();
    const [, at = addresses[0] ?? '', step = '0'] = /^(.*) (\d+)$/.exec(cursor ?? '') ?? [];
    const primary = this.#primaries.get(at);
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
    const leftMs = untilMs - this.#clock.monotonicMs();
    const primary = this.#primaries.get(leg.address);
    if (primary === undefined || !primary.connection.isConnected) {
      primary?.connection.connect();
      const why = `${leg.address || 'the server of the slot'} is not connected`;
      return this.#later(errand, leg.at, untilMs, parts, why);
    }
    try {
      const quarantineMs = (await errand.prepare?.(primary, leftMs)) ?? 0;
      if (quarantineMs > 0) {
        const quarantined = { kind: 'quarantined', leftMs: quarantineMs, count: 1 } as const;
        for (const from of leg.at) parts.push({ ...quarantined, from });
        return;
      }
      const replies = await primary.connection.use(errand.operation, leftMs, (link) =>
        Promise.all(leg.at.map((at) => reply(errand.send(link, at, primary, leg.isAsking)))),
      );
      await this.#sort(errand, leg, replies, primary, untilMs, parts);
    } catch (error) {
      // Nothing was sent: somebody else may be in charge by now.
      if (error instanceof StoreUnreachableError && !this.#closing.signal.aborted)
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
        ahead.set(found.address, [...(ahead.get(found.address) ?? []), from]);
      } else {
        why = found.text;
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
    if (untilMs - this.#clock.monotonicMs() <= PAUSE_MS)
      return fail(parts, at, new StoreUnreachableError({ ...this.#where(errand), why }));
    const pause = this.#clock.sleep(PAUSE_MS, this.#closing.signal);
    try {
      // A look at the map that takes longer goes on without us.
      await Promise.race([this.#refresh().catch(() => pause), this.#clock.sleep(PAUSE_MS * 4)]);
      await pause;
    } catch {
      return fail(parts, at, new ClosedError(errand.operation));
    }
    await Promise.all(this.#legs(errand, at).map((leg) => this.#go(errand, leg, untilMs, parts)));
  }

  #where({ operation }: Errand): { store: string; operation: string } {
    return { store: this.name, operation };
  }

  /** Reads the map anew; one look serves all who want one at the time. */
  #refresh(): Promise<void> {
    this.#refreshing ??= this.#readMap().finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  async #readMap(): Promise<void> {
    const known = this.primaries
      .filter(({ connection }) => connection.isConnected)
      .map(({ address }) => readAddress(address));
    const endpoints = [...known, ...this.#address.endpoints];
    const parts = { ...this.#address, clock: this.#clock };
    this.#map = await askForSlots(endpoints, parts, LOOK_MS, this.#closing.signal);
    const addresses = new Set(this.#map);
    let isChanged = false;
    for (const address of addresses) {
      if (address === undefined || this.#primaries.has(address)) continue;
      this.#primaries.set(address, this.#primary(address));
      isChanged = true;
    }
    for (const [address, { connection }] of this.#primaries) {
      if (addresses.has(address)) continue;
      this.#primaries.delete(address);
      void connection.close();
      isChanged = true;
    }
    if (isChanged) this.onPrimaries();
  }

  #primary(address: string): Primary {
    const scheme = this.#address.credentials.tls === undefined ? 'redis:' : 'rediss:';
    const dialer = endpointDialer(
      `${scheme}//${address}`,
      readAddress(address),
      this.#address.credentials,
    );
    const context: PrimaryContext = {
      ...this.#context,
      topology: 'cluster',
      onMarker: (link, ...script) => this.#onMarker(address, link, ...script),
    };
    return new Primary(dialer, context, { address, onDisconnected: () => void this.#soon() });
  }

  /** A server is gone: look who has its slots, until somebody has. */
  async #soon(): Promise<void> {
    await this.#refresh().catch(() => {});
  }

  /** The marker lies on one of the servers: on the one behind this link, or on another. */
  async #onMarker(address: string, link: Link, ...script: Parameters<RunScript>): Promise<unknown> {
    const owner = this.lane(this.#context.marker);
    if (owner === address) return evaluate(link, ...script);
    const primary = this.#primaries.get(owner);
    if (primary === undefined) {
      const why = 'nobody has the slot of the marker';
      throw new StoreUnreachableError({ store: this.name, operation: 'examine', why });
    }
    return primary.connection.use('examine', LOOK_MS, (other) => evaluate(other, ...script));
  }

  async #foundMarker(): Promise<void> {
    const { clock } = this.#context;
    const attempt = { timeoutMs: LOOK_MS, signal: this.#closing.signal, onEnd: () => {} };
    const links = new Map<string, Link>();
    try {
      const looks = this.primaries.map(async ({ address, name }) => {
        const link = await dialEndpoint(readAddress(address), this.#address.credentials, attempt);
        links.set(address, link);
        return lookAt(link, name, clock);
      });
      const servers = await Promise.all(looks);
      const link = links.get(this.lane(this.#context.marker));
      if (link !== undefined)
        await found((...script) => evaluate(link, ...script), this.#context, servers);
    } catch (error) {
      throw explained(error, this.name, 'connect');
    } finally {
      for (const link of links.values()) link.destroy();
    }
  }

  async #tickForEver(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#clock.sleep(TICK_MS, signal).catch(() => {});
      if (signal.aborted) return;
      await this.#refresh().catch(() => {});
      const connected = this.primaries.filter(({ connection }) => connection.isConnected);
      await Promise.all(connected.map((primary) => primary.recheck(LOOK_MS).catch(() => {})));
    }
  }
}

/** Words of a server that has done nothing and knows who might, or that things are in motion. */
const IN_MOTION = /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|LOADING|MASTERDOWN|READONLY)\b/;

class Redirection {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  get isAsk(): boolean {
    return this.text.startsWith('ASK ');
  }

  /** `ASK <slot> <host:port>`. */
  get address(): string {
    return this.text.split(' ')[2] ?? '';
  }
}

/** A reply, or a redirection, or another error of the server as a value; what came instead of an answer is thrown. */
async function reply(sending: Promise<unknown>): Promise<unknown> {
  try {
    return await sending;
  } catch (error) {
    if (!isErrorReply(error)) throw error;
    return IN_MOTION.test(error.message) ? new Redirection(error.message) : error;
  }
}

function evaluate(link: Link, ...[script, keys, args]: Parameters<RunScript>): Promise<unknown> {
  return link.send(['EVAL', script.source, String(keys.length), ...keys, ...args]);
}

function fail(parts: Part[], at: readonly number[], reason: unknown): void {
  const error = reason instanceof Error ? reason : new Error(String(reason));
  for (const from of at) parts.push({ kind: 'failed', from, count: 1, error });
}
