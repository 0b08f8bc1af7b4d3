/**
 * Finds code that leaves the simulated world: real time, real chance, real input and output. It
 * makes a run that no seed repeats, or one that waits for what never comes.
 *
 * The clocks, timers and sources of chance that code reaches by name are replaced while a world
 * lives. `watchAll` also sees what code kept before that, and all input and output, through
 * `node:async_hooks`. That slows promises down, so only a few runs have it.
 */
import { createHook } from 'node:async_hooks';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers';
import timersPromises from 'node:timers/promises';

/** One use of something real, and where. */
export interface Escape {
  /** Such as `setTimeout`, or `the network`. */
  readonly api: string;
  /** The line of the user's code, as `file:line:column`; null if the stack has none. */
  readonly at: string | null;
  /** What to use in its place. */
  readonly instead: string;
}

const SLEEP = "the `clock` of setup: `await clock.sleep('5s')`, or `clock.after(ms, run)`";
const NOW = 'the `clock` of setup: `clock.now()`';
const CHANCE = 'the `random` of setup: `random.next()`, or `random.hex(32)`';
const SINK = 'the `sink` of setup, in place of the service';

/** By the names that `node:async_hooks` gives to resources: what began, and what to use instead. */
const RESOURCES: readonly (readonly [RegExp, string, string])[] = [
  [/^(Timeout|Immediate)$/, 'a real timer', SLEEP],
  [/^(TCP|PIPE|UDP|TLS|HTTP|QUIC|TTY)/, 'the network', SINK],
  [/^(GETADDRINFO|GETNAMEINFO|QUERYWRAP|DNS)/, 'DNS', SINK],
  [/^(FSREQ|FILEHANDLE|FSEVENT|STATWATCHER|DIRHANDLE)/, 'the file system', SINK],
  [/^PROCESSWRAP$/, 'a child process', SINK],
  [/^(WORKER|MESSAGEPORT)$/, 'a worker thread', 'the same code in this thread'],
  [/^(ZLIB)$/, 'a thread of zlib', 'its synchronous form, such as `gzipSync`'],
  [
    /^(RANDOM|PBKDF2|SCRYPT|KEY|SIGN|HASH|CIPHER|DERIVE|CHECKPRIME|VERIFY)\w*(REQUEST|JOB)$/,
    'a thread of node:crypto',
    'its synchronous form, such as `scryptSync`',
  ],
];

/** The folder of this package: files in it are not the user's code. */
const ROOT = new URL('../../', import.meta.url).pathname;
const NOT_OURS = /^(test|docs|examples|node_modules)\//;
/** Frames of a stack that are read: deep enough for code below several libraries. */
const FRAMES = 50;

/** An escape that is known only by its return. */
const UNNAMED = 'something real that it had waited for';

/** Whether another run, with `watchAll`, may know more. */
export function isUnnamed({ api }: Escape): boolean {
  return api === UNNAMED;
}

export interface EscapeWatchParts {
  /** Whether the code that runs now runs in a simulated world. */
  isInside(): boolean;
  /** Names of APIs that are let through; `escape`: all. */
  readonly allowed: ReadonlySet<string>;
  onEscape(found: Escape): void;
}

/** As they are before the first world. */
const { setTimeout: startTimer, clearTimeout: endTimer } = globalThis;

type AnyFunction = (this: unknown, ...args: unknown[]) => unknown;

/** Reports every escape, from `install` until the function that it returns is called. */
export class EscapeWatch {
  readonly #parts: EscapeWatchParts;
  readonly #restores: (() => void)[] = [];
  /** True while a guarded function runs: what it uses itself is no second escape. */
  #isTelling = false;

  constructor(parts: EscapeWatchParts) {
    this.#parts = parts;
  }

