/**
 * What `npm test` runs and what is left to `npm run test:all`. The first has the unit tests, every store's conformance, one
 * fault test per promise, one story of a fleet, a smoke test of the page, and the pages that a newcomer follows. A test
 * file that is named nowhere here belongs to the second; without a suite, vitest runs everything.
 */
export type Suite = 'first' | 'rest' | 'all';

const { HOLDFAST_SUITE: named } = process.env;
export const suite: Suite = named === 'first' || named === 'rest' ? named : 'all';

/** The documents whose blocks `npm test` runs. */
export const FIRST_PAGES: readonly string[] = ['README.md', 'docs/getting-started.md'];

const FIRST = {
  integration: [
    // Every store answers alike.
    ...['redis-conformance', 'redis-topologies-conformance', 'sqlite-conformance', 'redis-model'],
    'postgres-conformance',
    'postgres-guard',
    ...['sim-redis', 'redis-batches', 'redis-members', 'redis-log'],
    // A lease ends in time, whatever hangs.
    ...['frozen-holder', 'frozen-redis', 'network-faults', 'lifecycle', 'waiting', 'handover'],
    // A store that loses data grants nothing that may still be held, and fences rise.
    ...['quarantine', 'redis-restarts', 'failover', 'fencing', 'sqlite-faults', 'sqlite-processes'],
    ...[
      'redis-refusals',
      'suitability',
      'cluster-moving',
      'cluster-quarantine',
      'sentinel-opening',
    ],
    // A command is dead before another has its lease.
    ...['run-lease', 'run-slots', 'runner-commands', 'workers-deaths', 'pools'],
    // What was accepted is done once.
    ...['http-kills', 'http-outage', 'intents-http', 'workflow-processes', 'workflow-tenures'],
    // The command line and the package.
    ...['cli-commands', 'package', 'resuming', 'retention'],
  ],
  scenarios: ['all-at-once', 'up'],
  e2e: ['entering'],
  docs: ['pages', 'reference'],
} as const;

type Folder = keyof typeof FIRST;
const FOLDERS = Object.keys(FIRST) as Folder[];

/** Every file that is named here. */
export const NAMED_FILES: readonly string[] = FOLDERS.flatMap(namedIn);

/** Which files of a folder of `test/` a project runs. */
export function filesOf(folder: Folder, of = suite): { include: string[]; exclude: string[] } {
  if (of === 'first') return { include: namedIn(folder), exclude: [] };
  // The pages are one file, and it leaves out the first ones itself.
  const done = namedIn(folder).filter((path) => path !== 'test/docs/pages.test.ts');
  return { include: [`test/${folder}/**/*.test.ts`], exclude: of === 'rest' ? done : [] };
}

function namedIn(folder: Folder): string[] {
  return FIRST[folder].map((name) => `test/${folder}/${name}.test.ts`);
}
