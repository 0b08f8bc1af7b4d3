import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { firstSentence, llmsText } from '../../docs/.vitepress/llms.ts';
import { pageGroups, pagePaths } from '../../docs/.vitepress/pages.ts';

const docs = fileURLToPath(new URL('../../docs', import.meta.url));

describe('llms.txt', () => {
  const text = llmsText(docs);
  const lines = text.split('\n').filter((line) => line.startsWith('- '));

  it('begins with a title and a summary, and has a section for each group of pages', () => {
    expect(text).toMatch(/^# Holdfast\n\n> .+\n\n## Start\n\n- \[Getting started\]/);
    const groups = pageGroups(docs).map(({ title }) => `## ${title}`);
    const headings = text.split('\n').filter((line) => line.startsWith('## '));
    expect(headings).toEqual([...groups, '## Optional']);
  });

  it('links to every page once', () => {
    const linked = lines.map((line) => /\]\((.+?)\.md\)/.exec(line)?.[1]);
    expect(linked.sort()).toEqual(pagePaths(pageGroups(docs)).sort());
  });

  it('says of every page outside the reference and the decisions what it is about', () => {
    const silent = lines.filter((line) => !/\.md\): \S/.test(line));
    expect(silent.filter((line) => !/\]\((reference|decisions)\//.test(line))).toEqual([]);
  });

  it('takes the first sentence of a page', () => {
    const page =
      '# A\n\n<!-- before\nx\n-->\n```ts\nx. Y\n```\n\nOne `a.b` [two](b.md), **three**. Four.\n';
    expect(firstSentence(page)).toBe('One `a.b` two, three.');
    expect(firstSentence('# A\n\n| a | b |\n')).toBe('');
  });
});
