/** Which events a client gets: those it asks for, among those that its token may see. */
import { DEFAULT_TENANT } from '../../intents/intent.ts';
import { isAboutMember, targetOf } from '../../telemetry/about.ts';
import type { LoggedEvent } from '../../telemetry/event-log.ts';
import { LEVELS } from '../../telemetry/levels.ts';
import type { Caller } from '../http/route.ts';

export interface EventQuery {
  /** Names of events, or the parts before the dot; absent for all. */
  readonly events?: readonly string[] | undefined;
  /** The session or target that the events are about. */
  readonly about?: string | undefined;
  /** The workflow that the events are about. */
  readonly workflow?: string | undefined;
  /** The instance that recorded the events, or that they are about: its id, name, or a prefix. */
  readonly member?: string | undefined;
}

export interface EventFilter {
  /** Equal for filters that pass the same events. */
  readonly key: string;
  passes(event: LoggedEvent): boolean;
}

/** The tenants whose events a caller may see; `others`: also events without a tenant. */
type Visibility = 'everything' | { readonly tenant: string; readonly others: boolean };

export function eventFilter(query: EventQuery, caller: Caller): EventFilter {
  const { about, workflow, member } = query;
  const events = [...new Set(query.events)].sort();
  const visibility = visibilityOf(caller);
  return {
    key: JSON.stringify([events, about, workflow ?? null, member, visibility]),
    passes: (event) =>
      isVisible(visibility, event) &&
      (events.length === 0 || events.some((name) => isCalled(event.event, name))) &&
      (about === undefined || targetOf(event) === about) &&
      (workflow === undefined || event.workflow === workflow) &&
      (member === undefined || isAboutMember(event, member)),
  };
}

/** Whether an event has this name, or the part before the dot is this name. */
export function isEventName(name: string): boolean {
  return Object.keys(LEVELS).some((known) => isCalled(known, name));
}

function isCalled(event: string, name: string): boolean {
  return event === name || event.startsWith(`${name}.`);
}

/** The same rule as for sessions: see `visibleTenant`. */
function visibilityOf({ tenant, scope }: Caller): Visibility {
  if (tenant !== null) return { tenant, others: false };
  return scope === 'v3:admin' ? 'everything' : { tenant: DEFAULT_TENANT, others: true };
}

function isVisible(visibility: Visibility, event: LoggedEvent): boolean {
  if (visibility === 'everything') return true;
  const { tenant } = event;
  if (tenant !== undefined) return tenant === visibility.tenant;
  return visibility.others && !Object.values(event).some(isSessionHolder);
}

/** `instance/session`, the holder of a worker's leases. The session may belong to any tenant. */
const SESSION_HOLDER = /\/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

function isSessionHolder(fact: unknown): boolean {
  return typeof fact === 'string' && SESSION_HOLDER.test(fact);
}
