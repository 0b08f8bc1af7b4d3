// Every metric, as the catalogue of the server has it.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { pageOfEvent } from './events.mjs';
import { code, page, slugOf, table } from './page.mjs';

/** A label with more values than this has the names of something else, which has a page. */
const MOST_VALUES = 12;

export async function metricsPage(root) {
  const catalogue = pathToFileURL(join(root, 'dist/server/metrics/metric-catalogue.js')).href;
  const { METRICS, PREFIX } = await import(catalogue);
  const rows = METRICS.map((metric) => {
    const labels = Object.keys(metric.labels).map(code).join(', ');
    const kind = labels === '' ? `A ${metric.type}` : `A ${metric.type} by ${labels}`;
    return [code(PREFIX + metric.name), `${kind}. ${metric.help}`, fedBy(metric)];
  });
  const labelled = METRICS.flatMap(({ name, labels }) =>
    Object.entries(labels).map(([label, values]) => [
      `${code(label)} | ${said(values)}`,
      code(PREFIX + name),
    ]),
  );
  const buckets = METRICS.filter((metric) => metric.buckets !== undefined).map((metric) => [
    metric.buckets.join(', '),
    code(PREFIX + metric.name),
  ]);
  return page({
    title: 'Every metric',
    from: 'src/server/metrics/metric-catalogue.ts',
    intro: 'What `GET /metrics` has of Holdfast itself, from the catalogue that feeds it.',
    byHand: 'How to scrape it, and what the labels mean, is in [Metrics](../metrics.md).',
    body: [
      table(['metric', 'what it says', 'fed by'], rows),
      '## Labels',
      'Values come from fixed lists, and anything else becomes `other`.',
      table(['label', 'values', 'of'], together(labelled, ' | ')),
      '## Buckets',
      'Of the histograms, in seconds.',
      table(['upper bounds', 'of'], together(buckets)),
    ].join('\n\n'),
  });
}

function fedBy({ name, feeds, ask, isServers }) {
  if (name === 'events_total') return 'every event';
  if (feeds.length > 0) {
    const events = [...new Set(feeds.map(({ event }) => event))];
    return events
      .map((event) => `[\`${event}\`](${pageOfEvent(event)}.md#${slugOf(event)})`)
      .join(', ');
  }
  if (isServers) return 'the server';
  return ask === undefined ? 'the package' : 'asked at each scrape';
}

function said(values) {
  if (values === null) return 'limited where they come from';
  if (values.length > MOST_VALUES) return `${values.length} names: [every event](events.md)`;
  return values.map(code).join(', ');
}

/** Rows that say the same of several metrics are one. `between` parts what is said into cells. */
function together(rows, between) {
  const metrics = new Map();
  for (const [said, metric] of rows) metrics.set(said, [...(metrics.get(said) ?? []), metric]);
  return [...metrics].map(([said, names]) => {
    return [...(between === undefined ? [said] : said.split(between)), names.join(', ')];
  });
}
