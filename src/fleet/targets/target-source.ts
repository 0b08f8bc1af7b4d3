/** What a poller polls: the sessions in the store, or a list that its user gives. */
import type { Duration } from '../../core/duration.ts';
import { ConfigError } from '../../core/errors.ts';
import { checkTargetId } from '../../core/ids.ts';
import type { TargetSource } from '../member/coordination.ts';
import type { TargetFeed } from './target-feed.ts';
import { InvalidRecord, readEveryMs, type TargetRecord } from './target-record.ts';

/** What the handler is given: of a session, its fields and whatever else its record says. */
export interface Target {
  readonly id: string;
  readonly url?: string | undefined;
  /** How often it is polled; default: as the poller says. A handler is given it in milliseconds, as `everyMs`. */
  readonly every?: Duration | undefined;
  readonly everyMs?: number | undefined;
  readonly [field: string]: unknown;
}

export interface Targets extends TargetSource {
  get(id: string): Target | undefined;
  close(): void;
}

/** The sessions of kind `poll` that are not paused. */
export class SessionTargets implements Targets {
  readonly #watch: TargetFeed;
  readonly #onChanged: (id: string) => void;
  #version = 0;

  /** `onChanged` is called for every session that was added, changed or removed. */
  constructor(watch: TargetFeed, onChanged: (id: string) => void) {
    this.#watch = watch;
    this.#onChanged = onChanged;
  }

  get version(): number {
    return this.#version;
  }

  *ids(): Iterable<string> {
    for (const session of this.#watch.sessions.values()) if (isPolled(session)) yield session.id;
  }

  has(id: string): boolean {
    return isPolled(this.#watch.sessions.get(id));
  }

  get(id: string): Target | undefined {
    const session = this.#watch.sessions.get(id);
    if (session === undefined) return undefined;
    const { url, everyMs, data } = session;
    return { ...data, id, url, everyMs };
  }

  async refresh(): Promise<void> {
    const changed = await this.#watch.refresh();
    if (changed.size > 0) this.#version++;
    for (const id of changed) this.#onChanged(id);
  }

  async discover(): Promise<void> {
    await this.#watch.discover();
  }

  listen(onHint: () => void): Promise<() => void> {
    return this.#watch.listen(onHint);
  }

  close(): void {
    this.#watch.close();
  }
}

function isPolled(session: TargetRecord | undefined): boolean {
  return session?.kind === 'poll' && !session.isPaused;
}

/** A list that never changes. Every instance has to have the same one. */
export class ListedTargets implements Targets {
  readonly version = 0;
  readonly #targets: ReadonlyMap<string, Target>;

  constructor(targets: readonly Target[]) {
    for (const target of targets) checkTargetId(target?.id, 'targets: id');
    this.#targets = new Map(targets.map((target) => [target.id, withInterval(target)]));
    if (this.#targets.size < targets.length) {
      const rule = 'each target has an id of its own';
      throw new ConfigError({ field: 'targets', value: `${targets.length} targets`, rule });
    }
  }

  ids(): Iterable<string> {
    return this.#targets.keys();
  }

  has(id: string): boolean {
    return this.#targets.has(id);
  }

  get(id: string): Target | undefined {
    return this.#targets.get(id);
  }

  async refresh(): Promise<void> {}

  async discover(): Promise<void> {}

  async listen(): Promise<() => void> {
    return () => {};
  }

  close(): void {}
}

function withInterval(target: Target): Target {
  const everyMs = readEveryMs(target);
  if (everyMs === undefined) return target;
  if (!(everyMs instanceof InvalidRecord)) return { ...target, everyMs };
  const { field, rule } = everyMs;
  throw new ConfigError({ field: `targets: ${field}`, value: target[field], rule });
}
