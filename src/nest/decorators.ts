/**
 * Decorators for methods of Nest's providers and controllers. Each asks Nest to inject the Holdfast
 * of the application into the instance, so an application without `HoldfastModule` does not start.
 * They are plain functions for TypeScript's `experimentalDecorators`, which Nest needs itself.
 */
import { Inject, SetMetadata } from '@nestjs/common';
import { ConfigError } from '../core/errors.ts';
import { checkKey } from '../core/ids.ts';
import { Holdfast } from '../holdfast.ts';
import type { ElectOptions } from '../lease/election.ts';
import { checkOnceOptions, type OnceOptions, quarantineError } from '../lease/once.ts';
import { type AcquireOptions, checkAcquireOptions } from '../lease/options.ts';
import { runUnder } from './current-lease.ts';

export type AsyncMethod = (...args: never[]) => Promise<unknown>;

/** A decorator for a method that returns a promise. */
export type MethodGuard = <M extends AsyncMethod>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<M>,
) => void;

/** What `@Leader` leaves on its method. */
export interface LeaderMark {
  readonly election: string;
  readonly options: LeaderOptions;
}

export type LeaderOptions = Omit<ElectOptions, 'onElected'>;

/** Where Nest puts the Holdfast of the application on an instance. */
const HOLDFAST = Symbol('holdfast');
const LEADER = 'holdfast:leader';

interface Decorated {
  readonly [HOLDFAST]?: Holdfast;
}

type Call = (holdfast: Holdfast, args: readonly unknown[], work: () => unknown) => Promise<unknown>;

/**
 * Runs the method under a lease of `key`, or of what `key` makes of the method's arguments. A call
 * rejects with `LEASE_HELD` if another holder has the key; `wait` waits for it.
 */
export function WithLease(
  key: string | ((...args: never[]) => string),
  options: AcquireOptions = {},
): MethodGuard {
  if (typeof key !== 'function') checkKey(key);
  checkAcquireOptions(options);
  return guardedBy('@WithLease', (holdfast, args, work) => {
    const named: unknown = typeof key === 'function' ? Reflect.apply(key, undefined, args) : key;
    checkKey(named);
    return holdfast.withLease(named, (context) => runUnder(context, work), options);
  });
}

/**
 * Runs the method once in each period, on whichever instance comes first: for `@Cron`, on every
 * instance. A call that does not run the method resolves to `undefined`; it rejects with
 * `STORE_QUARANTINED` if no instance can run it now.
 */
export function OncePer(key: string, options: OnceOptions): MethodGuard {
  checkOnceOptions(key, options);
  return guardedBy('@OncePer', async (holdfast, _args, work) => {
    const result = await holdfast.once(key, options, (context) => runUnder(context, work));
    if (result.ok) return result.value;
    if (result.reason === 'quarantine') throw quarantineError(result);
    return undefined;
  });
}

/**
 * Calls the method on one of all instances, the leader of `election`, without arguments. It may run
 * for as long as it leads, or return at once. `currentLease().signal` fires when leadership ends;
 * another instance leads after the method has returned.
 */
export function Leader(election: string, options: LeaderOptions = {}): MethodGuard {
  checkKey(election, 'election');
  const mark: LeaderMark = { election, options };
  return (target, name, descriptor) => {
    checkMethod('@Leader', target, name, descriptor);
    SetMetadata(LEADER, mark)(target, name, descriptor);
  };
}

/** What `@Leader` has left on a method. */
export function leaderMarkOf(method: object): LeaderMark | undefined {
  return Reflect.getMetadata(LEADER, method) as LeaderMark | undefined;
}

/** Replaces a method by one that `call` calls. */
function guardedBy(decorator: string, call: Call): MethodGuard {
  return (target: object, name: string | symbol, descriptor: PropertyDescriptor): void => {
    checkMethod(decorator, target, name, descriptor);
    const method: object & CallableFunction = descriptor.value;
    Inject(Holdfast)(target, HOLDFAST);
    async function guarded(this: Decorated, ...args: unknown[]): Promise<unknown> {
      const { [HOLDFAST]: holdfast } = this;
      if (holdfast === undefined) throw notInjected(decorator, target, name);
      return call(holdfast, args, () => Reflect.apply(method, this, args));
    }
    // Other decorators have left metadata on the method, and Nest looks for it on what is called.
    for (const key of Reflect.getMetadataKeys(method))
      Reflect.defineMetadata(key, Reflect.getMetadata(key, method), guarded);
    Object.defineProperty(guarded, 'name', { value: method.name, configurable: true });
    descriptor.value = guarded;
  };
}

/**
 * With standard decorators, `name` is a context object, and a decorator cannot ask Nest for an
 * injection.
 */
function checkMethod(
  decorator: string,
  target: object,
  name: unknown,
  descriptor: PropertyDescriptor | undefined,
): void {
  if (typeof name === 'object' || descriptor === undefined) {
    const rule =
      'Nest needs the decorators of TypeScript before version 5: set "experimentalDecorators": true in tsconfig.json';
    throw new ConfigError({ field: decorator, value: name, rule });
  }
  if (typeof target === 'object' && typeof descriptor.value === 'function') return;
  const rule = 'it decorates a method of an instance: not a static one, an accessor or a field';
  throw new ConfigError({ field: decorator, value: name, rule });
}

function notInjected(decorator: string, target: object, name: string | symbol): ConfigError {
  const rule =
    'this instance was not made by Nest: list its class among the providers of a module, and import HoldfastModule.forRoot() in the application';
  const value = `${target.constructor.name}.${String(name)}`;
  return new ConfigError({ field: decorator, value, rule });
}
