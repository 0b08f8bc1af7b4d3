/** What has happened, from the latest back: for those who come later. */
import { z } from 'zod';
import type { EventLog, LoggedEvent } from '../../telemetry/event-log.ts';
import { Problem } from '../http/problem.ts';
import { type Route, route } from '../http/route.ts';
import { type EventFilter, eventFilter } from '../streams/event-filter.ts';
import { EITHER, isEither, POSITION, wishFields, wishOf } from './events.ts';
import { limitSchema } from './json/schemas.ts';

/** So many entries of the log are looked at for one request, however few of them are wanted; the next goes on there. */
const MOST_LOOKED_AT = 5_000;
const LOG_PAGE = 1_000;
/** More than of other lists: events are short, and many. */
const DEFAULT_EVENTS = 200;
const BEFORE_RULE = 'it is where the page before ended, as that had it';

const historyQuery = z
  .strictObject({
    ...wishFields,
    before: z
      .string({ error: BEFORE_RULE })
      .regex(POSITION, { error: BEFORE_RULE })
      .optional()
      .meta({ description: 'To go on where the page before ended, or before any event.' }),
    limit: limitSchema.optional().meta({
      description: `How many at most, from 1 to 1,000; default ${DEFAULT_EVENTS}.`,
    }),
  })
  .refine(isEither, EITHER);

export const historySchema = z
  .object({
    events: z
      .array(
        z.looseObject({
          position: z.string(),
          at: z.number(),
          instance: z.string(),
          event: z.string(),
        }),
      )
      .meta({ description: 'The latest first.' }),
    before: z.string().optional().meta({
      description: 'Where to go on. Absent: there is nothing more.',
    }),
  })
  .meta({ id: 'HistoryPage' });

export function historyRoute({ log }: { log: Pick<EventLog, 'recall'> }): Route {
  return route({
    method: 'GET',
    path: '/api/v3/history',
    access: 'v3:read',
    tenants: 'yes',
    group: 'events',
    summary: 'What has happened',
    description:
      'The same events that can be watched, the latest first, as far back as the log goes. ' +
      'A page may be short, or empty, and yet not the last: only so much of the log is searched at a time.',
    query: historyQuery,
    answers: { 200: { description: 'One page.', body: historySchema } },
    problems: [],
    async handle({ query, caller }) {
      const { before, limit = DEFAULT_EVENTS } = query;
      const filter = eventFilter(wishOf(query), caller);
      return { body: await recall(log, filter, { before, limit }) };
    },
  });
}

function unknownPlace(): Problem {
  const errors = [{ field: 'before', rule: BEFORE_RULE }];
  return new Problem('invalid-request', { detail: `before: ${BEFORE_RULE}`, errors });
}

interface HistoryPage {
  readonly events: readonly LoggedEvent[];
  readonly before?: string;
}

async function recall(
  log: Pick<EventLog, 'recall'>,
  filter: EventFilter,
  { before, limit }: { before: string | undefined; limit: number },
): Promise<HistoryPage> {
  const events: LoggedEvent[] = [];
  let place = before;
  for (let looked = 0; looked < MOST_LOOKED_AT; looked += LOG_PAGE) {
    const from = place === undefined ? {} : { before: place };
    const page = await log.recall({ ...from, most: LOG_PAGE });
    // No position of this log; one that was, and is forgotten, has simply nothing before it.
    if (page.gap && place === before) throw unknownPlace();
    for (const event of page.entries) {
      if (!filter.isWanted(event)) continue;
      events.push(event);
      if (events.length === limit) return { events, before: event.position };
    }
    if (!page.more || page.position === undefined) return { events };
    place = page.position;
  }
  return { events, ...(place !== undefined && { before: place }) };
}
