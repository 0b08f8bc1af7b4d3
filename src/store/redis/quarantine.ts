/**
 * A Redis that was restarted, failed over or flushed may have forgotten grants whose holders still act. Until the
 * longest of those can have run out it makes no new grant; renewals go on, and holders put back what vanished.
 *
 * A marker in the store says which server it was that granted last (`run`, `replication`), since when it may have
 * forgotten (`since`), and the longest TTL each class has used. It is examined on every new connection before the first
 * acquire goes over it. Every examination that finds a difference begins a new *era*; acquire carries the era its sender
 * has examined, and a script that finds another one in the store grants nothing. So one client's finding, or a flush
 * that took the marker along, stops all of them.
 *
 * Not covered: a flush between two connections of which no running client remembers the era before it, and a server
 * whose clock is stepped. On a Cluster every primary is examined like this, with fields of its own in one marker; but
 * acquire can not carry the era there, so a flush is noticed where a lease vanishes or a connection is made anew.
 */
import type { Clock } from '../../base/clock.ts';
import type { Emitter } from '../../base/events.ts';
import type { Random } from '../../base/random.ts';
import type { ServerFacts } from './examination.ts';
import { type Script, scripts } from './scripts.ts';

/** Beyond the longest TTL: for the grace within which Redis expires keys, and for rounding. */
const MARGIN_MS = 1_000;

/** Runs the examination script where the marker is, on whatever connection is being examined. */
export type RunScript = (script: Script, keys: string[], args: string[]) => Promise<unknown>;

/** Why a connection that has been examined is examined again; nothing of it: another era was found in the store. */
export interface ExaminationCause {
  /** A lease vanished under its holder, and its fence record too. */
  readonly missing?: boolean;
  /** A class is going to use this TTL. */
  readonly use?: { readonly leaseClass: string; readonly ttlMs: number };
}

/** What examinations have taught about a store; it outlives connections, so that a vanished marker is noticed. */
export class Memory {
  origin = '';
  readonly longestTtlMs = new Map<string, number>();
}

export interface QuarantineOptions {
  readonly mode: 'on' | 'off';
  readonly store: string;
  readonly marker: string;
  readonly memory: Memory;
  /** Several servers share the marker, each with fields of its own: a Cluster. */
  readonly isShared: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
}

export class Quarantine {
  readonly #options: QuarantineOptions;
  #era = '';
  #forgotAtMs = 0;
  #server: ServerFacts | null = null;

  constructor(options: QuarantineOptions) {
    this.#options = options;
  }

  /** What an acquire has to present: the era examined, or '' where it is not asked for. */
  get era(): string {
    // On a Cluster no script can see both the marker and a lease: there only examinations find another era.
    return this.#options.mode === 'off' || this.#options.isShared ? '' : this.#era;
  }

  /** What a holder presents to put back what the store has forgotten, record and all: '' where that is not allowed. */
  get forgetting(): string {
    if (this.#options.mode === 'off') return '';
    return this.#options.isShared ? '*' : this.#era;
  }

  /** Examines the server behind a new connection. */
  async examine(run: RunScript, server: ServerFacts, cause: ExaminationCause = {}): Promise<void> {
    this.#server = server;
    if (this.#options.mode === 'on') await this.#compare(run, server, cause);
  }

  /** Again on the same connection, for a cause. */
  async reexamine(run: RunScript, cause: ExaminationCause): Promise<void> {
    if (this.#server !== null) await this.examine(run, this.#server, cause);
  }

  /** Whether the marker says that this class uses TTLs as long as this: it must, before the first such grant. */
  knows(leaseClass: string, ttlMs: number): boolean {
    return (
      this.#options.mode === 'off' ||
      ttlMs <= (this.#options.memory.longestTtlMs.get(leaseClass) ?? 0)
    );
  }

  /** For how long yet no new lease of a class may be granted; 0 for none. */
  leftMs(leaseClass: string): number {
    if (this.#options.mode === 'off') return 0;
    const untilMs =
      this.#forgotAtMs + (this.#options.memory.longestTtlMs.get(leaseClass) ?? 0) + MARGIN_MS;
    return Math.max(0, untilMs - this.#options.clock.monotonicMs());
  }

  async #compare(
    run: RunScript,
    server: ServerFacts,
    { missing, use }: ExaminationCause,
  ): Promise<void> {
    const { clock, events, marker, memory, random, store } = this.#options;
    const newEra = random.hex(12);
    const classes = [...memory.longestTtlMs].flatMap(([name, ttlMs]) => [name, String(ttlMs)]);
    if (use !== undefined) classes.push(use.leaseClass, String(use.ttlMs));
    const [origin, [verdict], ttls] = (await run(
      scripts.examine,
      [marker],
      [
        ...[newEra, this.#era, memory.origin, missing ? '1' : '0'],
        ...markerFields([server], this.#options.isShared),
        ...classes,
      ],
    )) as [string, [[string, number, string]], string[]];
    const [era, forgotMsAgo, why] = verdict;
    this.#era = era;
    memory.origin = origin;
    // Measured from the answer, later than the store meant: too long a wait is safe, too short is not.
    this.#forgotAtMs = clock.monotonicMs() - forgotMsAgo;
    for (let i = 0; i < ttls.length; i += 2) {
      const name = ttls[i] ?? '';
      const longestMs = Math.max(memory.longestTtlMs.get(name) ?? 0, Number(ttls[i + 1]));
      memory.longestTtlMs.set(name, longestMs);
    }
    if (era === newEra && why !== 'first use') events.emit('store.forgot', { store, why });
    for (const leaseClass of memory.longestTtlMs.keys()) {
      const leftMs = this.leftMs(leaseClass);
      if (leftMs > 0) events.emit('store.quarantined', { store, leaseClass, leftMs });
    }
  }
}

/**
 * Makes the marker of a Cluster that has never been used, with all of its servers at once: one that the marker has not
 * heard of when it comes later counts as having forgotten.
 */
export async function found(
  run: RunScript,
  { marker, memory, random }: Pick<QuarantineOptions, 'marker' | 'memory' | 'random'>,
  servers: readonly ServerFacts[],
): Promise<void> {
  const args = [random.hex(12), '', memory.origin, '0', ...markerFields(servers, true)];
  const [origin] = (await run(scripts.examine, [marker], args)) as [string];
  memory.origin = origin;
}

function markerFields(servers: readonly ServerFacts[], isShared: boolean): string[] {
  const fields = servers.flatMap(({ runId, replicationId, upMs }) => {
    return [isShared ? `${runId}:` : '', runId, replicationId, String(upMs)];
  });
  return [String(servers.length), ...fields];
}
