/** The instances under test: real processes, each behind a proxy of its own for every server there is. */
import { join } from 'node:path';
import { type Child, spawnChild } from '../test/support/child.ts';
import { type Home, LOOPBACK } from '../test/support/home.ts';
import { FaultProxy } from '../testing/fakes/fault-proxy.ts';
import type { HistoryFile } from './history.ts';
import type { Network } from './network.ts';
import { EVERY_MS, READ_MS, STANDSTILL_MS, TTL_MS } from './timings.ts';

const READY_DEADLINE_MS = 30_000;
/** A stop lets polls finish, hands over, and writes the last results: 10 s and 2 s at most by default. */
const STOP_DEADLINE_MS = 20_000;
/** The longest a timer can wait: longer than any run. */
const NEVER_MS = 2 ** 31 - 1;

export type Variant = 'holdfast' | 'naive';

const SCRIPTS: Readonly<Record<Variant, URL>> = {
  holdfast: new URL('./children/instance.mjs', import.meta.url),
  naive: new URL('./children/naive.mjs', import.meta.url),
};

export interface Instance {
  readonly name: string;
  readonly id: string;
  readonly child: Child;
  /** Between it and each server. */
  readonly links: readonly FaultProxy[];
  readonly home: Home;
  /** What the nemesis is doing to it, so that it does not do two things of a kind at once. */
  readonly afflictions: Set<'process' | 'link'>;
}

/** How an instance reaches the store. */
export interface Way {
  readonly url: string;
  /** The addresses of the store's database for transactions of a user's own, if it is one. */
  readonly databases?: readonly string[];
}

export interface CrewParts {
  readonly variant: Variant;
  /** Instances take them in turn. */
  readonly ways: readonly Way[];
  readonly ports: readonly number[];
  readonly targets: readonly string[];
  readonly sink: string;
  /** The target servers' address, by target. Without them a poll is a pause. */
  readonly targetUrls?: Readonly<Record<string, string>>;
  readonly network?: Network | undefined;
  readonly folder: string;
  readonly history: HistoryFile;
}

export class Crew {
  /** Those that run. */
  readonly instances = new Set<Instance>();
  readonly #parts: CrewParts;
  #started = 0;
  #isOver = false;

  constructor(parts: CrewParts) {
    this.#parts = parts;
  }

  /** Starts one, and waits until it has opened its store. */
  async start(): Promise<void> {
    const { variant, ways, ports, targets, sink, folder, history, network } = this.#parts;
    const way = ways[this.#started % ways.length];
    this.#started += 1;
    const name = `i${this.#started}`;
    const links = await Promise.all(
      ports.map((port) => FaultProxy.start({ target: { host: '127.0.0.1', port } })),
    );
    const home = (await network?.instance()) ?? LOOPBACK;
    const settings = {
      name,
      ...way,
      check: variant === 'naive' ? 'naive' : 'guard',
      targets,
      sink,
      targetUrls: this.#parts.targetUrls,
      history: join(folder, `${name}.jsonl`),
      ports: Object.fromEntries(ports.map((port, i) => [port, links[i]?.port])),
      ttlMs: TTL_MS,
      everyMs: EVERY_MS,
      readMs: READ_MS,
      standstillMs: STANDSTILL_MS,
    };
    // With a database, only the check of its transactions is naive.
    const script = way?.databases === undefined ? SCRIPTS[variant] : SCRIPTS.holdfast;
    const { enter } = home;
    const child = spawnChild(script.href, { args: [JSON.stringify(settings)], enter });
    const closeLinks = () =>
      Promise.all([...links.map((link) => link.close()), network?.remove(home)]);
    try {
      const { id } = await child.next('ready', READY_DEADLINE_MS);
      const instance = { name, id: String(id), child, links, home, afflictions: new Set<never>() };
      if (this.#isOver) throw new Error('the run is over');
      this.instances.add(instance);
      history.write('harness', 'instance.started', { instance: instance.id });
      void this.#watch(instance).then(closeLinks);
    } catch (error) {
      await child.kill();
      await closeLinks();
      throw error;
    }
  }

  /** `kill -9`. */
  async kill(instance: Instance): Promise<void> {
    this.#dismiss(instance);
    await instance.child.kill();
  }

  /** SIGTERM: it hands everything over, and ends with 0. One that does not is a crash. */
  async stop(instance: Instance): Promise<void> {
    this.#dismiss(instance);
    instance.child.signal('SIGTERM');
    const { id: who, child } = instance;
    const { code, signal } = await child.exit(STOP_DEADLINE_MS).catch(() => child.kill());
    if (code !== 0) this.#complain(who, `told to stop, it ended with ${signal ?? code}`);
  }

  /** Ends them all, and starts no more. */
  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all([...this.instances].map((instance) => this.kill(instance)));
  }

  /** From here on, its end is no surprise. */
  #dismiss(instance: Instance): void {
    this.instances.delete(instance);
  }

  async #watch(instance: Instance): Promise<void> {
    const { code, signal } = await instance.child.exit(NEVER_MS);
    const isSurprise = this.instances.delete(instance);
    this.#parts.history.write('harness', 'instance.gone', { instance: instance.id });
    if (isSurprise) this.#complain(instance.id, `${signal ?? code}: ${instance.child.stderr}`);
  }

  #complain(instance: string, error: string): void {
    this.#parts.history.write('harness', 'instance.crashed', { instance, error });
  }
}
