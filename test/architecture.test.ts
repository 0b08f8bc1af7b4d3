import { describe, expect, it } from 'vitest';
import { readSource, readTree, report, type SourceText } from './support/source-tree.ts';
import { walkFindings } from './support/walk-rules.ts';

// As in tidy.test.ts: the rule is first shown to find what it is for, and then asked about the pages.

const folders = 'src testing test docs sim chaos dashboard/src bench scripts examples'.split(' ');
const endings = ['.ts', '.tsx', '.mjs', '.lua', '.md', '.svg', '.json', '.css', '.yml'];
const house = {
  files: new Map(readTree(folders, endings).map((source) => [source.path, source])),
};

function page(text: string): SourceText {
  return { path: 'docs/sample.md', text };
}

describe('a page that leads through the files', () => {
  it.each([
    'nothing in backticks',
    '`src/lease/tenure.ts` `Tenure` and `Tenure.isHeld`, with `#`',
    '| `src/fleet/poll/poll-scheduler.ts` `PollScheduler.#try` | and `#try` |',
    '`src/lease/`: `renewer.ts` `Renewer.add`, `wait-queue.ts`\nand `release.ts`',
    '`src/store/`: the `*-store.ts` files',
    '`src/worker/session-leases.ts` `acquireOwn()`, anywhere',
    '`leases.acquire` is a verb, `lease.lost` an event, `lease/acquire.lua` a script, `STARTING` a state',
    '`Processor` is declared somewhere',
    'not a name: `session:<id>`, `npm test`, `202`, `--json`',
    '```console\n$ ls `nowhere.ts`\n```',
  ])('may say: %s', (text) => {
    expect(report(walkFindings(page(text), house))).toBe('');
  });

  it.each([
    ['a file that is not there', '`src/lease/tenures.ts`'],
    ['a folder that is not there', '`src/leases/`'],
    ['a file that is in another folder', '`src/lease/`: `schedule.ts`'],
    ['a file of no folder', '`schedule.ts`'],
    ['no such files', '`src/cli/`: `*-programme.ts`'],
    ['a name that is declared elsewhere', '`src/lease/tenure.ts` `Renewer`'],
    ['a member that there is not', '`src/lease/tenure.ts` `Tenure.isHeldStill`'],
    ['a name that is only used there', '`src/lease/leases.ts` `LeaseRequestQueue`'],
    ['a name that is nowhere', '`Holdslow`'],
    ['a verb that there is not', '`leases.grab`'],
    ['an event that there is not', '`lease.mislaid`'],
    ['a script that there is not', '`lease/grab.lua`'],
    ['a state that there is not', '`STARTLED`'],
  ])('may not name %s', (_, text) => {
    expect(walkFindings(page(`First.\n\n${text}`), house)).toMatchObject([{ line: 3 }]);
  });
});

it.each(['docs/architecture.md', 'CONTRIBUTING.md'])('%s names what is there', (path) => {
  expect(report(walkFindings(readSource(path), house))).toBe('');
});

it('docs/architecture.md walks through every layer of src', () => {
  const layers = new Set(
    [...house.files.keys()].flatMap((path) => /^src\/([\w-]+)\//.exec(path)?.[1] ?? []),
  );
  const { text } = readSource('docs/architecture.md');
  const isNamed = (layer: string) => new RegExp(`\`(?:src|holdfast)/${layer}\\b`).test(text);
  const missing = [...layers].filter((layer) => !isNamed(layer));
  expect(missing).toEqual([]);
});
