import type { Clock } from '../../base/clock.ts';
import { StoreUnsuitableError } from '../../base/errors.ts';
import type { Emitter } from '../../base/events.ts';
import type { Random } from '../../base/random.ts';
import { type ClockOffset, type Finding, STORE_FORMAT } from '../store.ts';
import { Connection } from './connection.ts';
import { judge, readInfo, type ServerFacts } from './examination.ts';
import type { Dialer, Link } from './link.ts';
import { type ExaminationCause, type Memory, Quarantine, type RunScript } from './quarantine.ts';
import { isErrorReply } from './replies.ts';
import { scripts } from './scripts.ts';

/** What all servers of one store have in common. */
export interface PrimaryContext {
  readonly marker: string;
  readonly mode: 'on' | 'off';
  /** `cluster` where it is one of several. */
  readonly topology: 'single' | 'cluster';
  readonly memory: Memory;
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

/** One server that grants leases: the connection to it, and what is known about whether it has forgotten any. */
export class Primary {
  readonly name: string;
  /** `host:port` on a Cluster, else ''. */
  readonly address: string;
  /** Behind the names of inboxes on this server: there, each listens for itself, so that a script can tell who does. */
  readonly at: string;
  readonly dialer: Dialer;
  readonly connection: Connection;
  readonly quarantine: Quarantine;
  readonly #context: PrimaryContext;
  #findings: readonly Finding[] = [];

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
    this.quarantine = new Quarantine({
      ...context,
      store: this.name,
      isShared: context.topology === 'cluster',
    });
    this.connection = new Connection({
      dialer,
      clock,
      random,
      prepare: (link) => this.#prepare(link),
      onConnected: () => events.emit('store.connected', { store: this.name }),
      onDisconnected: (why) => {
        events.emit('store.disconnected', { store: this.name, why });
        onDisconnected();
      },
    });
  }

  async examine(timeoutMs: number): Promise<readonly Finding[]> {
    await this.connection.use('examine', timeoutMs, (link) => this.#look(link));
    return this.#findings;
  }

  /**
   * For how long yet this server may make no new grant of a class; 0 for none. Before the first one with a longer TTL
   * than it knows of, the marker is told.
   */
  async admit(leaseClass: string, ttlMs: number, timeoutMs: number): Promise<number> {
    if (!this.quarantine.knows(leaseClass, ttlMs))
      await this.reexamine({ use: { leaseClass, ttlMs } }, timeoutMs);
    return this.quarantine.leftMs(leaseClass);
  }

  async reexamine(cause: ExaminationCause, timeoutMs: number): Promise<void> {
    const elsewhere = this.#elsewhere(timeoutMs);
    if (elsewhere !== undefined) return this.quarantine.reexamine(elsewhere, cause);
    // What is known of the server belongs to its connection: it is looked up once there is one, not before.
    await this.connection.use('examine', timeoutMs, (link) =>
      this.quarantine.reexamine(this.#runner(link), cause),
    );
  }

  /** Looks at the server once more, on the same connection: its ids may have changed under us. */
  async recheck(timeoutMs: number): Promise<void> {
    const elsewhere = this.#elsewhere(timeoutMs);
    const server = await this.connection.use('examine', timeoutMs, async (link) => {
      const facts = await this.#look(link);
      if (elsewhere === undefined) await this.quarantine.examine(this.#runner(link), facts);
      return facts;
    });
    if (elsewhere !== undefined) await this.quarantine.examine(elsewhere, server);
  }

  #elsewhere(timeoutMs: number): RunScript | undefined {
    const { atMarker } = this.#context;
    return atMarker && ((...script) => atMarker(timeoutMs, ...script));
  }

  #runner(link: Link): RunScript {
    return (script, keys, args) => this.#context.onMarker(link, script, keys, args);
  }

  async #prepare(link: Link): Promise<void> {
    const { events, marker, mode, warned } = this.#context;
    const server = await this.#look(link);
    const problems = this.#findings.filter((finding) => finding.level === 'refuse');
    if (problems.length > 0) {
      throw new StoreUnsuitableError({
        store: this.name,
        problems: problems.map(({ fact, advice }) => `${fact} ${advice}`),
      });
    }
    for (const { level, subject, fact, advice = '' } of this.#findings) {
      if (level !== 'warn' || warned.has(subject)) continue;
      warned.add(subject);
      events.emit('store.warned', { store: this.name, finding: fact, advice });
      // A warning that nobody listens for still has to reach somebody, unless this is declared to be a playground.
      if (mode === 'on' && !events.hasListener('store.warned'))
        process.emitWarning(`${this.name}: ${fact} ${advice}`, 'HoldfastWarning');
    }
    await this.#checkFormat(link, marker);
    await this.quarantine.examine(this.#runner(link), server);
  }

  /** The form of what is kept there is written once; a later one than ours means a later Holdfast than this. */
  async #checkFormat(link: Link, marker: string): Promise<void> {
    const reply = await this.#context.onMarker(
      link,
      scripts.format,
      [marker],
      [String(STORE_FORMAT)],
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
