import { describe, expect, it } from 'vitest';
import { METRICS, PREFIX } from '../../src/server/metrics/metric-catalogue.ts';
import { Metrics } from '../../src/server/metrics/metrics.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { type Matcher, namedIn } from '../support/promql.ts';
import { readRules } from '../support/rules-file.ts';
import { readSource } from '../support/source-tree.ts';

// What is shown, and what wakes people, is made of metrics that there are: of their names, their labels and the values of these.

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

interface Dashboard {
  readonly schemaVersion: number;
  readonly uid: string;
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly {
      readonly name: string;
      readonly type: string;
      readonly definition?: string;
    }[];
  };
}

const dashboard = JSON.parse(readSource('docs/grafana/holdfast.json').text) as Dashboard;
const rules = readRules(readSource('docs/alerts/holdfast.rules.yml').text);
/** Those that Prometheus gives to every series. */
const SCRAPED = ['job', 'instance'];

/** Of the process itself: prom-client's, as they are told. */
async function processMetrics(): Promise<Set<string>> {
  const holdfast = { on: () => () => {}, census: () => new Map(), running: 0 };
  const text = await new Metrics(holdfast, new FakeClock()).text();
  return new Set(
    [...text.matchAll(/^# TYPE (holdfast_(?:nodejs|process)_\w+)/gm)].map(([, name = '']) => name),
  );
}

/** What is wrong with an expression; nothing if all that it names is there. */
function flawsOf(expr: string, ofProcess: ReadonlySet<string>): string[] {
  const { selectors, grouping } = namedIn(expr);
  const labels = new Set(SCRAPED);
  const flaws = selectors.length === 0 ? ['it names no metric'] : [];
  for (const { metric, matchers } of selectors) {
    const plain = metric.replace(/_(bucket|sum|count)$/, '');
    const entry = METRICS.find(({ name, type }) => {
      const full = PREFIX + name;
      return type === 'histogram' ? full === plain && metric !== plain : full === metric;
    });
    if (entry === undefined && !ofProcess.has(metric)) flaws.push(`there is no ${metric}`);
    for (const label of Object.keys(entry?.labels ?? {})) labels.add(label);
    if (metric.endsWith('_bucket')) labels.add('le');
    flaws.push(
      ...matchers.flatMap((matcher) => flawsOfMatcher(metric, entry?.labels ?? {}, matcher)),
    );
  }
  const strange = grouping.filter((label) => !labels.has(label));
  return [...flaws, ...strange.map((label) => `nothing in it has a label ${label}`)];
}

function flawsOfMatcher(
  metric: string,
  labels: Readonly<Record<string, readonly string[] | null>>,
  { label, values }: Matcher,
): string[] {
  if (SCRAPED.includes(label)) return [];
  if (!Object.hasOwn(labels, label)) return [`${metric} has no label ${label}`];
  const known = labels[label];
  return values
    .filter((value) => known !== null && !known?.includes(value))
    .map((value) => `${label} of ${metric} is never ${value}`);
}

/** As links to headings of a page have it. */
function anchorsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^#{2,} (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^a-z0-9 -]/g, '')
      .replaceAll(' ', '-'),
  );
}

describe('what is checked of expressions', () => {
  it.each([
    ['sum(rate(holdfast_leases_lost_total{reason="expired"}[5m]))', []],
    ['sum by (le, class) (rate(holdfast_lease_renew_duration_seconds_bucket[5m]))', []],
    ['max by (instance) (holdfast_nodejs_eventloop_lag_p99_seconds{job="$job"})', []],
    ['holdfast_lease_lost_total', ['there is no holdfast_lease_lost_total']],
    [
      'holdfast_lease_renew_duration_seconds > 1',
      ['there is no holdfast_lease_renew_duration_seconds'],
    ],
    ['holdfast_leases_held{kind="poll"}', ['holdfast_leases_held has no label kind']],
    ['holdfast_leases_held{class=~"poll|pool"}', ['class of holdfast_leases_held is never pool']],
    ['sum by (reason) (holdfast_leases_held)', ['nothing in it has a label reason']],
    ['up == 0', ['it names no metric']],
  ])('%s', async (expr, flaws) => {
    expect(flawsOf(expr, await processMetrics())).toEqual(flaws);
  });
});

describe('the dashboard', () => {
  const shown = dashboard.panels.filter(({ type }) => type !== 'row');

  it('is one that a current Grafana reads, on whichever data source is chosen', () => {
    expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(39);
    expect(dashboard.uid).toBe('holdfast');
    const variables = dashboard.templating.list.map(({ name, type }) => [name, type]);
    expect(variables).toEqual([
      ['datasource', 'datasource'],
      ['job', 'query'],
      ['instance', 'query'],
    ]);
    const sources = new Set(shown.map(({ datasource }) => datasource?.uid));
    expect([...sources]).toEqual([expect.stringMatching(/^\$\{datasource\}$/)]);
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
  });

  it('has its panels beside each other, and none over another', () => {
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)} ${y + Math.floor(i / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(dashboard.panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true);
  });

  it.each(shown.map((panel) => [panel.title, panel] as const))(
    '%s is made of metrics that there are',
    async (_, panel) => {
      expect(panel.targets?.length).toBeGreaterThan(0);
      const ofProcess = await processMetrics();
      for (const { expr, legendFormat } of panel.targets ?? []) {
        expect(flawsOf(expr, ofProcess), expr).toEqual([]);
        const { grouping } = namedIn(expr);
        for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
          expect(grouping, expr).toContain(label);
      }
    },
  );

  it('shows every metric of the catalogue, but for counts of what is shown as time, or by every event', () => {
    const all = shown.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)).join('\n');
    const missing = METRICS.map(({ name }) => name).filter((name) => !all.includes(PREFIX + name));
    expect(missing).toEqual(['events_total', 'lease_wait_duration_seconds', 'build_info']);
  });
});

describe('the alert rules', () => {
  it('have names of their own', () => {
    expect(rules.length).toBeGreaterThan(9);
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  });

  it.each(rules.map((rule) => [rule.alert, rule] as const))(
    '%s is made of metrics that there are, and says what to do',
    async (alert, rule) => {
      expect(flawsOf(rule.expr, await processMetrics())).toEqual([]);
      expect(['critical', 'warning']).toContain(rule.severity);
      const { summary = '', description = '', runbook = '' } = rule.annotations;
      expect(summary).not.toBe('');
      expect(description).not.toBe('');
      const { grouping } = namedIn(rule.expr);
      for (const [, label = ''] of `${summary} ${description}`.matchAll(/\$labels\.(\w+)/g))
        expect(grouping).toContain(label);
      const [path = '', anchor = ''] = runbook.split('#');
      expect(path).toBe('docs/operations.md');
      const page = readSource(path).text;
      expect(anchorsOf(page)).toContain(anchor);
      expect(page).toContain(`\`${alert}\``);
    },
  );
});
