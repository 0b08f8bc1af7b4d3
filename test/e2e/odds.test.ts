import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SqliteConnection } from '../../src/store/sqlite/file/sqlite-connection.ts';
import { FaultProxy } from '../../testing/index.ts';
import { leaveNothingBehind } from '../integration/support/holdfasts.ts';
import { until } from '../support/until.ts';
import { withBrowser } from './support/browser.ts';
import { ADMIN, Ground } from './support/ground.ts';

leaveNothingBehind();
const browser = withBrowser();

/** Ids that some objects have already. */
const HOSTILE = ['__proto__', 'constructor', 'hasOwnProperty'];
const URL_OF = 'http://127.0.0.1:9/';

/** One fleet for all tests of this file: none of them changes what another looks at. */
let ground: Ground;
beforeAll(async () => {
  ground = await Ground.start({ members: ['ana'], targets: ['t-1', ...HOSTILE] });
}, 60_000);
afterAll(() => ground?.[Symbol.asyncDispose]());

describe('the page', () => {
  it('says that no events come while its feed fails, and shows what it missed when the feed is back', async () => {
    await using visit = await browser.open();
    const { page } = visit;
    let isBroken = true;
    const answer = { status: 500, contentType: 'application/problem+json', body: '{}' };
    const feed = /\/api\/v3\/(events|history)/;
    await page.route(feed, (route) => (isBroken ? route.fulfill(answer) : route.continue()));
    await page.addInitScript((kept) => sessionStorage.setItem('holdfast.token', kept), ADMIN);
    await page.goto(`${ground.url}/#/`);
    await page.getByText('no events', { exact: true }).waitFor();
    await page.getByText('The event feed is interrupted').waitFor();
    await ground.holdfast.sessions.add({ id: 'missed', url: URL_OF, isPaused: true });
    isBroken = false;
    await page.locator('[data-age=live]').waitFor();
    await page.goto(`${ground.url}/#/feed?event=session.added`);
    await page.getByText('added missed').first().waitFor();
  });

  it('shows targets and log entries that are named like parts of every object, and nothing breaks', async () => {
    await using visit = await browser.open();
    const { page } = visit;
    const real = { at: Date.now(), instance: '__proto__', event: 'lease.acquired', key: 'x' };
    const entries = [
      { ...real, event: '__proto__', at: Date.now() },
      { ...real, at: 1e300 },
      { ...real, leaseClass: 'poll', key: '__proto__', holder: '__proto__', fence: '1' },
      {
        ...real,
        event: 'target.taken',
        target: 'constructor',
        how: 'constructor',
        from: 'toString',
      },
    ];
    const db = new SqliteConnection(ground.at.url.slice('sqlite:'.length));
    // The instances write all the time.
    db.exec('PRAGMA busy_timeout = 10000');
    for (const entry of entries)
      db.run(
        'INSERT INTO log SELECT scope, max(number) + 1, max(at), ? FROM log GROUP BY scope',
        JSON.stringify(entry),
      );
    db.close();
    await ground.holdfast.sessions.add({ id: 'after', url: URL_OF, isPaused: true });
    await ground.visit(visit);
    for (const place of ['', 'timeline', 'members', 'targets/__proto__', 'doctor', 'feed']) {
      await page.goto(`${ground.url}/#/${place}`);
      await page.locator('[data-age=live]').waitFor();
      expect(await page.getByText('This view has failed.').count()).toBe(0);
    }
    await page.getByText('added after').first().waitFor();
    const inherited = await page.evaluate(() => Object.keys(Object.prototype));
    expect(inherited).toEqual([]);
  });

  it('shows how long instances run on a browser whose clock is an hour behind', async () => {
    await using visit = await browser.open();
    const { page } = visit;
    await page.addInitScript(() => {
      const hourMs = 3_600_000;
      const origin = performance.timeOrigin - hourMs;
      Object.defineProperty(performance, 'timeOrigin', { get: () => origin });
      const real = Date.now.bind(Date);
      Date.now = () => real() - hourMs;
    });
    await ground.visit(visit, 'members');
    const row = page.getByRole('row').filter({ hasText: 'ana' }).first();
    await row.waitFor();
    const words = await row.innerText();
    expect(words).not.toMatch(/[-−]\d/);
    expect(words).toMatch(/\d+(\.\d+)? (s|min)\b/);
  });

  it('has everything again when its tab was asleep and its connections are gone', async () => {
    const { hostname: host, port } = new URL(ground.url);
    await using proxy = await FaultProxy.start({ target: { host, port: Number(port) } });
    await using visit = await browser.open();
    const { page } = visit;
    const url = `http://127.0.0.1:${proxy.port}`;
    await ground.visit(visit, 'feed?event=session.added', undefined, url);
    await page.getByRole('heading', { name: 'Feed' }).waitFor();
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('Page.setWebLifecycleState', { state: 'frozen' });
    proxy.reset();
    await ground.holdfast.sessions.add({ id: 'asleep', url: URL_OF, isPaused: true });
    await devtools.send('Page.setWebLifecycleState', { state: 'active' });
    await page.getByText('added asleep').first().waitFor();
    await page.locator('[data-age=live]').waitFor();
  });

  it('asks for a token when the server does not accept its own any more', async () => {
    const { hostname: host, port } = new URL(ground.url);
    await using proxy = await FaultProxy.start({ target: { host, port: Number(port) } });
    await using visit = await browser.open();
    const { page } = visit;
    await ground.visit(visit, '', undefined, `http://127.0.0.1:${proxy.port}`);
    const answer = { status: 401, contentType: 'application/problem+json', body: '{}' };
    await page.route(/\/api\/v3\//, (route) => route.fulfill(answer));
    proxy.reset();
    await page.getByText('The server no longer accepts your token.').waitFor();
  });

  it('shows five thousand targets, and finds one of them', async () => {
    const many = Array.from({ length: 5_000 }, (_, i) => `many-${String(i).padStart(4, '0')}`);
    await ground.holdfast.sessions.addAll(many.map((id) => ({ id, url: URL_OF, isPaused: true })));
    await using visit = await browser.open();
    const { page } = visit;
    await ground.visit(visit);
    await until(async () => /5,0\d\d/.test(await page.locator('main').innerText()), {
      what: 'all of them to be counted',
      deadlineMs: 20_000,
      every: 200,
    });
    await page.goto(`${ground.url}/#/targets/many-4999`);
    await page.getByText('many-4999').first().waitFor();
  });
});
