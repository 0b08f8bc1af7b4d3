import type { Clock } from '../../../core/clock.ts';
import { StoreUnsuitableError } from '../../../core/errors.ts';
import type { Emitter } from '../../../core/events.ts';
import type { Random } from '../../../core/random.ts';
import type { ClockOffset, Finding } from '../../port/examination.ts';
import type { Keyspace, MaxTtls } from '../../port/keyspaces.ts';
import { STORE_FORMAT } from '../../port/store.ts';
import { Connection } from '../client/connection.ts';
import type { Dialer, Link } from '../client/link.ts';
import { isErrorReply } from '../client/replies.ts';
import { judge, readInfo, SAME_CLOCK, type ServerFacts } from '../examination.ts';
import { Quarantine, type RememberedStore } from '../quarantine.ts';
import { type RunScript, scripts } from '../scripts.ts';
import type { Reach, ServedSlots } from '../witness.ts';
import { replyOf } from './redirection.ts';

/** What all servers of one store have in common. */
export interface PrimaryContext {
  readonly marker: string;
  readonly mode: 'on' | 'off';
  /** `cluster` where it is one of several. */
  readonly topology: 'single' | 'cluster';
  /** On a Cluster: the slots of this server. */
  readonly served?: ServedSlots;
  /** Null for an observer. */
  readonly maxTtls: MaxTtls | null;
  /** False: a store that has not been used yet is left as it is. */
  readonly mayCreate: boolean;
  readonly remembered: RememberedStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  /** What somebody has been warned about: once, although the facts of it, as how far a clock is off, change all the time. */
  readonly warned: Set<string>;
  /** Runs a script about the marker while a link is being examined: over it, if the marker is there. */
  onMarker(link: Link, ...script: Parameters<RunScript>): Promise<unknown>;
  /**
   * Runs one while the connection stands, where the marker may be on another server: that one being slow is no reason to
   * give up this connection.
   */
  atMarker?(timeoutMs: number, ...script: Parameters<RunScript>): Promise<unknown>;
}

/**
 * One server that grants leases: the connections to it, and what is known about whether it has forgotten any.
 *
 * Leases have a connection of their own: on a shared one a renewal would wait behind a large reply, and be lost with
 * it. The other one is made when it is first needed, and only to the server that has been examined over the first.
 */
export class Primary {
  readonly name: string;
  /** `host:port` on a Cluster, else ''. */
  readonly address: string;
  /** Behind the names of inboxes on this server: there, each listens for itself, so that a script can tell who does. */
  readonly at: string;
  readonly dialer: Dialer;
  /** For leases. */
  readonly connection: Connection;
  /** For everything else. */
  readonly data: Connection;
  readonly quarantine: Quarantine;
  readonly #context: PrimaryContext;
  #findings: readonly Finding[] = [];
  /** Why it may grant nothing, although it is connected: found by a later look. */
  #unsuitable: StoreUnsuitableError | null = null;
  /** The server process at the other end of each. */
  #runId = '';
  #dataRunId = '';

