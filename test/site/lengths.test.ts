/**
 * How long the pages are. Counted is what a person reads: code blocks, comments and pictures are left out, a piece of
 * inline code is one word, tables count. Left out as a whole: docs/reference (generated), docs/decisions (history) and
 * docs/guarantees-tests.md (titles of tests).
 * README has a bound of its own and counts in all, code included; CONTRIBUTING, docs/architecture.md and docs/mutants.md are
 * for those who change Holdfast, and are not counted.
 */
import { describe, expect, it } from 'vitest';
import { pageGroups } from '../../docs/.vitepress/pages.ts';
import { sentencesOf, wordsOf } from '../support/prose.ts';
import { readSource, readTree } from '../support/source-tree.ts';

const MAX_README_WORDS = 900;
const MAX_GUIDE_WORDS = 1_200;
const MAX_CONCEPT_WORDS = 700;
/** 30,000 for what 0.1 does; the rest for HTTP leases, proofs, scale and frameworks, a page each. */
const MAX_WORDS = 36_500;

const LONG_SENTENCE_WORDS = 35;
/** Outside README and Start, where there is none. */
const MAX_LONG_SENTENCES = 10;

const EXCLUDED =
  /^docs\/(?:decisions\/|reference\/|(?:guarantees-tests|architecture|mutants)\.md$)/;
const pages = readTree(['docs'], ['.md']).filter(({ path }) => !EXCLUDED.test(path));
const readme = readSource('README.md');

const [start] = pageGroups('docs');
const startPaths = new Set([
  'README.md',
  'docs/index.md',
  ...(start?.pages ?? []).flatMap((page) => (Array.isArray(page) ? [`docs/${page[0]}.md`] : [])),
]);

const longSentences = [readme, ...pages].flatMap(({ path, text }) =>
  sentencesOf(text)
    .filter(({ words }) => words > LONG_SENTENCE_WORDS)
    .map((sentence) => ({ path, ...sentence })),
);
const listed = (sentences: typeof longSentences) =>
  sentences
    .map(({ path, line, words, text }) => `${path}:${line} ${words} words: ${text}`)
    .join('\n');

/** The pages of a folder that are longer than they may be. */
function tooLong(folder: string, most: number): string[] {
  return pages
    .filter(({ path }) => path.startsWith(folder))
    .map(({ path, text }) => ({ path, words: wordsOf(text) }))
    .filter(({ words }) => words > most)
    .map(({ path, words }) => `${path}: ${words} words, at most ${most}`);
}

describe('the pages are short enough to be read', () => {
  it('the README has at most 900 words in all', () => {
    expect(readme.text.split(/\s+/).filter(Boolean).length).toBeLessThanOrEqual(MAX_README_WORDS);
  });

  it('no guide has more than 1,200 words, and no page of the concepts more than 700', () => {
    expect(tooLong('docs/guides/', MAX_GUIDE_WORDS)).toEqual([]);
    expect(tooLong('docs/concepts/', MAX_CONCEPT_WORDS)).toEqual([]);
  });

  it('all pages together stay below their bound', async ({ annotate }) => {
    const counted = pages.map(({ path, text }) => ({ path, words: wordsOf(text) }));
    const all = counted.reduce((sum, { words }) => sum + words, 0);
    const table = counted
      .sort((a, b) => b.words - a.words)
      .map(({ path, words }) => `${String(words).padStart(6)} ${path}`);
    await annotate([`${all} words`, ...table].join('\n'), 'words');
    expect(all, table.join('\n')).toBeLessThanOrEqual(MAX_WORDS);
  });
});

describe('a sentence', () => {
  it('of README and Start has at most 35 words', () => {
    expect(listed(longSentences.filter(({ path }) => startPaths.has(path)))).toBe('');
  });

  it('of any other page rarely has more', async ({ annotate }) => {
    const others = longSentences.filter(({ path }) => !startPaths.has(path));
    await annotate(listed(others) || 'none', 'long sentences');
    expect(others.length, listed(others)).toBeLessThanOrEqual(MAX_LONG_SENTENCES);
  });
});

describe('counting', () => {
  it('leaves out what is not prose', () => {
    const page = [
      '---',
      'title: not this',
      '---',
      '# Two words',
      '',
      '<!-- before',
      'const not = this;',
      '-->',
      '```ts',
      'not(this);',
      '```',
      'Four [words](of/a-link.md), `one.of({ them: code })`.',
      '',
      '| one | two |',
      '|---|---|',
      '| three | – |',
    ].join('\n');
    expect(wordsOf(page)).toBe(2 + 3 + 3);
  });

  it('ends sentences at full stops, list items and cells', () => {
    const page =
      'One two\nthree. Four `e.g. this` five!\n\n- Six\n- Seven eight\n\n| Nine | ten. Eleven |\n';
    expect(sentencesOf(page).map(({ line, words }) => [line, words])).toEqual([
      [1, 3],
      [1, 3],
      [4, 1],
      [5, 2],
      [7, 1],
      [7, 1],
      [7, 1],
    ]);
  });
});
