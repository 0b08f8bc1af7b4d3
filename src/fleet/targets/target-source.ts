/** The targets of a poller: those in the store, or a list that the user gives. */
import type { Duration } from '../../core/duration.ts';
import { ConfigError } from '../../core/errors.ts';
import { checkTargetId } from '../../core/ids.ts';
import {
  InvalidRecord,
  readCommand,
  readEveryMs,
  readTimeoutMs,
  type TargetRecord,
} from './target-record.ts';
import type { TargetWatch } from './target-watch.ts';

/** What a poll handler is given: the fields of the target, and everything else in its record. */
export interface Target {
  readonly id: string;
  readonly url?: string | undefined;
  /** How often it is polled; default: the poller's `every`. Handlers get it as `everyMs`. */
  readonly every?: Duration | undefined;
  readonly everyMs?: number | undefined;
  /** How long one poll may take; default: the poller's `timeout`. Handlers get `timeoutMs`. */
  readonly timeout?: Duration | undefined;
  readonly timeoutMs?: number | undefined;
  /** The name of the command that a runner runs for it; default: the runner's own. */
  readonly command?: string | undefined;
  readonly [field: string]: unknown;
}

/** The targets that the members of a fleet share. */
export interface TargetSource {
  /** The ids of the targets that are to be polled. */
  ids(): Iterable<string>;
  has(id: string): boolean;
  get(id: string): Target | undefined;
  /** The command that the target names. */
  commandOf(id: string): string | undefined;
  /** Counts the changes. */
  readonly version: number;
  /** Reads the targets that changed. */
  refresh(): Promise<void>;
  /** Finds targets that other programs have written. */
  discover(): Promise<void>;
  /** Calls back when a refresh may find a change. Returns a function that ends that. */
  listen(onHint: () => void): Promise<() => void>;
  close(): void;
}

/** The targets in the store: records of kind `poll` that are not paused. */
export class StoredTargetSet implements TargetSource {
  readonly #watch: TargetWatch;
  readonly #onChanged: (id: string) => void;
  #version = 0;

  /** `onChanged` is called for every target that was added, changed or removed. */
  constructor(watch: TargetWatch, onChanged: (id: string) => void) {
    this.#watch = watch;
    this.#onChanged = onChanged;
  }

  get version(): number {
    return this.#version;
  }

  *ids(): Iterable<string> {
    for (const record of this.#watch.records.values()) if (isPolled(record)) yield record.id;
  }

  has(id: string): boolean {
    return isPolled(this.#watch.records.get(id));
  }

  /** Also a paused target. */
  get(id: string): Target | undefined {
    const record = this.#watch.records.get(id);
    if (record === undefined) return undefined;
    const { url, everyMs, timeoutMs, command, data } = record;
    const target: Target = { ...data, id, url, everyMs };
    if (timeoutMs === undefined && command === undefined) return target;
    return { ...target, timeoutMs, command };
  }

  commandOf(id: string): string | undefined {
    return this.#watch.records.get(id)?.command;
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

function isPolled(record: TargetRecord | undefined): boolean {
  return record?.kind === 'poll' && !record.isPaused;
}

/** A list that never changes. Every instance needs the same one. */
export function listedTargets(targets: readonly Target[]): TargetSource {
  for (const target of targets) checkTargetId(target?.id, 'targets: id');
  const byId = new Map(targets.map((target) => [target.id, checkedTarget(target)]));
  if (byId.size < targets.length) {
    const rule = 'each target has an id of its own';
    throw new ConfigError({ field: 'targets', value: `${targets.length} targets`, rule });
  }
  return {
    version: 0,
    ids: () => byId.keys(),
    has: (id) => byId.has(id),
    get: (id) => byId.get(id),
    commandOf: (id) => byId.get(id)?.command,
    refresh: async () => {},
    discover: async () => {},
    listen: async () => () => {},
    close: () => {},
  };
}

function checkedTarget(target: Target): Target {
  valid(target, readCommand(target));
  const everyMs = valid(target, readEveryMs(target));
  const timeoutMs = valid(target, readTimeoutMs(target));
  if (everyMs === undefined && timeoutMs === undefined) return target;
  return { ...target, everyMs, timeoutMs };
}

function valid<T>(target: Target, read: T | InvalidRecord): T {
  if (!(read instanceof InvalidRecord)) return read;
  const { field, rule } = read;
  throw new ConfigError({ field: `targets: ${field}`, value: target[field], rule });
}
