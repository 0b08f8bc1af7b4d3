import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { pageGroups, pagePaths, sidebarOf } from '../../docs/.vitepress/pages.ts';
import { slug } from '../../docs/.vitepress/slug.ts';
import { anchorsOf, type Ground, linkFindings, linksOf } from '../support/markdown-links.ts';
import { readSource, readTree, report } from '../support/source-tree.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const docs = join(root, 'docs');

const pages = readTree(['docs'], ['.md']);
const all = [...['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md'].map(readSource), ...pages];

describe('the list of pages', () => {
  const named = pagePaths(pageGroups(docs));

  it('has every page, once', () => {
    const there = pages.map(({ path }) => path.replace(/^docs\/|\.md$/g, ''));
    expect([...named].sort()).toEqual(there.filter((page) => page !== 'index').sort());
    expect(new Set(named).size).toBe(named.length);
  });

  it('is what the site shows', () => {
    const shown = JSON.stringify(sidebarOf(docs));
    expect(named.filter((page) => !shown.includes(`"/${page}"`))).toEqual([]);
  });
});

describe('links', () => {
  const ground: Ground = {
    has: (path) => ['docs/here.md', 'docs/there.md', 'src'].includes(path),
    anchors: () => anchorsOf('# Here\n\n## How it *works*, in `code`\n\n## Twice\n\n## Twice\n'),
  };
  const findings = (text: string, path = 'docs/here.md') => linkFindings([{ path, text }], ground);

  it.each([
    '[gone](gone.md)',
    '[gone](there.md#nowhere)',
    '[gone](./sub/there.md "a title with (brackets) and \\" in it")',
    '[gone](#nowhere)',
    '[gone](../gone.ts)',
    '[gone](../../outside.md)',
    '[gone](/there)',
    '![gone](images/gone.png)',
    '[![picture](gone.png)](there.md)',
    '[gone][1]\n\n[1]: gone.md',
    '<a href="gone.md">gone</a>',
    '[gone](http://)',
    '[gone](javascript:alert(1))',
    '| [gone](there.md) | [gone](gone.md) |',
  ])('that lead nowhere are found: %s', (text) => {
    expect(findings(`# Here\n\n${text}\n`)).toHaveLength(1);
  });

  it.each([
    '[there](there.md)',
    '[there](there.md#how-it-works-in-code)',
    '[there](there.md#twice-1)',
    '[there](#here)',
    '[there](../src)',
    '[there](../src/)',
    '[there](https://example.com/a_(b)#c)',
    '`[gone](gone.md)`',
    '```md\n[gone](gone.md)\n```',
    '<!-- before\n[gone](gone.md)\n-->',
  ])('that lead somewhere are not: %s', (text) => {
    expect(report(findings(`# Here\n\n${text}\n`))).toBe('');
  });

  it('of the front page are read from its front matter', () => {
    const front = (page: string) => `---\nhero:\n  actions:\n    - link: /${page}\n---\n`;
    expect(report(findings(front('there'), 'docs/index.md'))).toBe('');
    expect(findings(front('gone'), 'docs/index.md')).toMatchObject([{ line: 4 }]);
  });

  it('say in which line they stand', () => {
    expect(linksOf('```\n[a](b)\n```\n\n[c](d) `e`\n[f](g)\n')).toEqual([
      { target: 'd', line: 5 },
      { target: 'g', line: 6 },
    ]);
  });

  it('name headings as repositories do', () => {
    expect(slug('LEASE_HELD')).toBe('lease_held');
    expect(slug('What is kept, and for how long')).toBe('what-is-kept-and-for-how-long');
    expect(slug('A worker’s name')).toBe('a-workers-name');
    expect([...anchorsOf('# `holdfast run`\n\n## [A link](b.md)\n')]).toEqual([
      'holdfast-run',
      'a-link',
    ]);
  });

  it('of README, CONTRIBUTING, CHANGELOG and docs lead somewhere', () => {
    expect(all.flatMap(({ text }) => linksOf(text)).length).toBeGreaterThan(500);
    const known = new Map(all.map(({ path, text }) => [path, anchorsOf(text)]));
    const repository: Ground = {
      has: (path) => existsSync(join(root, path)),
      anchors: (path) => known.get(path) ?? anchorsOf(readSource(path).text),
    };
    expect(report(linkFindings(all, repository))).toBe('');
  });
});
