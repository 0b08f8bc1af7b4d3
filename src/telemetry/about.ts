import { shortName } from '../core/short-name.ts';
import type { LoggedEvent } from './event-log.ts';

/** The target that an event is about, if it is about one. */
export function targetOf(event: LoggedEvent): string | undefined {
  const { target, session, leaseClass, key } = event;
  const found =
    target ?? session ?? (leaseClass === 'poll' ? key : actedOn(event, /^(target|session)\./));
  return typeof found === 'string' ? found : undefined;
}

/** The instances that an event names: the one that recorded it, and those it is about. */
export function instancesOf(event: LoggedEvent): string[] {
  const { instance, member, holder, successor, from } = event;
  const all = [instance, member, holder, successor, from, actedOn(event, /^member\./)];
  return all.filter((id) => typeof id === 'string');
}

/** The subject of an operator's action, if the action matches. */
function actedOn({ event, action, subject }: LoggedEvent, actions: RegExp): unknown {
  const isAct = event === 'operator.acted' && typeof action === 'string' && actions.test(action);
  return isAct ? subject : undefined;
}

/** Whether an event names an instance whose id or name is or begins with `text`. */
export function isAboutMember(event: LoggedEvent, text: string): boolean {
  return instancesOf(event).some((id) => id.startsWith(text) || shortName(id).startsWith(text));
}
