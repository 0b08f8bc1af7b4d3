/** Past events, the latest first. */
import { z } from 'zod';
import type { EventLog, LoggedEvent } from '../../telemetry/event-log.ts';
import { fieldSentence } from '../http/input.ts';
import { Problem } from '../http/problem.ts';
import { type Route, route } from '../http/route.ts';
import type { ServerContext } from '../server-context.ts';
import { type EventFilter, eventFilter } from '../streams/event-filter.ts';
import { EITHER, eventQuery, isEither, POSITION, queryFields } from './events.ts';
import { limitSchema } from './json/schemas.ts';

/** One request searches at most this many entries of the log. The next request continues there. */
const MAX_SEARCHED = 5_000;
const LOG_PAGE = 1_000;
/** More than in other lists: events are short and many. */
const DEFAULT_EVENTS = 200;
const BEFORE_RULE = 'must be the `before` of the previous page, or the position of an event';

const historyQuery = z
  .strictObject({
    ...queryFields,
    before: z
      .string({ error: BEFORE_RULE })
      .regex(POSITION, { error: BEFORE_RULE })
      .optional()
      .meta({ description: 'Continues after the previous page, or before any event.' }),
    limit: limitSchema.optional().meta({
      description: `Maximum number of events, from 1 to 1,000; default ${DEFAULT_EVENTS}.`,
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
      description: 'Continues on the next page. Absent on the last page.',
    }),
  })
  .meta({ id: 'HistoryPage' });

export function historyRoutes({ holdfast: { log } }: ServerContext): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/v3/history',
      access: 'v3:read',
      tenants: 'yes',
      group: 'events',
      summary: 'List past events',
      description:
        'The same events as in `/api/v3/events`, the latest first, as far back as the log goes. ' +
        'A page that is not the last may be short or empty, because one request searches only a part of the log.',
      query: historyQuery,
      responses: { 200: { description: 'One page.', body: historySchema } },
      problems: [],
      async handle({ query, caller }) {
        const { before, limit = DEFAULT_EVENTS } = query;
        const filter = eventFilter(eventQuery(query), caller);
        return { body: await readHistory(log, filter, before, limit) };
      },
    }),
  ];
}

function unknownPosition(): Problem {
  const errors = [{ field: 'before', rule: BEFORE_RULE }];
  return new Problem('invalid-request', { detail: fieldSentence('before', BEFORE_RULE), errors });
}

interface HistoryPage {
  readonly events: readonly LoggedEvent[];
  readonly before?: string | undefined;
}

async function readHistory(
  log: Pick<EventLog, 'recall'>,
  filter: EventFilter,
  before: string | undefined,
  limit: number,
): Promise<HistoryPage> {
  const events: LoggedEvent[] = [];
  let position = before;
  for (let searched = 0; searched < MAX_SEARCHED; searched += LOG_PAGE) {
    const page = await log.recall({ before: position, most: LOG_PAGE });
    // The log never had this position. Before one that it has dropped, there is simply nothing.
    if (page.gap && position === before) throw unknownPosition();
    for (const event of page.entries) {
      if (!filter.passes(event)) continue;
      events.push(event);
      if (events.length === limit) return { events, before: event.position };
    }
    if (!page.more || page.position === undefined) return { events };
    position = page.position;
  }
  return { events, before: position };
}
