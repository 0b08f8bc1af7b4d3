/** Calls of redlock 4 on the class of redlock 5: each throws one sentence, not a TypeError. */
import { CallNotOfferedError } from './errors.ts';

const CALLS: Readonly<Record<string, string>> = {
  lock: "acquire(['a'], ttl)",
  lockWithOptions: "acquire(['a'], ttl, settings)",
  acquireWithOptions: "acquire(['a'], ttl, settings)",
  unlock: 'release(lock)',
  disposer: "using(['a'], ttl, async (signal) => …)",
};

/** Defines the calls of redlock 4 on a prototype, such that they are listed nowhere. */
export function refuseFormerCalls(prototype: object, names: readonly string[]): void {
  for (const call of names) {
    const value = () => {
      throw new CallNotOfferedError({ call: `${call}()`, instead: either(`call ${CALLS[call]}`) });
    };
    Object.defineProperty(prototype, call, { value, configurable: true, writable: true });
  }
}

/** The same for a static field. */
export function refuseFormerField(type: object, name: string, instead: string): void {
  const get = () => {
    throw new CallNotOfferedError({ call: name, instead: either(instead) });
  };
  Object.defineProperty(type, name, { get, configurable: true });
}

/** Throws for an event that is never emitted here. */
export function checkEvent(name: string | symbol): void {
  if (name !== 'clientError') return;
  throw new CallNotOfferedError({
    call: "the event 'clientError'",
    instead: either("listen to 'error'"),
  });
}

function either(instead: string): string {
  return `${instead}, or import Redlock from 'holdfast/redlock4'`;
}
