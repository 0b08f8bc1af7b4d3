/** The events of all instances, as they happen. */
import { z } from 'zod';
import { isName } from '../../core/ids.ts';
import { type Route, route } from '../http/route.ts';
import type { ServerContext } from '../server-context.ts';
import { BEGINNING } from '../streams/event-cache.ts';
import { type EventQuery, eventFilter, isEventName } from '../streams/event-filter.ts';
import { idSchema } from './json/schemas.ts';

const EVENT_RULE = 'must be the name of an event, or the part of it before the dot';
const FROM_RULE = 'must be now or oldest';
const INSTANCE_RULE = 'must be the id or the name of an instance, or a prefix of one';
const EITHER_RULE = 'is another name of session: send only one of them';
const MAX_NAMES = 50;

/** The form of positions in all stores. No log has a position of another form. */
export const POSITION = /^[A-Za-z0-9-]{1,64}$/;
const UNKNOWN_POSITION = '-';

/** The filter fields of a query. */
export const queryFields = {
  event: z
    .union([z.string(), z.array(z.string()).max(MAX_NAMES)], { error: EVENT_RULE })
    .transform((names) => [names].flat())
    .pipe(z.array(z.string().refine(isEventName, { error: EVENT_RULE })))
    .optional()
    .meta({
      description:
        'Only these events: a name, or the part before the dot, as in `lease.lost` or `session`. Repeatable.',
    }),
  session: idSchema.optional().meta({ description: 'Only events about this session or target.' }),
  target: idSchema.optional().meta({ description: 'The same as `session`.' }),
  workflow: idSchema.optional().meta({ description: 'Only events about this workflow.' }),
  member: z
    .string({ error: INSTANCE_RULE })
    .refine(isName, { error: INSTANCE_RULE })
    .optional()
    .meta({
      description:
        'Only events of this instance, or about it: its id, its name, or a prefix of one.',
    }),
};

interface QueryFields {
  readonly event?: string[] | undefined;
  readonly session?: string | undefined;
  readonly target?: string | undefined;
  readonly workflow?: string | undefined;
  readonly member?: string | undefined;
}

export function isEither({ session, target }: QueryFields): boolean {
  return session === undefined || target === undefined;
}

export const EITHER = {
  path: ['target'],
  error: EITHER_RULE,
  when: ({ value }: { value: unknown }) => typeof value === 'object' && value !== null,
};

export function eventQuery(query: QueryFields): EventQuery {
  const { event: events, session, target, workflow, member } = query;
  return { events, about: session ?? target, workflow, member };
}

const watchQuery = z
  .strictObject({
    ...queryFields,
    from: z
      .enum(['now', 'oldest'], { error: FROM_RULE })
      .optional()
      .meta({ description: 'Where to begin without `Last-Event-ID`; default now.' }),
  })
  .refine(isEither, EITHER);

export function eventRoutes({ eventStream }: ServerContext): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/v3/events',
      access: 'v3:read',
      tenants: 'yes',
      group: 'events',
      summary: 'Watch events',
      description:
        'Server-sent events from the log that all instances share. `event` is the name, `data` the facts as JSON, and `id` the position. ' +
        'A client that reconnects sends the last id in the header `Last-Event-ID`, as browsers do automatically, and gets everything since. ' +
        '`gap` means that the log no longer has some of the events. `bye` says why the server ends the stream: `token-expired`, `closing`, ' +
        '`too-slow` (reconnect with the last id, and nothing is lost) or `failed`. ' +
        'A token of a tenant sees only the events of that tenant.',
      query: watchQuery,
      responses: {
        200: {
          description: 'A stream that stays open.',
          mediaType: 'text/event-stream',
        },
      },
      problems: ['not-ready'],
      async handle({ query, caller, headers, signal }) {
        const filter = eventFilter(eventQuery(query), caller);
        const position = positionOf(headers.get('last-event-id'), query.from);
        const stream = eventStream.watch({ filter, caller, position, signal });
        // After its response has begun, a client gets every event that happens.
        if (position === null) await eventStream.untilPositioned();
        return new Response(stream, { headers: STREAM_HEADERS });
      },
    }),
  ];
}

export const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  // Some proxies buffer responses unless they are told not to.
  'X-Accel-Buffering': 'no',
};

/** `Last-Event-ID` wins over `from`: the client reconnects. */
function positionOf(lastEventId: string | null, from: 'now' | 'oldest' = 'now'): string | null {
  if (lastEventId !== null && lastEventId !== '')
    return POSITION.test(lastEventId) ? lastEventId : UNKNOWN_POSITION;
  return from === 'oldest' ? BEGINNING : null;
}