  constructor(
    dialer: Dialer,
    context: PrimaryContext,
    { address = '', onDisconnected = () => {} } = {},
  ) {
    const { clock, events, random } = context;
    this.name = dialer.name;
    this.dialer = dialer;
    this.address = address;
    this.at = address === '' ? '' : `@${address}`;
    this.#context = context;
    this.quarantine = new Quarantine({ ...context, store: this.name });
    this.connection = new Connection({
      dialer,
      clock,
      random,
      prepare: (link) => this.#prepare(link),
      onConnected: () => {
        events.emit('store.connected', { store: this.name });
        this.#compare();
        this.data.hurry();
      },
      onDisconnected: (why) => {
        events.emit('store.disconnected', { store: this.name, why });
        // The server may be gone, or be another's replica by now: it is looked for over one connection.
        this.data.drop(why);
        onDisconnected();
      },
    });
    this.data = new Connection({
      ...{ dialer, clock, random },
      // A server that is away is tried over one connection.
      obstacle: () => (this.connection.isConnected ? null : this.connection.lastFailure),
      prepare: (link) => this.#prepareData(link),
      onConnected: () => this.#compare(),
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
    await this.connection.use('examine', timeoutMs, (link) => this.#look(link));
    return this.#findings;
  }

  /** How long this server may grant no new lease of a keyspace yet; 0 if it may. Throws if it may grant none at all. */
  admit(keyspace: Keyspace): number {
    if (this.#unsuitable !== null) throw this.#unsuitable;
    return this.quarantine.ask(keyspace);
  }

  /** Another era was found in the store, or `why` says what a holder has noticed. */
  async reexamine(why: string, timeoutMs: number): Promise<void> {
    const elsewhere = this.#elsewhere(timeoutMs);
    if (elsewhere !== undefined) return this.quarantine.reexamine(elsewhere, why);
    // What is known of the server belongs to its connection: it is looked up once there is one, not before.
    const refusal = await this.connection.use('examine', timeoutMs, (link) =>
      refusalOf(this.quarantine.reexamine(this.#over(link), why)),
    );
    if (refusal !== null) throw refusal;
  }

  /**
   * Looks at the server once more, on the same connection: its ids, its data and its settings may have changed. One that
   * became unsuitable grants nothing more; what is held there is still renewed, because no client is granted it.
   */
  async recheck(timeoutMs: number): Promise<void> {
    const elsewhere = this.#elsewhere(timeoutMs);
    const examine = (reach: Reach, facts: ServerFacts) =>
      refusalOf(this.quarantine.examine(reach, facts));
    const looked = await this.connection.use('examine', timeoutMs, async (link) => {
      const facts = await this.#look(link);
      const refusal = elsewhere === undefined ? await examine(this.#over(link), facts) : null;
      return { facts, refusal };
    });
    const refusal =
      elsewhere === undefined ? looked.refusal : await examine(elsewhere, looked.facts);
    this.#unsuitable = refusal ?? this.#refusal();
    this.#warn(['warn', 'refuse']);
  }

  #elsewhere(timeoutMs: number): Reach | undefined {
    const { atMarker } = this.#context;
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
      run: (...script) => this.#context.onMarker(link, ...script),
      ask: (command) => replyOf(link.send(command)),
    };
  }

  async #prepare(link: Link): Promise<void> {
    const server = await this.#look(link);
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

  /** Once for each subject, until it is well again. */
  #warn(levels: readonly Finding['level'][]): void {
    const { events, mode, warned } = this.#context;
    for (const { level, subject, fact, advice = '' } of this.#findings) {
      if (level === 'ok') warned.delete(subject);
      if (!levels.includes(level) || warned.has(subject)) continue;
      warned.add(subject);
      events.emit('store.warned', { store: this.name, finding: fact, advice });
      // A warning without a listener still has to reach a person, unless this is declared to be a playground.
      if (mode === 'on' && !events.hasListener('store.warned'))
        process.emitWarning(`${this.name}: ${fact} ${advice}`, 'HoldfastWarning');
    }
  }

  /** What is written under leases is written where they are kept. */
  #compare(): void {
    if (this.#dataRunId !== this.#runId) this.data.drop('leases are kept by another server now');
  }

  /** An address may lead elsewhere by now, or to a server that is a replica now: then leases have to look there, too. */
  async #prepareData(link: Link): Promise<void> {
    const { runId, role } = readInfo(await infoOf(link, this.name), SAME_CLOCK);
    this.#dataRunId = runId;
    if (runId === this.#runId && role === 'master') return;
    const why = `another server answers at ${this.name} now, or it has another role`;
    this.connection.drop(why);
    throw new Error(why);
  }

  /** The form of what is kept there is written once, unless this client only looks; a later one than ours means a later Holdfast than this. */
  async #checkFormat(link: Link, marker: string): Promise<void> {
    const reply = await this.#context.onMarker(
      link,
      scripts['server/format'],
      [marker],
      [String(STORE_FORMAT), this.#context.mayCreate ? '1' : ''],
    );
    const found = Number(reply);
    if (found === STORE_FORMAT) return;
    const problem =
      `Its data has format ${found}, and this version of Holdfast knows format ${STORE_FORMAT}. ` +
      'Upgrade this Holdfast, or give it a prefix or a store of its own.';
    throw new StoreUnsuitableError({ store: this.name, problems: [problem] });
  }

  async #look(link: Link): Promise<ServerFacts> {
    const facts = await lookAt(link, this.name, this.#context.clock);
    this.#findings = judge(facts, this.#context.topology);
    return facts;
  }
}

/** A refusal as a value: inside of `use`, what is thrown counts as a failure of the connection. */
async function refusalOf(examination: Promise<void>): Promise<StoreUnsuitableError | null> {
  try {
    await examination;
    return null;
  } catch (error) {
    if (error instanceof StoreUnsuitableError) return error;
    throw error;
  }
}

/** What the server behind a link says about itself. */
export async function lookAt(link: Link, name: string, clock: Clock): Promise<ServerFacts> {
  const [info, offset] = await Promise.all([infoOf(link, name), clockOffset(link, clock)]);
  return readInfo(info, offset);
}

async function infoOf(link: Link, name: string): Promise<string> {
  try {
    return (await link.send(['INFO'])) as string;
  } catch (error) {
    if (!isErrorReply(error) || !error.message.startsWith('NOPERM')) throw error;
    const problem =
      'This user may not run INFO, so nobody can tell whether the server has forgotten leases. Grant +info.';
    throw new StoreUnsuitableError({ store: name, problems: [problem] });
  }
}

/** When exactly it looked at its clock is not known, only between when it was asked and when it had answered. */
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
