/** Every page, once, in the order in which they are shown. `test/site/pages.test.ts` finds who forgets one here. */
import { readdirSync, readFileSync } from 'node:fs';
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
    ['examples', 'Examples'],
    ['glossary', 'Glossary'],
    ['comparison', 'Compared with others'],
    {
      title: 'Coming from …',
      isFolded: true,
      pages: [
        ['coming-from/redlock', 'redlock'],
        ['coming-from/redis-semaphore', 'redis-semaphore'],
        ['coming-from/bullmq', 'BullMQ'],
        ['coming-from/client-go', 'client-go leader election'],
        ['coming-from/cron', 'node-cron and ShedLock'],
      ],
    },
  ],
};

const GUIDES: PageGroup = {
  title: 'Guides',
  pages: [
    ['leases', 'Leases'],
    ['pools', 'Pools'],
    ['fleet', 'A fleet that polls'],
    ['sessions', 'Sessions'],
    ['workflows', 'Workflows'],
    ['intents', 'Intents'],
    ['workers', 'Workers'],
    ['testing', 'Testing your own code'],
  ],
};

const RUNNING: PageGroup = {
  title: 'Running it',
  pages: [
    ['operations', 'Operating it'],
    ['page', 'The dashboard'],
    ['redis', 'Redis and Valkey'],
    ['sqlite', 'SQLite'],
    ['timings', 'Timings'],
    ['retention', 'Retention'],
    ['upgrading', 'Upgrading'],
    ['support', 'Support'],
    ['tracing', 'Traces'],
    ['problems', 'Problems over HTTP'],
  ],
};

const PROMISES: PageGroup = {
  title: 'Promises',
  pages: [
    ['guarantees', 'Guarantees'],
    ['guarantees-tests', 'What shows them'],
    ['bugs', 'Bugs you will not have'],
    ['benchmarks', 'Benchmarks'],
  ],
};

const REFERENCE: readonly Page[] = [
  ['cli', 'Command line'],
  ['http', 'HTTP'],
  ['errors', 'Errors'],
  ['events', 'Events'],
  ['metrics', 'Metrics'],
];

/** The decisions and the generated reference are read from their folders, in the order of their file names. */
export function pageGroups(docs: string): readonly PageGroup[] {
  const reference: PageGroup = {
    title: 'Reference',
    pages: [
      ...REFERENCE,
      { title: 'From the source', isFolded: true, pages: pagesIn(docs, 'reference') },
    ],
  };
  const decisions = pagesIn(docs, 'decisions');
  const inside: PageGroup = {
    title: 'Inside',
    pages: [
      ['architecture', 'Architecture'],
      { title: 'Decisions', isFolded: true, pages: decisions },
    ],
  };
  return [START, GUIDES, RUNNING, PROMISES, reference, inside];
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

function isGroup(one: Page | PageGroup): one is PageGroup {
  return !Array.isArray(one);
}

function headingOf(path: string): string | undefined {
  const heading = /^# (.*)$/m.exec(readFileSync(path, 'utf8'))?.[1];
  return heading?.replaceAll('`', '');
}
