/** What happens to all instances, as it happens. */
import { z } from 'zod';
import { isName } from '../../core/ids.ts';
import { type Route, route } from '../http/route.ts';
import { type EventWish, eventFilter, isEventName } from '../streams/event-filter.ts';
import type { EventHub } from '../streams/event-hub.ts';
import { BEGINNING } from '../streams/event-window.ts';
import { idSchema } from './json/schemas.ts';

const EVENT_RULE = 'it is the name of an event, or the part of it before the dot';
const FROM_RULE = 'it is now or oldest';
const MEMBER_RULE = 'it is the id of an instance, its name, or how one of these begins';
const EITHER_RULE = 'it is another name of session: give one of them';
const MOST_NAMES = 50;

/** What a position may look like, of whatever store. What does not, no log has. */
export const POSITION = /^[A-Za-z0-9-]{1,64}$/;
const NOWHERE = '-';

/** Which events are wanted, as a query says it. */
export const wishFields = {
  event: z
    .union([z.string(), z.array(z.string()).max(MOST_NAMES)], { error: EVENT_RULE })
    .transform((names) => [names].flat())
    .pipe(z.array(z.string().refine(isEventName, { error: EVENT_RULE })))
    .optional()
    .meta({
      description: `Only these: ${EVENT_RULE}, as in \`lease.lost\` or \`session\`. Repeatable.`,
    }),
  session: idSchema.optional().meta({ description: 'Only what is about this session.' }),
  target: idSchema.optional().meta({ description: 'Another name of session.' }),
  member: z
    .string({ error: MEMBER_RULE })
    .refine(isName, { error: MEMBER_RULE })
    .optional()
    .meta({ description: `Only what an instance tells, or what is about it: ${MEMBER_RULE}.` }),
};

interface WishQuery {
  readonly event?: string[] | undefined;
  readonly session?: string | undefined;
  readonly target?: string | undefined;
  readonly member?: string | undefined;
}

export function isEither({ session, target }: WishQuery): boolean {
  return session === undefined || target === undefined;
}

export const EITHER = {
  path: ['target'],
  error: EITHER_RULE,
  when: ({ value }: { value: unknown }) => typeof value === 'object' && value !== null,
};

export function wishOf({ event: events, session, target, member }: WishQuery): EventWish {
  const about = session ?? target;
  return {
    ...(events !== undefined && { events }),
    ...(about !== undefined && { about }),
    ...(member !== undefined && { member }),
  };
}

const watchQuery = z
  .strictObject({
    ...wishFields,
    from: z
      .enum(['now', 'oldest'], { error: FROM_RULE })
      .optional()
      .meta({ description: 'Where to begin without `Last-Event-ID`; default now.' }),
  })
  .refine(isEither, EITHER);

export function eventRoutes({ hub }: { hub: EventHub }): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/v3/events',
      access: 'v3:read',
      tenants: 'yes',
      group: 'events',
      summary: 'Watch what happens',
      description:
        'Server-sent events, from the log that all instances share. `event` is the name, `data` the facts as JSON, `id` where to go on: ' +
        'sent back in the header `Last-Event-ID`, as browsers do by themselves, it brings everything since. ' +
        '`gap` says that something is missing, because the log no longer has it. `bye` says why the server ends it: `token-expired`, `closing`, ' +
        '`too-slow` (come back with the last id, and nothing is lost) or `failed`. ' +
        'A token of a tenant sees the events of that tenant only.',
      query: watchQuery,
      answers: {
        200: {
          description: 'A stream that does not end by itself.',
          mediaType: 'text/event-stream',
        },
      },
      problems: ['not-ready'],
      async handle({ query, caller, headers, signal }) {
        const filter = eventFilter(wishOf(query), caller);
        const position = positionOf(headers.get('last-event-id'), query.from);
        const stream = hub.watch({ filter, caller, position, signal });
        // Who has its answer may rely on it: what happens from then on, it is told.
        if (position === null) await hub.untilPlaced();
        return new Response(stream, { headers: STREAM_HEADERS });
      },
    }),
  ];
}

export const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  // Some proxies collect what they pass on, unless told not to.
  'X-Accel-Buffering': 'no',
};

/** Who comes back says where from: that counts for more than where it wanted to begin. */
function positionOf(lastEventId: string | null, from: 'now' | 'oldest' = 'now'): string | null {
  if (lastEventId !== null && lastEventId !== '')
    return POSITION.test(lastEventId) ? lastEventId : NOWHERE;
  return from === 'oldest' ? BEGINNING : null;
}
