/** What happened in a time, as one page to keep: the same that `holdfast report` writes. */
import { z } from 'zod';
import { isName } from '../../core/ids.ts';
import { readWindow } from '../../incident/log-window.ts';
import { incidentReport } from '../../incident/report.ts';
import { reportPage } from '../../incident/report-page.ts';
import { type TimeRange, timeRange } from '../../incident/time-range.ts';
import { ZonedClock } from '../../incident/zoned-clock.ts';
import { type Route, route } from '../http/route.ts';
import type { ServerContext } from '../server-context.ts';

/** The newest entries of the log: a server that makes a report does nothing else meanwhile. */
const MAX_READ = 10_000;
const DEFAULT_MS = 3_600_000;

/** The page loads only what is in it, and runs no scripts. */
const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const TIME_RULE = 'must be a time with its date: 2026-01-31T03:10:00Z';
/** A time of day would be of the zone of the server, which the caller may not know. */
const timeSchema = z
  .string({ error: TIME_RULE })
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}.*(Z|[+-]\d{2}:?\d{2})$/i, { error: TIME_RULE })
  .optional();
const KEY_RULE = 'must be the key of a lease, or the id of a target';

const reportQuery = z.strictObject({
  from: timeSchema.meta({ description: 'The beginning; default one hour before the end.' }),
  to: timeSchema.meta({ description: 'The end; default now.' }),
  key: z
    .string({ error: KEY_RULE })
    .refine(isName, { error: KEY_RULE })
    .optional()
    .meta({ description: 'Only this key, or this target.' }),
  zone: z.string().max(64).optional().meta({
    description: 'The time zone of the page, such as `Europe/Berlin`; default that of the server.',
  }),
});

export function reportRoutes({ holdfast, clock }: ServerContext): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/v3/report',
      access: 'v3:read',
      tenants: 'no',
      group: 'events',
      summary: 'Download a report of an incident',
      description:
        'One HTML page from the shared log: who held what, gaps, who was uncertain or stood still, acts of operators, trouble of the store, ' +
        `and whether the log contradicts itself. It needs no network. It is made of the newest ${MAX_READ.toLocaleString('en')} entries; \`holdfast report\` reads all of the log.`,
      query: reportQuery,
      responses: { 200: { description: 'The page.', mediaType: 'text/html' } },
      problems: [],
      async handle({ query: { from, to, key, zone } }) {
        const madeAtMs = clock.wallMs();
        const range = asked({ from, to }, Math.ceil(madeAtMs / 1_000) * 1_000);
        const time = new ZonedClock(zone);
        const { fromMs } = range;
        const window = await readWindow(holdfast.log, { fromMs, most: MAX_READ });
        const { events, isTrimmed } = window;
        const report = incidentReport(events, { ...range, key, isTrimmed });
        const narrow = 'ask for a key, or a shorter time';
        return pageResponse(reportPage(report, { time, madeAtMs, narrow }), fromMs);
      },
    }),
  ];
}

function asked(text: { from?: string | undefined; to?: string | undefined }, nowMs: number) {
  const given: TimeRange | null = timeRange(text, nowMs, '');
  if (given === null) return { fromMs: nowMs - DEFAULT_MS, toMs: nowMs };
  return text.from === undefined ? { ...given, fromMs: given.toMs - DEFAULT_MS } : given;
}

function pageResponse(page: string, fromMs: number): Response {
  const name = `holdfast-${new Date(fromMs).toISOString().slice(0, 16).replace(/[T:]/g, '-')}.html`;
  return new Response(page, {
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Disposition': `attachment; filename="${name}"`,
      'Content-Security-Policy': POLICY,
    },
  });
}
