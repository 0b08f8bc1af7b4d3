import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import { writeLlmsText } from './llms.ts';
import { markdown } from './markdown.ts';
import { sidebarOf } from './pages.ts';

const docs = fileURLToPath(new URL('..', import.meta.url));
/** Files that pages link to. The site has them under the same path. */
const FILES = ['alerts', 'grafana', 'images'];
const ICON = readFileSync(join(docs, '../dashboard/src/icon.svg'), 'utf8');

export default defineConfig({
  title: 'Holdfast',
  description: 'Gives every piece of ongoing work one owner.',
  lang: 'en',
  // Nothing is loaded from elsewhere, and no two builds of the same pages differ in more than they have to.
  lastUpdated: false,
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(ICON)}` }]],
  markdown,
  themeConfig: {
    nav: [
      { text: 'Start', link: '/getting-started' },
      { text: 'Guides', link: '/guides/leader', activeMatch: '/guides/' },
      { text: 'Guarantees', link: '/guarantees' },
      { text: 'Command line', link: '/cli' },
      { text: 'API', link: '/reference/api' },
    ],
    sidebar: sidebarOf(docs),
    outline: { level: [2, 3], label: 'On this page' },
    search: { provider: 'local', options: { detailedView: true } },
    externalLinkIcon: true,
    docFooter: { prev: 'Previous', next: 'Next' },
  },
  // The index that is searched is one file, loaded by who searches.
  vite: { build: { chunkSizeWarningLimit: 4_000 } },
  buildEnd({ outDir }) {
    for (const folder of FILES)
      cpSync(join(docs, folder), join(outDir, folder), { recursive: true });
    writeLlmsText(docs, outDir);
  },
});
