import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { readWindow } from '../../../src/incident/log-window.ts';
import { verify } from '../../../src/incident/verify.ts';
import { type Holdfast, open } from '../../../src/index.ts';
import { LOG_KEPT } from '../../../src/store/port/log-store.ts';
import { FaultProxy } from '../../../testing/fakes/fault-proxy.ts';
import { type Child, spawnChild } from '../../support/child.ts';
import { faultsOf, type Phase } from '../../support/chronicle.ts';
import { hostMs } from '../../support/host-clock.ts';
import { imbalance, moves, type Poll, type Standstill } from '../../support/poll-record.ts';
import { atExit } from '../../support/process.ts';
import { type RedisOptions, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { TargetServer } from '../../support/target-server.ts';
import { until } from '../../support/until.ts';
import { Member } from './member.ts';

/** Timings of every fleet under test, unless it says otherwise. */
export const TTL_MS = 3_000;
export const EVERY_MS = 200;
/** A poll takes a good part of the interval: what is handed over too early would soon be seen. */
const LATENCY_MS = 60;
/** Longest time without a poll where nothing happens: the interval, its jitter, a move, and a busy machine. */
export const CALM_MS = 1_200;
/** After a crash: the TTL and at most 1 s (SC-002); the last poll before it may have ended an interval earlier. */
export const CRASH_MS = TTL_MS + 1_000 + 2 * EVERY_MS;

const START_DEADLINE_MS = 30_000;
const STOP_DEADLINE_MS = 20_000;
const SETTLE_DEADLINE_MS = 20_000;
const LOOK_EVERY_MS = 40;
/** All members read one clock, at slightly different moments. */
const SAME_HOST_MS = 50;

/** What a member tells as it happens, so that a failure can be read. */
const TOLD = [
  ...['lease.acquired', 'lease.lost', 'lease.released', 'lease.transferred', 'lease.uncertain'],
  ...['lease.confirmed', 'lease.reasserted', 'lease.abandoned', 'lease.returned', 'loop.delayed'],
  ...['member.joined', 'member.left', 'fleet.asked', 'fleet.stalled', 'fleet.resumed'],
  ...['poll.failed', 'poll.stuck', 'poll.settled', 'result.refused', 'session.unreadable'],
  ...['store.disconnected', 'store.connected', 'store.forgot', 'store.quarantined'],
];

export type StoreKind = 'redis' | 'sqlite';

export interface FleetOptions {
  /** For Redis, of the server; by default it keeps its data over a restart. */
  redis?: RedisOptions;
  quarantine?: 'on' | 'off';
  /** `as they come`: leases last as long as they do for everybody, and not as short as is good for tests. */
  timings?: 'short' | 'as they come';
  /** Of every member's poller, beyond the timings. */
  poller?: Readonly<Record<string, unknown>>;
}

export interface MemberOptions {
  weight?: number;
  /** Reaches Redis through a proxy of its own, so that it can be cut off. */
  isProxied?: boolean;
  poller?: Readonly<Record<string, unknown>>;
  /** Targets whose polls never settle here, whatever they are told. */
  hung?: readonly string[];
}

/**
 * A store, a target server and any number of processes that share its targets. A scenario starts and harms them, names
 * its phases, and at its end asks `check`: over the whole run, no two instances polled a target at once, no fence went
 * down, and no target went without a poll for longer than the phase allows.
 */
export class TestFleet implements AsyncDisposable {
  readonly server: TargetServer;
  readonly url: string;
  /** Those that share the targets now. */
  readonly members = new Set<Member>();
  readonly #redis: RedisServer | undefined;
  readonly #options: FleetOptions;
  readonly #everyone = new Map<string, Child>();
  readonly #proxies: FaultProxy[] = [];
  readonly #phases: Phase[] = [];
  readonly #wanted: { target: string; fromMs: number; toMs: number }[] = [];
  readonly #standstills: Standstill[] = [];
  #operator: Promise<Holdfast> | null = null;
  #started = 0;

  private constructor(
    parts: { server: TargetServer; url: string; redis?: RedisServer },
    options: FleetOptions,
  ) {
    this.server = parts.server;
    this.url = parts.url;
    this.#redis = parts.redis;
    this.#options = options;
  }

  static async on(kind: StoreKind, options: FleetOptions = {}): Promise<TestFleet> {
    const server = await TargetServer.start({ latencyMs: LATENCY_MS });
    if (kind === 'redis') {
      const redis = await startRedis({ appendonly: true, ...options.redis });
      return new TestFleet({ server, url: redis.url, redis }, options);
    }
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-fleet-'));
    atExit(() => rmSync(folder, { recursive: true, force: true }));
    return new TestFleet({ server, url: `sqlite:${join(folder, 'holdfast.db')}` }, options);
  }

  get redis(): RedisServer {
    if (this.#redis === undefined) throw new Error('this fleet has no Redis');
    return this.#redis;
  }

  get polls(): readonly Poll[] {
    return this.server.polls;
  }

  /** Every target that is to be polled now. */
  get targets(): string[] {
    return this.#wanted
      .filter(({ toMs }) => toMs === Number.POSITIVE_INFINITY)
      .map(({ target }) => target);
  }

  /** For what an operator does: a Holdfast in this process, which takes no part. */
  operator(): Promise<Holdfast> {
    this.#operator ??= open(this.url, { observe: true, on: { 'store.warned': () => {} } });
    return this.#operator;
  }

  /** From here on, no target may go without a poll for longer than this. */
  phase(name: string, gapMs: number): void {
    this.#phases.push({ name, fromMs: hostMs(), gapMs });
  }

  /** Sessions for these targets; from now on they are to be polled. */
  async add(ids: readonly string[]): Promise<void> {
    const { targets: sessions } = await this.operator();
    await sessions.addAll(ids.map((id) => ({ id, url: this.server.urlOf(id) })));
    this.want(ids);
  }

  /** From now on, these are to be polled. `add` says so by itself. */
  want(ids: readonly string[]): void {
    const fromMs = hostMs();
    for (const target of ids) this.#wanted.push({ target, fromMs, toMs: Number.POSITIVE_INFINITY });
  }

  /** From now on, nobody needs to poll these. */
  unwant(ids: readonly string[]): void {
    const toMs = hostMs();
    const gone = new Set(ids);
    for (const want of this.#wanted)
      if (gone.has(want.target) && want.toMs === Number.POSITIVE_INFINITY) want.toMs = toMs;
  }

  /** Starts as many members at once, and waits until each takes part. */
  async start(count: number, options: MemberOptions = {}): Promise<Member[]> {
    const members = await Promise.all(Array.from({ length: count }, () => this.#launch(options)));
    for (const member of members) this.members.add(member);
    await Promise.all(members.map(({ child }) => child.next('started', START_DEADLINE_MS)));
    return members;
  }

  /** Starts another program of test/children beside the fleet, and waits until it is ready. */
  async startOther(script: string, options: object): Promise<Member> {
    const child = spawnChild(script, { args: [this.url, JSON.stringify(options)] });
    const { id } = await child.next('ready', START_DEADLINE_MS);
    this.#everyone.set(String(id), child);
    return new Member({ id: String(id), child, weight: 0, readyMs: hostMs() });
  }

  /** `kill -9`; says when it was dead. */
  async kill(...members: readonly Member[]): Promise<number> {
    for (const member of members) this.members.delete(member);
    await Promise.all(members.map(({ child }) => child.kill()));
    return hostMs();
  }

  /** It hands everything over, and ends with 0; says when it was told to. By SIGTERM, unless there is more to say. */
  async stop(member: Member, how?: { within: number }): Promise<number> {
    const toldMs = hostMs();
    this.members.delete(member);
    if (how === undefined) member.child.signal('SIGTERM');
    else member.child.send({ do: 'stop', how });
    const status = await member.child.exit(STOP_DEADLINE_MS);
    expect(status, member.child.stderr).toEqual({ code: 0, signal: null });
    return toldMs;
  }

  /** Stops a process in its tracks. The function returned lets it go on. */
  async freeze(member: Member): Promise<() => Promise<void>> {
    await member.child.freeze();
    const fromMs = hostMs();
    return async () => {
      this.#standstills.push({ instance: member.id, fromMs, toMs: hostMs() });
      await member.child.thaw();
    };
  }

  /** Keeps its event loop from turning. */
  async block(member: Member, ms: number): Promise<void> {
    const { fromMs, toMs } = await member.tell('block', { ms });
    const standstill = { instance: member.id, fromMs: Number(fromMs), toMs: Number(toMs) };
    this.#standstills.push(standstill);
  }

  /** Waits until each target has one owner, among the members or those given instead; says who owns what. */
  async untilOwned(members: Iterable<Member> = this.members): Promise<Map<string, string>> {
    const owners = async () => {
      const found = await this.#owners(members);
      const free = [...found].filter(([, owner]) => owner === null).map(([target]) => target);
      if (free.length > 0) throw new Error(`nobody owns ${free.slice(0, 5).join(', ')} …`);
      return found as Map<string, string>;
    };
    const what = `${this.targets.length} targets to have one owner each`;
    return until(owners, { what, deadlineMs: SETTLE_DEADLINE_MS, every: LOOK_EVERY_MS });
  }

  /** The same, and every member has its share. */
  async untilBalanced(): Promise<Map<string, string>> {
    const owners = async () => {
      const found = await this.#owners(this.members);
      const wrong = imbalance(found, [...this.members]);
      if (wrong.length > 0) throw new Error(`not balanced: ${JSON.stringify(wrong)}`);
      return found as Map<string, string>;
    };
    const what = `${this.members.size} members to share ${this.targets.length} targets`;
    return until(owners, { what, deadlineMs: SETTLE_DEADLINE_MS, every: LOOK_EVERY_MS });
  }

  /** Waits until each of the targets has been polled as often from now on. */
  async untilPolled(ids: readonly string[] = this.targets, times = 1): Promise<void> {
    const fromMs = hostMs();
    const isPolled = () => {
      const counts = new Map(ids.map((id) => [id, 0]));
      for (const { target, startMs } of this.polls)
        if (startMs >= fromMs) counts.set(target, (counts.get(target) ?? 0) + 1);
      const lacking = ids.filter((id) => (counts.get(id) ?? 0) < times);
      if (lacking.length > 0) throw new Error(`not polled: ${lacking.slice(0, 5).join(', ')} …`);
      return true;
    };
    const what = `${ids.length} targets to be polled ${times} times`;
    await until(isPolled, { what, deadlineMs: SETTLE_DEADLINE_MS, every: LOOK_EVERY_MS });
  }

  /** Waits for balance, and until nothing moves any more: two more polls of each target, by its owner alone. */
  async untilSteady(): Promise<Map<string, string>> {
    const steady = async () => {
      const owners = await this.untilBalanced();
      const fromMs = hostMs();
      await this.untilPolled(this.targets, 2);
      const hasMoved = this.polls.some(
        ({ target, instance, startMs }) =>
          startMs >= fromMs && owners.has(target) && owners.get(target) !== instance,
      );
      return !hasMoved && owners;
    };
    const what = `${this.targets.length} targets to stay where they are`;
    return until(steady, { what, deadlineMs: SETTLE_DEADLINE_MS });
  }

  /** Waits until nothing has moved for five polls of each target, whoever owns it. */
  async untilStill(): Promise<void> {
    const isStill = async () => {
      const fromMs = hostMs();
      await this.untilPolled(this.targets, 5);
      return moves(this.polls.filter(({ startMs }) => startMs >= fromMs)) === 0;
    };
    const what = `${this.targets.length} targets to stay where they are`;
    await until(isStill, { what, deadlineMs: SETTLE_DEADLINE_MS });
  }

  /** What the record must show of any run, however it went. */
  check(): void {
    const faults = faultsOf({
      polls: this.polls,
      phases: this.#phases,
      wanted: this.#wanted,
      standstills: this.#standstills,
      told: new Map([...this.#everyone].map(([id, { received }]) => [id, received])),
      endMs: hostMs(),
    });
    // Not by `expect`, which would show the beginning of it only.
    if (faults !== '') throw new Error(faults);
    const unhandled = [...this.#everyone.values()].flatMap(({ received }) =>
      received.filter(({ event }) => event === 'unhandled'),
    );
    expect(unhandled).toEqual([]);
    expect(this.polls.length).toBeGreaterThan(0);
  }

  /** What the members wrote into the shared log must not contradict itself, however the run went. */
  async checkLog(): Promise<void> {
    const { log } = await this.operator();
    const { events } = await readWindow(log, { fromMs: null, most: LOG_KEPT });
    const { contradictions } = verify(events, { toleranceMs: SAME_HOST_MS });
    if (contradictions.length > 0) throw new Error(JSON.stringify(contradictions, null, 1));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#everyone.values()].map((child) => child.kill()));
    await (await this.#operator)?.close();
    await Promise.all(this.#proxies.map((proxy) => proxy.close()));
    await this.#redis?.stop();
    await this.server[Symbol.asyncDispose]();
  }

  async #launch({
    weight = 1,
    isProxied = false,
    poller,
    hung = [],
  }: MemberOptions): Promise<Member> {
    this.#started += 1;
    const name = `m${this.#started}`;
    const proxy = isProxied ? await this.#proxy() : undefined;
    const { quarantine = 'off', timings = 'short' } = this.#options;
    const options = {
      open: { name, quarantine, ...(timings === 'short' && { maxTtl: TTL_MS }) },
      poller: {
        ...{ every: EVERY_MS, weight },
        ...(timings === 'short' && { ttl: TTL_MS }),
        ...this.#options.poller,
        ...poller,
      },
      tell: TOLD,
      hung,
    };
    const url = proxy === undefined ? this.url : `redis://127.0.0.1:${proxy.port}`;
    const child = spawnChild('fleet-member.mjs', { args: [url, JSON.stringify(options)] });
    this.#everyone.set(name, child);
    const { id, atMs } = await child.next('ready', START_DEADLINE_MS);
    this.#everyone.delete(name);
    this.#everyone.set(String(id), child);
    const readyMs = Number(atMs);
    return new Member({ id: String(id), child, weight, readyMs, ...(proxy && { proxy }) });
  }

  async #proxy(): Promise<FaultProxy> {
    const target = { host: '127.0.0.1', port: this.redis.port };
    const proxy = await FaultProxy.start({ target });
    this.#proxies.push(proxy);
    return proxy;
  }

  /** Who believes to own each target; throws where two do, or one has what nobody wants. */
  async #owners(members: Iterable<Member>): Promise<Map<string, string | null>> {
    const owners = new Map<string, string | null>(this.targets.map((target) => [target, null]));
    const look = async (member: Member) => ({ id: member.id, owned: await member.owned() });
    for (const { id, owned } of await Promise.all([...members].map(look))) {
      for (const target of owned) {
        const other = owners.get(target);
        if (other !== null) throw new Error(`'${target}' is owned by ${id} and by ${other}`);
        owners.set(target, id);
      }
    }
    return owners;
  }
}
