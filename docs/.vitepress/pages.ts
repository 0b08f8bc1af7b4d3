/** Every page, once, in the order of the site. `test/site/pages.test.ts` finds a page that is missing here. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface PageGroup {
  readonly title: string;
  /** Shown closed, unless it has the page that is read. */
  readonly isFolded?: true;
  readonly pages: readonly (Page | PageGroup)[];
}

/** A path below `docs/`, without its `.md`, and what it is called in the list. */
export type Page = readonly [path: string, title: string];

/** The shape that VitePress wants. */
interface SidebarItem {
  text: string;
  link?: string;
  collapsed?: boolean;
  items?: SidebarItem[];
}

const START: PageGroup = {
  title: 'Start',
  pages: [
    ['getting-started', 'Getting started'],
    ['which-part', 'Which part do I need?'],
    ['faq', 'FAQ, by error text'],
    ['typescript', 'TypeScript'],
    ['ci', 'Continuous integration'],
    ['examples', 'Examples'],
    ['glossary', 'Glossary'],
    ['comparison', 'Comparison'],
    {
      title: 'Coming from …',
      isFolded: true,
      pages: [
        ['coming-from/redlock', 'redlock'],
        ['coming-from/redis-semaphore', 'redis-semaphore'],
        ['coming-from/bullmq', 'BullMQ'],
        ['coming-from/client-go', 'client-go leader election'],
        ['coming-from/cron', 'node-cron and ShedLock'],
        ['coming-from/advisory-locks', 'Advisory locks'],
        ['coming-from/lease-rows', 'Lease rows made by hand'],
      ],
    },
  ],
};

const GUIDES: PageGroup = {
  title: 'Guides',
  pages: [
    ['guides/cron', 'Run a cron job once'],
    ['guides/leader', 'Elect a leader'],
    ['guides/polling', 'Share polling'],
    ['guides/connections', 'Hold a long connection'],
    ['guides/concurrency', 'Limit concurrency'],
    ['guides/orders', 'Run an order workflow'],
    ['guides/on-request', 'Start work on request'],
    ['guides/cores', 'Use several cores'],
    ['guides/fencing', 'Fence a database'],
    ['guides/nest', 'Use it in NestJS'],
    ['guides/web-frameworks', 'Use it in Express, Fastify and Next'],
    ['guides/bullmq', 'Limit BullMQ jobs per key'],
    ['guides/kubernetes', 'Run in Kubernetes'],
    ['guides/systemd', 'Run under systemd'],
    ['guides/testing', 'Test your own code'],
    ['guides/simulation', 'Test handlers under faults'],
  ],
};

const CONCEPTS: PageGroup = {
  title: 'Concepts',
  pages: [
    ['concepts/why-leases-fail', 'Why leases fail'],
    ['concepts/fences', 'What a fence is'],
    ['concepts/quarantine', 'What the quarantine does'],
    ['guarantees', 'Guarantees'],
    ['guarantees-tests', 'What shows them'],
    ['concepts/model', 'The formal model'],
    ['bugs', 'Bugs you will not have'],
    ['mutants', 'Mutation testing'],
  ],
};

const OPERATION: PageGroup = {
  title: 'Operation',
  pages: [
    ['operations', 'Operations'],
    ['page', 'The dashboard'],
    ['incidents', 'After an incident'],
    ['redis', 'Redis and Valkey'],
    ['redis-links', 'Redis connections'],
    ['postgres', 'PostgreSQL'],
    ['sqlite', 'SQLite'],
    ['moving-stores', 'Move to another store'],
    ['timings', 'Timings'],
    ['retention', 'Retention'],
    ['scale', 'How far it scales'],
    ['upgrading', 'Upgrading'],
  ],
};

const REFERENCE: readonly Page[] = [
  ['leases', 'Leases'],
  ['fleet', 'Fleet'],
  ['targets', 'Targets'],
  ['workflows', 'Workflows'],
  ['intents', 'Intents'],
  ['workers', 'Workers'],
  ['cli', 'Command line'],
  ['http', 'HTTP'],
  ['http-leases', 'Leases over HTTP'],
  ['problems', 'Problems over HTTP'],
  ['errors', 'Errors'],
  ['events', 'Events'],
  ['metrics', 'Metrics'],
  ['tracing', 'Traces'],
];

const PROJECT: readonly Page[] = [
  ['architecture', 'Architecture'],
  ['benchmarks', 'Benchmarks'],
  ['support', 'Support'],
];

/** The generated reference and the decisions are read from their folders, in the order of their file names. */
export function pageGroups(docs: string): readonly PageGroup[] {
  const fromSource = pagesIn(docs, 'reference');
  const decisions = pagesIn(docs, 'decisions');
  const groups: readonly PageGroup[] = [
    START,
    GUIDES,
    CONCEPTS,
    OPERATION,
    {
      title: 'Reference',
      pages: [...REFERENCE, { title: 'From the source', isFolded: true, pages: fromSource }],
    },
    {
      title: 'Project',
      pages: [...PROJECT, { title: 'Decisions', isFolded: true, pages: decisions }],
    },
  ];
  return groups.map((group) => written(docs, group));
}

/** The group without pages that are named and not written yet. */
function written(docs: string, group: PageGroup): PageGroup {
  const pages = group.pages
    .filter((one) => isGroup(one) || existsSync(join(docs, `${one[0]}.md`)))
    .map((one) => (isGroup(one) ? written(docs, one) : one));
  return { ...group, pages };
}

/** The pages of a folder, called what their headings say. */
function pagesIn(docs: string, folder: string): Page[] {
  return readdirSync(join(docs, folder))
    .filter((file) => file.endsWith('.md'))
    .sort()
    .map((file): Page => {
      const path = `${folder}/${file.replace(/\.md$/, '')}`;
      return [path, headingOf(join(docs, `${path}.md`)) ?? path];
    });
}

/** Every page that the groups name. */
export function pagePaths(groups: readonly PageGroup[]): string[] {
  return groups.flatMap(({ pages }) =>
    pages.flatMap((one) => (isGroup(one) ? pagePaths([one]) : [one[0]])),
  );
}

export function sidebarOf(docs: string): SidebarItem[] {
  const itemOf = (one: Page | PageGroup): SidebarItem => {
    if (!isGroup(one)) return { text: one[1], link: `/${one[0]}` };
    const items = one.pages.map(itemOf);
    return { text: one.title, items, ...(one.isFolded && { collapsed: true }) };
  };
  return pageGroups(docs).map(itemOf);
}

export function isGroup(one: Page | PageGroup): one is PageGroup {
  return !Array.isArray(one);
}

function headingOf(path: string): string | undefined {
  const heading = /^# (.*)$/m.exec(readFileSync(path, 'utf8'))?.[1];
  return heading?.replaceAll('`', '');
}
