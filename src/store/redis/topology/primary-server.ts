import type { Clock } from '../../../core/clock.ts';
import { StoreUnsuitableError } from '../../../core/errors.ts';
import type { BaseRuntime } from '../../../core/runtime.ts';
import type { ClockOffset, Finding } from '../../port/examination.ts';
import type { Keyspace } from '../../port/keyspaces.ts';
import { STORE_FORMAT, UNFINISHED_FORMAT, UNFINISHED_PROBLEM } from '../../port/store.ts';
import { Connection } from '../client/connection.ts';
import type { Dialer, Link } from '../client/link.ts';
import { isErrorReply } from '../client/replies.ts';
import { judge, readInfo, SAME_CLOCK, type ServerFacts } from '../examination.ts';
import { Quarantine, type StoreContext } from '../quarantine.ts';
import { type RunScript, scripts } from '../scripts.ts';
import type { Reach, ServedSlots } from '../witness-state.ts';
import { replyOf } from './redirection.ts';

/** The place of a server in its topology: alone, or one primary of a Cluster. */
export interface ServerPlace {
  readonly topology: 'single' | 'cluster';
  /** `host:port` on a Cluster, else ''. */
  readonly address: string;
  /** On a Cluster: the slots of this server. */
  readonly served?: ServedSlots | undefined;
  /**
   * Runs a script about the marker while a link is being examined: over the link, if the marker is
   * there.
   */
  onMarker(link: Link, ...script: Parameters<RunScript>): Promise<unknown>;
  /**
   * Runs one on an open connection, where the marker may be on another server. If that server is
   * slow, this connection is not ended for it.
   */
  atMarker?(timeoutMs: number, ...script: Parameters<RunScript>): Promise<unknown>;
  /** The lease connection was lost. */
  onDisconnected(): void;
}

/**
 * One server that grants leases: the connections to it, and whether it may have forgotten any.
 *
 * Leases have a connection of their own: on a shared one a renewal would wait behind a large reply,
 * and be lost with it. The data connection is made when it is first needed, and only to the server
 * that was examined over the lease connection.
 */
export class PrimaryServer {
  readonly name: string;
  /** `host:port` on a Cluster, else ''. */
  readonly address: string;
  /**
   * Appended to the names of inboxes on this server. Each is subscribed separately, so that a
   * script can tell which are.
   */
  readonly at: string;
  readonly dialer: Dialer;
  /** For leases. */
  readonly connection: Connection;
  /** For everything else. */
  readonly data: Connection;
  readonly quarantine: Quarantine;
  readonly #rt: BaseRuntime;
  readonly #context: StoreContext;
  readonly #place: ServerPlace;
  #findings: readonly Finding[] = [];
  /** Why the server may grant nothing although it is connected: found by a later examination. */
  #unsuitable: StoreUnsuitableError | null = null;
  /** The run ids of the server processes at the other end. */
  #runId = '';
  #dataRunId = '';

  constructor(rt: BaseRuntime, dialer: Dialer, context: StoreContext, place: ServerPlace) {
    this.#rt = rt;
    this.#context = context;
    this.#place = place;
    this.name = dialer.name;
    this.dialer = dialer;
    this.address = place.address;
    this.at = place.address === '' ? '' : `@${place.address}`;
    this.quarantine = new Quarantine(rt, this.name, context, place.served);
    this.connection = new Connection(rt, dialer, {
      role: 'leases',
      prepare: (link) => this.#prepare(link),
      onConnected: () => {
        rt.events.emit('store.connected', { store: this.name });
        this.#dropOtherData();
        this.data.retryNow();
      },
      onDisconnected: (why) => {
        rt.events.emit('store.disconnected', { store: this.name, why });
        // The server may be gone, or a replica by now. Only the lease connection tries to reach it.
        this.data.drop(why);
        place.onDisconnected();
      },
    });
    this.data = new Connection(rt, dialer, {
      role: 'data',
      // Only the lease connection tries a server that is away.
      obstacle: () => (this.connection.isConnected ? null : this.connection.lastFailure),
      prepare: (link) => this.#prepareData(link),
      onConnected: () => this.#dropOtherData(),
      onDisconnected: () => {},
    });
  }

