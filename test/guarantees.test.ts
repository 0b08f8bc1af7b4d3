import { describe, expect, it } from 'vitest';
import {
  bugFindings,
  linkFindings,
  mentionFindings,
  promiseFindings,
  storeFindings,
} from './support/guarantee-rules.ts';
import {
  type Finding,
  readSource,
  readTree,
  report,
  type SourceText,
} from './support/source-tree.ts';

// As in tidy.test.ts: every rule is first shown to find what it is for, and then asked about the page.

const PATH = 'docs/guarantees.md';
const EVIDENCE = 'docs/guarantees-tests.md';
/** Pages that name tests by their titles. */
const NAMING = [
  PATH,
  EVIDENCE,
  'docs/bugs.md',
  'docs/decisions/0028-bugs-that-the-tests-found.md',
  'docs/decisions/0031-how-the-guarantees-are-tested.md',
];
const everything = new Map(
  readTree(['docs', 'src', 'testing', 'test', 'sim', 'chaos'], ['.md', '.ts', '.mjs']).map(
    (source) => [source.path, source],
  ),
);
/** Whole folders may be linked, too. */
const folders = new Set(
  [...everything.keys()].flatMap((path) =>
    [...path.matchAll(/\//g)].map(({ index }) => path.slice(0, index)),
  ),
);
const root = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md'].map(readSource);

function lookup(path: string): SourceText | undefined {
  const folder = folders.has(path) ? { path, text: '' } : undefined;
  return everything.get(path) ?? root.find((source) => source.path === path) ?? folder;
}

function page(...lines: string[]): SourceText {
  return { path: PATH, text: lines.join('\n') };
}

function expectTrue(findings: readonly Finding[]): void {
  expect(report(findings)).toBe('');
}

describe('links', () => {
  const tree: Record<string, string> = {
    'test/lease/tenure.test.ts': `it('K-05 ends are final', () => {}); // K-04 is only mentioned`,
    'testing/conformance/conformance.ts': `check('frees a key', async () => {});`,
    'testing/sim/audit.ts': `type Invariant = 'exclusion' | 'calm'; const other = 'peace';`,
    'testing/sim/faults.ts': `const KINDS = { crash: 4, 'late stop': 2 }; const MORE = { war: 1 };`,
    'docs/cli.md': '',
    [PATH]: '',
  };
  const inTree = (path: string) => {
    const text = tree[path];
    return text === undefined ? undefined : { path, text };
  };

  it.each([
    '[K-05 ends are final](../test/lease/tenure.test.ts)',
    '[shown](../test/lease/tenure.test.ts "K-05 ends are final") and [frees a key](../testing/conformance/conformance.ts)',
    '[exclusion](../testing/sim/audit.ts), [`calm`](../testing/sim/audit.ts)',
    '[crash](../testing/sim/faults.ts), [too late](../testing/sim/faults.ts "late stop")',
    '[the command](cli.md#exit-codes), [above](#the-model), [elsewhere](https://example.com/x.test.ts)',
  ])('that lead somewhere are fine: %s', (text) => {
    expectTrue(linkFindings(page('', text), inTree));
  });

  it.each([
    '[K-05 ends are final](../test/lease/tenures.test.ts)',
    '[K-05 ends are](../test/lease/tenure.test.ts)',
    '[K-04 is only mentioned](../test/lease/tenure.test.ts)',
    '[K-05 ends are final](../test/lease/tenure.test.ts "K-05 ends are finite")',
    '[these tests](../test/lease/tenure.test.ts)',
    '[frees no key](../testing/conformance/conformance.ts)',
    '[peace](../testing/sim/audit.ts)',
    '[war](../testing/sim/faults.ts)',
    '[the command](../cli.md)',
    '[K-05 [all] ends are final](../test/lease/tenure.test.ts)',
  ])('that lead nowhere are found: %s', (text) => {
    expect(linkFindings(page('', text), inTree)).toMatchObject([{ path: PATH, line: 2 }]);
  });
});

describe('promises', () => {
  const table = (path: string, ...rows: string[]): SourceText => ({
    path,
    text: [
      '## What is promised',
      'Text.',
      '',
      '| | |',
      '|---|---|',
      ...rows,
      '',
      '| more | |',
    ].join('\n'),
  });
  const promised = (...rows: string[]) => table(PATH, ...rows);
  const shown = (...rows: string[]) => table(EVIDENCE, ...rows);
  const one = '| G1 | [a title](../test/a.test.ts) |';

  it('in order, each shown by something, are fine', () => {
    const pages = promised('| G1 | one | none |', '| G2 | two | A1 |');
    const evidence = shown(one, '| G2 | [calm](../testing/sim/audit.ts) |');
    expectTrue(promiseFindings(pages, evidence));
  });

  it.each([
    ['out of order', ['| G2 | two |'], ['| G2 | [a](../test/a.test.ts) |']],
    ['twice', ['| G1 | one |', '| G1 | two |'], [one]],
    ['without a row of evidence', ['| G1 | one |', '| G2 | two |'], [one]],
    ['shown by nothing', ['| G1 | one |'], ['| G1 | of course |']],
    ['shown by another page', ['| G1 | one |'], ['| G1 | [cli](cli.md) |']],
    ['shown, and not promised', ['| G1 | one |'], [one, '| G2 | [a](../test/a.test.ts) |']],
    [
      'with a fault, and nothing that would fail',
      ['| G1 | one |'],
      ['| G1 | [crash](../testing/sim/faults.ts) |'],
    ],
  ])('%s are found', (_, rows, evidence) => {
    expect(promiseFindings(promised(...rows), shown(...evidence))).toHaveLength(1);
  });

  it('that are not there at all are found', () => {
    const none = page('## What is promised', '## Per store', '| G1 |');
    expect(promiseFindings(none, shown(one))).toHaveLength(1);
  });
});

describe('claims about a store', () => {
  const table = (cells: string) =>
    page(
      '## Per store',
      '',
      '| store | exclusion | failover |',
      '|---|---|---|',
      `| memory | ${cells} |`,
    );

  it.each([
    'in one process: [shown](../test/a.test.ts "a title") | —',
    '[exclusion](../testing/sim/audit.ts) | not promised: nobody takes over',
    '[exclusion](../testing/sim/audit.ts) | not promised for a second: nobody takes over',
  ])('that are shown, or say why they are none, are fine: %s', (cells) => {
    expectTrue(storeFindings(table(cells)));
  });

  it.each([
    'always | —',
    '— | not promised',
    '— | not promised:',
    '— | ',
    '[the page](sqlite.md) | —',
  ])('that are shown by nothing are found: %s', (cells) => {
    expect(storeFindings(table(cells))).toMatchObject([{ path: PATH, line: 5 }]);
  });

  it('that are not there at all are found', () => {
    expect(storeFindings(page('# Guarantees'))).toHaveLength(1);
  });
});

describe('numbers', () => {
  const promises = page('| A1 | rates |', '| G1 | one | A1 |', '| N1 | not one, but G1 |');

  it('of what there is are fine, and elsewhere only promises are numbers', () => {
    const readme = { path: 'README.md', text: 'As G1 says, not A4; a BG7, 12G8' };
    expectTrue(mentionFindings([promises, readme], promises));
  });

  it('of what there is not are found', () => {
    const readme = { path: 'README.md', text: 'First.\nAs G2 says.' };
    expect(mentionFindings([readme], promises)).toMatchObject([{ path: 'README.md', line: 2 }]);
    const more = page(promises.text, 'see N2, under A2 and A1');
    expect(mentionFindings([more], more)).toHaveLength(2);
  });
});

describe('bugs of others', () => {
  const thread = '[x#1](https://github.com/a/x/issues/1)';
  const shown = '[a title](../test/a.test.ts)';

  it('with a thread and a test are fine', () => {
    expectTrue(bugFindings(page('# Bugs', '## One', thread, '', shown, '## Two', shown, thread)));
  });

  it('without one of them are found', () => {
    const bugs = page('# Bugs', '## One', thread, '## Two', shown, '## Three', thread, shown);
    expect(bugFindings(bugs)).toMatchObject([{ line: 2 }, { line: 4 }]);
  });

  it('are ten to twenty on our page, each with both', () => {
    const bugs = readSource('docs/bugs.md');
    expectTrue(bugFindings(bugs));
    const count = bugs.text.match(/^## /gm)?.length;
    expect(count).toBeGreaterThanOrEqual(10);
    expect(count).toBeLessThanOrEqual(20);
  });
});

describe('the page of guarantees', () => {
  const guarantees = readSource(PATH);

  it.each(NAMING)('names tests, invariants and faults that exist: %s', (path) => {
    expectTrue(linkFindings(readSource(path), lookup));
  });

  it('has a number for each promise, and what shows it', () => {
    expectTrue(promiseFindings(guarantees, readSource(EVIDENCE)));
  });

  it('claims nothing about a store that nothing shows', () => {
    expectTrue(storeFindings(guarantees));
  });

  it('is rightly referred to, by itself and others', () => {
    const pages = [...everything.values()].filter(({ path }) => path.endsWith('.md'));
    expectTrue(mentionFindings([...pages, ...root], guarantees));
  });
});
