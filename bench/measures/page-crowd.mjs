import { OURS } from '../contenders.mjs';
import { TOKEN, withPage } from '../page-browser.mjs';
import { absolute, fact } from '../report.mjs';
import { median } from '../statistics.mjs';

const FLEET = { members: 50, targets: 10_000 };
const MOVES_PER_SECOND = 200;
const FIRST_MAP_MS = 1_500;
const LONGEST_TASK_MS = 200;
const SETTLE_MS = 120_000;

/** A fleet at the size that the page is made for. */
export const pageCrowd = { name: '10,000 targets × 50 members', run };

async function run(bench) {
  return bench.onSqlite(async ({ url }) => {
    const [serving, fleet] = await Promise.all([bench.instance(url), bench.instance(url)]);
    bench.progress(pageCrowd.name, 'filling the store');
    await fleet.ask('settle', FLEET, { withinMs: SETTLE_MS });
    const address = await serving.ask('serve', { token: TOKEN });
    const firstMaps = [];
    for (let round = 0; round < bench.plan.rounds; round++) {
      bench.progress(pageCrowd.name, `first map, round ${round + 1}`);
      firstMaps.push(await withPage((page) => firstMap(page, address)));
    }
    bench.progress(pageCrowd.name, 'moving');
    const moving = await withPage((page) => whileMoving(page, address, fleet, bench.plan.movesMs));
    return rowsOf(firstMaps, moving);
  });
}

/** From the navigation until all of the fleet is on the screen: counted, and drawn. */
async function firstMap(page, address) {
  await page.goto(`${address}/`, { waitUntil: 'commit' });
  const handle = await page.waitForFunction(
    () => {
      const isCounted = /10,000/.test(document.querySelector('main')?.innerText ?? '');
      const lanes = document.querySelectorAll('canvas[data-lane]').length;
      return isCounted && lanes >= 50 ? performance.now() : false;
    },
    undefined,
    { polling: 'raf', timeout: 30_000 },
  );
  return handle.jsonValue();
}

async function whileMoving(page, address, fleet, forMs) {
  await firstMap(page, address);
  await page.evaluate(() => {
    globalThis.tasks = [];
    new PerformanceObserver((list) =>
      globalThis.tasks.push(...list.getEntries().map(({ duration }) => duration)),
    ).observe({ type: 'longtask' });
  });
  const perSecond = await fleet.ask(
    'move',
    { perSecond: MOVES_PER_SECOND, forMs },
    { withinMs: 4 * forMs },
  );
  const tasks = await page.evaluate(() => globalThis.tasks);
  return { perSecond, longestMs: Math.max(0, ...tasks), count: tasks.length };
}

function rowsOf(firstMaps, { perSecond, longestMs, count }) {
  const row = (measure, unit, value) => ({
    requirement: 'page',
    measure: `${pageCrowd.name}${measure}`,
    unit,
    figures: { [OURS.name]: value },
  });
  const notes = [`${Math.round(perSecond)} moves/s; ${count} tasks over 50 ms`];
  return [
    absolute({ ...row(': first map', 'ms', median(firstMaps)), atMost: FIRST_MAP_MS }),
    fact(row(': first map, the slowest', 'ms', Math.max(...firstMaps))),
    absolute({
      ...row(', 200 moves/s: longest task', 'ms', longestMs),
      atMost: LONGEST_TASK_MS,
      notes,
    }),
  ];
}
