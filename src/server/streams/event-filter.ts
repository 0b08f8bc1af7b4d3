/** Which events a client gets to see: those it asks for, among those it may see. */
import { DEFAULT_TENANT } from '../../intents/intent.ts';
import { isAboutMember, targetOf } from '../../telemetry/about.ts';
import type { LoggedEvent } from '../../telemetry/event-log.ts';
import { LEVELS } from '../../telemetry/levels.ts';
import type { Caller } from '../http/route.ts';

export interface EventWish {
  /** Names, or their first parts; none for all. */
  readonly events?: readonly string[];
  /** The session or target that they are about. */
  readonly about?: string;
  /** The instance that they are about, or that tells of them: its id, its name, or how one of these begins. */
  readonly member?: string;
}

export interface EventFilter {
  /** The same for filters that let the same through. */
  readonly key: string;
  isWanted(event: LoggedEvent): boolean;
}

/** Of which tenants one may see events; `others`: also those that are of no tenant. */
type Sight = 'everything' | { readonly tenant: string; readonly others: boolean };

export function eventFilter(wish: EventWish, caller: Caller): EventFilter {
  const { about, member } = wish;
  const events = [...new Set(wish.events)].sort();
  const sight = sightOf(caller);
  return {
    key: JSON.stringify([events, about, member, sight]),
    isWanted: (event) =>
      maySee(sight, event) &&
      (events.length === 0 || events.some((name) => isCalled(event.event, name))) &&
      (about === undefined || targetOf(event) === about) &&
      (member === undefined || isAboutMember(event, member)),
  };
}

/** Whether there are events of that name, or whose names begin with it. */
export function isEventName(name: string): boolean {
  return Object.keys(LEVELS).some((known) => isCalled(known, name));
}

function isCalled(event: string, name: string): boolean {
  return event === name || event.startsWith(`${name}.`);
}

/** The same rule as for sessions: of no tenant and no administrator means of those who name none. */
function sightOf({ tenant, scope }: Caller): Sight {
  if (tenant !== null) return { tenant, others: false };
  return scope === 'v3:admin' ? 'everything' : { tenant: DEFAULT_TENANT, others: true };
}

function maySee(sight: Sight, event: LoggedEvent): boolean {
  if (sight === 'everything') return true;
  const { tenant } = event;
  if (tenant !== undefined) return tenant === sight.tenant;
  return sight.others && !Object.values(event).some(isForSession);
}

/** `instance/session`, as workers hold leases: the session may be of any tenant. */
const FOR_SESSION = /\/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

function isForSession(fact: unknown): boolean {
  return typeof fact === 'string' && FOR_SESSION.test(fact);
}