  connectionFor(isAboutLeases: boolean): Connection {
    return isAboutLeases ? this.connection : this.data;
  }

  async close(): Promise<void> {
    await Promise.all([this.connection.close(), this.data.close()]);
  }

  async examine(timeoutMs: number): Promise<readonly Finding[]> {
    await this.connection.use('examine', timeoutMs, (link) => this.#inspect(link));
    return this.#findings;
  }

  /**
   * How long this server may grant no new lease of a keyspace yet; 0 if it may. Throws if it may
   * grant none at all.
   */
  admit(keyspace: Keyspace): number {
    if (this.#unsuitable !== null) throw this.#unsuitable;
    return this.quarantine.announcedLeftMs(keyspace);
  }

  /** The store has another era, or `why` says what a holder has noticed. */
  async reexamine(why: string, timeoutMs: number): Promise<void> {
    const elsewhere = this.#elsewhere(timeoutMs);
    if (elsewhere !== undefined) return this.quarantine.reexamine(elsewhere, why);
    // The facts about a server belong to its connection, so the examination waits for one.
    const refusal = await this.connection.use('examine', timeoutMs, (link) =>
      refusalOf(this.quarantine.reexamine(this.#over(link), why)),
    );
    if (refusal !== null) throw refusal;
  }

  /**
   * Examines the server again on the same connection: its ids, data and settings may have changed.
   * A server that became unsuitable grants nothing more. Leases held there are still renewed,
   * because no other client is granted them.
   */
  async recheck(timeoutMs: number): Promise<void> {
    const elsewhere = this.#elsewhere(timeoutMs);
    const examine = (reach: Reach, facts: ServerFacts) =>
      refusalOf(this.quarantine.examine(reach, facts));
    const found = await this.connection.use('examine', timeoutMs, async (link) => {
      const facts = await this.#inspect(link);
      const refusal = elsewhere === undefined ? await examine(this.#over(link), facts) : null;
      return { facts, refusal };
    });
    const refusal = elsewhere === undefined ? found.refusal : await examine(elsewhere, found.facts);
    this.#unsuitable = refusal ?? this.#refusal();
    this.#warn(['warn', 'refuse']);
  }

  #elsewhere(timeoutMs: number): Reach | undefined {
    const { atMarker } = this.#place;
    return (
      atMarker && {
        run: (...script) => atMarker(timeoutMs, ...script),
        ask: (command) =>
          this.connection.use('examine', timeoutMs, (link) => replyOf(link.send(command))),
      }
    );
  }

  #over(link: Link): Reach {
    return {
      run: (...script) => this.#place.onMarker(link, ...script),
      ask: (command) => replyOf(link.send(command)),
    };
  }

  async #prepare(link: Link): Promise<void> {
    const server = await this.#inspect(link);
    this.#runId = server.runId;
    const refusal = this.#refusal();
    if (refusal !== null) throw refusal;
    this.#warn(['warn']);
    await this.#checkFormat(link, this.#context.marker);
    await this.quarantine.examine(this.#over(link), server);
    this.#unsuitable = null;
  }

  #refusal(): StoreUnsuitableError | null {
    const problems = this.#findings.filter(({ level }) => level === 'refuse');
    if (problems.length === 0) return null;
    return new StoreUnsuitableError({
      store: this.name,
      problems: problems.map(({ fact, advice }) => `${fact} ${advice}`),
    });
  }

  /** Warns once for each subject, until its finding is `ok` again. */
  #warn(levels: readonly Finding['level'][]): void {
    const { mode, warned } = this.#context;
    const { events } = this.#rt;
    for (const { level, subject, fact, advice = '' } of this.#findings) {
      if (level === 'ok') warned.delete(subject);
      if (!levels.includes(level) || warned.has(subject)) continue;
      warned.add(subject);
      events.emit('store.warned', { store: this.name, finding: fact, advice });
      // Without a listener the warning still has to reach a person, unless quarantine is off.
      if (mode === 'on' && !events.hasListener('store.warned'))
        process.emitWarning(`${this.name}: ${fact} ${advice}`, 'HoldfastWarning');
    }
  }

  /** Data that leases protect is written to the server that keeps the leases. */
  #dropOtherData(): void {
    if (this.#dataRunId !== this.#runId) this.data.drop('leases are kept by another server now');
  }

  /**
   * An address may lead to another server by now, or to a replica. The lease connection has to
   * follow.
   */
  async #prepareData(link: Link): Promise<void> {
    const { runId, role } = readInfo(await infoOf(link, this.name), SAME_CLOCK);
    this.#dataRunId = runId;
    if (runId === this.#runId && role === 'master') return;
    const why = `another server answers at ${this.name} now, or it has another role`;
    this.connection.drop(why);
    throw new Error(why);
  }

  /**
   * Checks the format of the stored data. A later one than ours belongs to a later Holdfast. An
   * observer records none.
   */
  async #checkFormat(link: Link, marker: string): Promise<void> {
    const reply = await this.#place.onMarker(
      link,
      scripts['server/format'],
      [marker],
      [String(STORE_FORMAT), this.#context.mayCreate ? '1' : ''],
    );
    const found = Number(reply);
    if (found === STORE_FORMAT) return;
    const isUnfinished = found === UNFINISHED_FORMAT;
    if (isUnfinished && this.#context.unfinished) return;
    const later =
      `Its data has format ${found}, and this version of Holdfast knows format ${STORE_FORMAT}. ` +
      'Upgrade this Holdfast, or give it a prefix or a store of its own.';
    const problem = isUnfinished ? UNFINISHED_PROBLEM : later;
    throw new StoreUnsuitableError({ store: this.name, problems: [problem] });
  }

  async #inspect(link: Link): Promise<ServerFacts> {
    const facts = await readFacts(link, this.name, this.#rt.clock);
    this.#findings = judge(facts, this.#place.topology);
    return facts;
  }
}

/** Returns a refusal: thrown inside `use`, it would count as a failure of the connection. */
async function refusalOf(examination: Promise<void>): Promise<StoreUnsuitableError | null> {
  try {
    await examination;
    return null;
  } catch (error) {
    if (error instanceof StoreUnsuitableError) return error;
    throw error;
  }
}

/** The facts that the server behind a link reports. */
export async function readFacts(link: Link, name: string, clock: Clock): Promise<ServerFacts> {
  const [info, offset] = await Promise.all([infoOf(link, name), clockOffset(link, clock)]);
  return readInfo(info, offset);
}

async function infoOf(link: Link, name: string): Promise<string> {
  try {
    return (await link.send(['INFO'])) as string;
  } catch (error) {
    if (!isErrorReply(error) || !error.message.startsWith('NOPERM')) throw error;
    const problem =
      'This user may not run INFO, which tells whether the server has forgotten leases. Grant +info.';
    throw new StoreUnsuitableError({ store: name, problems: [problem] });
  }
}

/** The server read its clock at some time between the request and its answer. */
async function clockOffset(link: Link, clock: Clock): Promise<ClockOffset> {
  const beforeMs = clock.wallMs();
  const [seconds, micros] = (await link.send(['TIME'])) as [string, string];
  const uncertaintyMs = (clock.wallMs() - beforeMs) / 2;
  const theirMs = Number(seconds) * 1_000 + Number(micros) / 1_000;
  return {
    offsetMs: tenths(theirMs - beforeMs - uncertaintyMs),
    uncertaintyMs: tenths(Math.abs(uncertaintyMs)),
  };
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
