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
    ['postgres', 'PostgreSQL'],
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
    ['benchmarks', 'Benchmarks'],
  ],
};

const REFERENCE: PageGroup = {
  title: 'Reference',
  pages: [
    ['cli', 'Command line'],
    ['http', 'HTTP'],
    ['errors', 'Errors'],
    ['events', 'Events'],
    ['metrics', 'Metrics'],
    {
      title: 'From the source',
      isFolded: true,
      pages: [
        ['reference/api', 'holdfast'],
        ['reference/api-client', 'holdfast/client'],
        ['reference/api-server', 'holdfast/server'],
        ['reference/api-testing', 'holdfast/testing'],
        ['reference/api-redlock', 'holdfast/redlock'],
        ['reference/configuration', 'Configuration'],
        ['reference/cli', 'Every command'],
        ['reference/http', 'Every route'],
        ['reference/errors', 'Every error'],
        ['reference/messages', 'Every message'],
        ['reference/events', 'Every event'],
        ['reference/metrics', 'Every metric'],
      ],
    },
  ],
};

/** The decisions are read from their folder: their numbers are their order, and their headings their names. */
export function pageGroups(docs: string): readonly PageGroup[] {
  const decisions = readdirSync(join(docs, 'decisions'))
    .filter((file) => file.endsWith('.md'))
    .sort()
    .map((file): Page => {
      const path = `decisions/${file.replace(/\.md$/, '')}`;
      return [path, headingOf(join(docs, `${path}.md`)) ?? path];
    });
  const inside: PageGroup = {
    title: 'Inside',
    pages: [
      ['architecture', 'Architecture'],
      { title: 'Decisions', isFolded: true, pages: decisions },
    ],
  };
  return [START, GUIDES, RUNNING, PROMISES, REFERENCE, inside];
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
