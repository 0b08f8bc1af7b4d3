/** The site as it is built: offline, without dead links, and of every page that there is. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createMarkdownRenderer } from 'vitepress';
import { beforeAll, describe, expect, it } from 'vitest';
import { markdown } from '../../docs/.vitepress/markdown.ts';
import { privateFolder, startProgram } from '../integration/support/cli.ts';
import { readTree } from '../support/source-tree.ts';
import { until } from '../support/until.ts';

const SCRIPT = fileURLToPath(new URL('../../scripts/docs.mjs', import.meta.url));
const docs = fileURLToPath(new URL('../../docs', import.meta.url));
const folder = privateFolder();
/** Of a machine that does much else; alone it takes some seconds. */
const BUILD_DEADLINE_MS = 180_000;
const run = (...args: string[]) => startProgram(process.execPath, [SCRIPT, ...args], {});

describe('the site', () => {
  const out = join(folder, 'site');
  const pages = readTree(['docs'], ['.md']).map(({ path }) => path.replace(/^docs\/|\.md$/g, ''));
  const read = (file: string) => readFileSync(join(out, file), 'utf8');

  beforeAll(async () => {
    const built = await run('build', '--out', out).end('', BUILD_DEADLINE_MS);
    expect(built, built.stderr).toMatchObject({ code: 0 });
    expect(built.stdout + built.stderr).not.toMatch(/\(!\)|warn|dead link|not loaded/i);
  }, BUILD_DEADLINE_MS);

  it('has every page', () => {
    expect(pages.length).toBeGreaterThan(40);
    expect(pages.filter((page) => !existsSync(join(out, `${page}.html`)))).toEqual([]);
  });

  it('has the files that pages link to', () => {
    expect(read('alerts/holdfast.rules.yml')).toContain('alert:');
    expect(JSON.parse(read('grafana/holdfast.json'))).toHaveProperty('panels');
  });

  it('has llms.txt, and every page that it names as Markdown', () => {
    const linked = [...read('llms.txt').matchAll(/\]\((.+?\.md)\)/g)].map(([, file = '']) => file);
    expect(linked.length).toBeGreaterThan(40);
    expect(linked.filter((file) => /<!--/.test(read(file)))).toEqual([]);
  });

  it('loads nothing from elsewhere', () => {
    const elsewhere = /<(?:script|link|img|iframe)\s[^>]*(?:src|href)="(?:https?:)?\/\/|@import/;
    expect(pages.filter((page) => elsewhere.test(read(`${page}.html`)))).toEqual([]);
    const [style = ''] = read('index.html').match(/assets\/style\.[^"]+\.css/) ?? [];
    expect(read(style)).not.toMatch(/url\(["']?(https?:)?\/\/|@font-face/);
  });

  it('is searched without a server', () => {
    const assets = /assets\/chunks\/VPLocalSearchBox\.[^"]+\.js/;
    expect(read('index.html')).toMatch(/assets\/chunks\/theme\.[^"]+\.js/);
    const [theme = ''] = read('index.html').match(/assets\/chunks\/theme\.[^"]+\.js/) ?? [];
    expect(read(theme)).toMatch(assets);
  });

  it('shows nothing of the comments that steer tests', () => {
    const steering = /<!--\s*(before|after|continues|file:|background|not run|Written by)/;
    expect(pages.filter((page) => steering.test(read(`${page}.html`)))).toEqual([]);
  });
});

describe('a page', () => {
  const shown = async (text: string, relativePath = 'here.md') => {
    const md = await createMarkdownRenderer(docs, markdown);
    return md.render(text, { relativePath, path: join(docs, relativePath) }).trim();
  };

  it('is no template: what Vue would read into it is text', async () => {
    expect(await shown('a {{ b }} c')).toBe('<p>a &#123;&#123; b &#125;&#125; c</p>');
    expect(await shown('`{{ b }}` and `Map<T>`')).toBe(
      '<p><code>&#123;&#123; b &#125;&#125;</code> and <code>Map&lt;T&gt;</code></p>',
    );
  });

  it('has no comments, wherever they stand', async () => {
    expect(await shown('<!-- before\nconst a = 1;\n\n{{ b }}\n-->\n\nText.')).toBe('<p>Text.</p>');
    expect(await shown('a <!-- b --> c')).toBe('<p>a  c</p>');
    expect(await shown('- a\n\n  <!-- continues -->\n\n  b')).not.toContain('continues');
  });

  it('means what it says: facts are no attributes, files no hosts, numbers no faces', async () => {
    expect(await shown('ConfigError { field }')).toBe('<p>ConfigError { field }</p>');
    expect(await shown('see errors.md')).toBe('<p>see errors.md</p>');
    expect(await shown('(from 1 to 8) :tada:')).toBe('<p>(from 1 to 8) :tada:</p>');
  });

  it('links to pages and on the page, and names files of the repository that are none', async () => {
    expect(await shown('[b](errors.md#lease_held)')).toContain('href="./errors.html#lease_held"');
    expect(await shown('[b](alerts/holdfast.rules.yml)')).toContain('href="alerts/');
    expect(await shown('[the `test`](../test/a.test.ts "K-01") and [b](b.md)')).toMatch(
      /^<p><span class="in-repository" title="test\/a\.test\.ts: K-01">the <code.*<\/code><\/span> and <a href="\.\/b\.html"/,
    );
    expect(await shown('[r](../README.md#a)')).toBe(
      '<p><span class="in-repository" title="README.md">r</span></p>',
    );
    expect(await shown('[d](decisions)')).toBe(
      '<p><span class="in-repository" title="docs/decisions">d</span></p>',
    );
    expect(await shown('[r](../README.md)', 'decisions/1.md')).toContain('href="./../README.html"');
  });

  it('has headings that are called what repositories call them', async () => {
    expect(await shown('## LEASE_HELD')).toContain('id="lease_held"');
  });
});

describe('the command', () => {
  it('shows the pages while they are written', { timeout: BUILD_DEADLINE_MS }, async () => {
    await using server = run('dev', '--port', '0');
    const address = () => /http:\/\/127\.0\.0\.1:\d+\//.exec(server.stdout)?.[0];
    await until(() => address() !== undefined, {
      what: 'the address of the site',
      deadlineMs: BUILD_DEADLINE_MS,
    });
    const answer = await fetch(`${address()}guarantees.md`);
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain('What is promised');
  });

  it('says how it is used, and what was wrong', async () => {
    expect(await run('--help').end()).toMatchObject({ code: 0, stderr: '' });
    const wrong = [['show'], [], ['dev', '--port', 'x'], ['build', '--to', 'a']];
    for (const args of wrong) {
      const { code, stderr } = await run(...args).end();
      expect(stderr).toMatch(/^docs: .+\n$/);
      expect(code).toBe(64);
    }
  });
});
