import { readdirSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { OURS } from '../contenders.mjs';
import { TOKEN, withPage } from '../page-browser.mjs';
import { absolute, fact } from '../report.mjs';

const FILES = new URL('../../dist/dashboard/', import.meta.url);
const MOST_KB = 60;

/** The files that a browser downloads for the map. Other views load when a user opens them. */
export const pageBundle = { name: 'the page, gzipped', run };

async function run(bench) {
  return bench.onSqlite(async ({ url }) => {
    const serving = await bench.instance(url);
    const address = await serving.ask('serve', { token: TOKEN });
    const loaded = await withPage(async (page) => {
      await page.goto(address);
      await page.locator('[data-age=live]').waitFor();
      await page.locator('main h1').waitFor();
      return page.evaluate(() =>
        performance
          .getEntries()
          .filter(({ entryType }) => entryType === 'navigation' || entryType === 'resource')
          .filter(({ name }) => !name.includes('/api/'))
          .map(({ encodedBodySize }) => encodedBodySize),
      );
    });
    return rowsOf(loaded, allViews());
  });
}

function allViews() {
  return readdirSync(FILES, { recursive: true })
    .filter((path) => /\.(js|css|html|svg)$/.test(path))
    .map((path) => gzipSync(readFileSync(new URL(path, FILES))).length);
}

function rowsOf(loaded, all) {
  const row = (measure, sizes) => ({
    requirement: 'page',
    measure: `${pageBundle.name}: ${measure}`,
    unit: 'kB',
    figures: { [OURS.name]: sizes.reduce((sum, size) => sum + size, 0) / 1_000 },
    notes: [`${sizes.length} files`],
  });
  return [
    absolute({ ...row('what the map takes', loaded), atMost: MOST_KB }),
    fact(row('all views together', all)),
  ];
}