  install({ watchAll }: { watchAll: boolean }): () => void {
    this.#guardTimers();
    this.#guardClocks();
    this.#guardChance();
    this.#guard(globalThis, 'fetch', { instead: SINK, inert: () => new Promise(() => {}) });
    syncBuiltinESMExports();
    const hook = createHook({ init: (_, type) => this.#began(type) });
    if (watchAll) hook.enable();
    return () => {
      hook.disable();
      for (const restore of this.#restores.splice(0).reverse()) restore();
      syncBuiltinESMExports();
    };
  }

  /** Code that had waited for something real continues, and calls the simulated world. */
  cameFromOutside(): void {
    const instead = 'what setup is given, for time, chance and everything outside';
    this.#tell(UNNAMED, instead);
  }

  #guardTimers(): void {
    const never = () => new Promise(() => {});
    const timeout = { instead: SLEEP, inert: inertTimer };
    for (const object of [globalThis, timers]) {
      this.#guard(object, 'setTimeout', timeout);
      this.#guard(object, 'setInterval', timeout);
      this.#guard(object, 'setImmediate', { instead: SLEEP, inert: inertTimer });
    }
    for (const name of ['setTimeout', 'setImmediate'])
      this.#guard(timersPromises, name, { instead: SLEEP, inert: never });
    this.#guard(timersPromises.scheduler, 'wait', {
      api: 'scheduler.wait',
      instead: SLEEP,
      inert: never,
    });
    this.#guard(AbortSignal, 'timeout', {
      api: 'AbortSignal.timeout',
      instead: 'an AbortController, and `clock.after(ms, () => controller.abort())`',
      inert: () => new AbortController().signal,
    });
  }

  #guardClocks(): void {
    this.#guard(Date, 'now', { api: 'Date.now', instead: NOW });
    this.#guard(performance, 'now', { api: 'performance.now', instead: NOW });
    this.#guard(process.hrtime, 'bigint', { api: 'process.hrtime.bigint', instead: NOW });
    this.#guard(process, 'hrtime', { api: 'process.hrtime', instead: NOW });
    const RealDate = Date;
    const tell = (api: string) => this.#used(api, NOW);
    const GuardedDate: DateConstructor = new Proxy(RealDate, {
      construct: (target, args: [], newTarget): Date => {
        if (args.length === 0) tell('new Date()');
        return Reflect.construct(target, args, newTarget === GuardedDate ? target : newTarget);
      },
      apply: (target, self, args) => {
        tell('Date()');
        return Reflect.apply(target, self, args);
      },
    });
    globalThis.Date = GuardedDate;
    this.#restores.push(() => {
      globalThis.Date = RealDate;
    });
  }

  #guardChance(): void {
    this.#guard(Math, 'random', { api: 'Math.random', instead: CHANCE });
    for (const name of ['randomUUID', 'getRandomValues']) {
      this.#guard(globalThis.crypto, name, { instead: CHANCE });
      this.#guard(crypto, name, { instead: CHANCE });
    }
    for (const name of ['randomBytes', 'randomInt']) this.#guard(crypto, name, { instead: CHANCE });
  }

  /** `inert`: what is returned instead, so that nothing real begins. */
  #guard(
    object: object,
    name: string,
    how: { api?: string; instead: string; inert?: () => unknown },
  ): void {
    const { api = name, instead, inert } = how;
    const own = Object.getOwnPropertyDescriptor(object, name);
    const real: unknown = Reflect.get(object, name);
    if (typeof real !== 'function' || own?.configurable === false) return;
    const used = () => this.#used(api, instead);
    const guarded: AnyFunction = function guarded(...args) {
      const isStopped = used() && inert !== undefined;
      return isStopped ? inert() : Reflect.apply(real, this, args);
    };
    // Such as `setTimeout[util.promisify.custom]`.
    for (const key of Reflect.ownKeys(real)) {
      const descriptor = Object.getOwnPropertyDescriptor(real, key);
      if (descriptor !== undefined && key !== 'prototype')
        Object.defineProperty(guarded, key, { ...descriptor, configurable: true });
    }
    Object.defineProperty(object, name, { configurable: true, writable: true, value: guarded });
    this.#restores.push(() => {
      if (own === undefined) Reflect.deleteProperty(object, name);
      else Object.defineProperty(object, name, own);
    });
  }

  /** Whether code in a world has used what it may not. */
  #used(api: string, instead: string): boolean {
    return this.#parts.isInside() && this.#tell(api, instead);
  }

  /** False for what is allowed, and for what Holdfast does itself. */
  #tell(api: string, instead: string): boolean {
    const { allowed } = this.#parts;
    if (this.#isTelling || allowed.has(api) || allowed.has('escape')) return false;
    this.#isTelling = true;
    try {
      const { frames, isConsole } = stack();
      if (frames.length === 0 || isConsole) return false;
      this.#parts.onEscape({ api, at: frames[0] ?? null, instead });
      return true;
    } finally {
      this.#isTelling = false;
    }
  }

  #began(type: string): void {
    if (!this.#parts.isInside()) return;
    const [, api, instead] = RESOURCES.find(([pattern]) => pattern.test(type)) ?? [];
    if (api !== undefined && instead !== undefined) this.#tell(api, instead);
  }
}

/** A timer that never fires. */
function inertTimer(): unknown {
  const timer = startTimer(() => {}, 0);
  endTimer(timer);
  return timer;
}

/** The stack of the caller; of its frames, those of the user's code and its libraries. */
function stack(): { frames: string[]; isConsole: boolean } {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = FRAMES;
  const { stack: text = '' } = new Error('here');
  Error.stackTraceLimit = stackTraceLimit;
  return { frames: placesIn(text), isConsole: /node:internal\/console/.test(text) };
}

/** The places in a stack that are not in this package, the innermost first. */
export function placesIn(text: string): string[] {
  const lines = text.split('\n').filter((line) => /^\s+at (?!async )/.test(line));
  return lines.flatMap((line) => {
    const [, place] = /[ (]((?:file:\/\/)?\/[^()]+:\d+:\d+)\)?$/.exec(line) ?? [];
    const path = place?.replace(/^file:\/\//, '');
    if (path === undefined) return [];
    const isOurs = path.startsWith(ROOT) && !NOT_OURS.test(path.slice(ROOT.length));
    return isOurs ? [] : [path];
  });
}
