import type { ApiEvent } from '../../../src/client/messages.ts';

/** Those behind the last one that was seen; all, if it is not among them any more. */
export function since(all: readonly ApiEvent[], last: ApiEvent | undefined): readonly ApiEvent[] {
  return last === undefined ? all : all.slice(all.lastIndexOf(last) + 1);
}
