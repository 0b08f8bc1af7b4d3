import { shortName } from '../base/ids.ts';
import type { LoggedEvent } from './event-log.ts';

/** The target that an event is about, if it is about one. */
export function targetOf({ target, session, leaseClass, key }: LoggedEvent): string | undefined {
  const found = target ?? session ?? (leaseClass === 'poll' ? key : undefined);
  return typeof found === 'string' ? found : undefined;
}

/** The instances that an event names: who tells of it, and whom it is about. */
export function instancesOf({ instance, member, holder, successor }: LoggedEvent): string[] {
  return [instance, member, holder, successor].filter((id) => typeof id === 'string');
}

/** Does it name an instance that is called so, or whose name begins so? */
export function isAboutMember(event: LoggedEvent, text: string): boolean {
  return instancesOf(event).some((id) => id.startsWith(text) || shortName(id).startsWith(text));
}
