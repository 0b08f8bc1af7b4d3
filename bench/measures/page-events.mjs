import { OURS } from '../contenders.mjs';
import { TOKEN, withPage } from '../page-browser.mjs';
import { absolute, fact } from '../report.mjs';
import { quantile } from '../statistics.mjs';

const EVERY_MS = 50;
const MOST_MS = 500;
const GRACE_MS = 5_000;

/** From the moment an event is in the store until it stands on the page, in the feed. */
export const pageEvents = { name: 'event in the store → visible in the page', run };

async function run(bench) {
  const { events: count } = bench.plan;
  return bench.onSqlite(async ({ url }) => {
    const [serving, telling] = await Promise.all([bench.instance(url), bench.instance(url)]);
    const address = await serving.ask('serve', { token: TOKEN });
    return withPage(async (page) => {
      await page.goto(`${address}/#/feed`);
      await page.locator('[data-age=live]').waitFor();
      await page.evaluate(() => {
        globalThis.seen = {};
        const look = () => {
          const now = Date.now();
          for (const [, n] of document.body.innerText.matchAll(/told-(\d+)\b/g))
            globalThis.seen[n] ??= now;
        };
        new MutationObserver(look).observe(document.body, {
          childList: true,
          subtree: true,
          characterData: true,
        });
      });
      bench.progress(pageEvents.name, 'telling');
      const facts = { count, everyMs: EVERY_MS };
      const told = await telling.ask('tell', facts, { withinMs: 2 * count * EVERY_MS + 10_000 });
      await page.waitForFunction((n) => globalThis.seen[n] !== undefined, count - 1, {
        timeout: GRACE_MS,
      });
      const seen = await page.evaluate(() => globalThis.seen);
      const took = told.flatMap((at, n) =>
        seen[n] === undefined ? [] : [Math.max(0, seen[n] - at)],
      );
      return rowsOf(took, told.length);
    });
  });
}

function rowsOf(took, count) {
  const row = (share, value) => ({
    requirement: 'page',
    measure: `${pageEvents.name}, ${share}`,
    unit: 'ms',
    figures: { [OURS.name]: value },
    notes: [`${took.length} of ${count} seen`],
  });
  const missing = took.length === count ? 0 : Number.POSITIVE_INFINITY;
  return [
    fact(row('p50', quantile(took, 0.5))),
    absolute({ ...row('p95', quantile(took, 0.95) + missing), atMost: MOST_MS }),
  ];
}
