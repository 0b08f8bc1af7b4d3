import { describe, expect, it } from 'vitest';
import { FaultProxy } from '../../testing/index.ts';
import { leaveNothingBehind } from '../integration/support/holdfasts.ts';
import { until } from '../support/until.ts';
import { withBrowser } from './support/browser.ts';
import { Ground } from './support/ground.ts';

leaveNothingBehind();
const browser = withBrowser();

describe('the feed', () => {
  it('loses no event when its connection is cut, again and again', async () => {
    await using ground = await Ground.start({ members: ['ana'], targets: ['t-1'] });
    const { hostname: host, port } = new URL(ground.url);
    await using proxy = await FaultProxy.start({ target: { host, port: Number(port) } });
    await using visit = await browser.open();
    const { page } = visit;
    // Tall enough for all rows: what is not seen is not drawn.
    await page.setViewportSize({ width: 1440, height: 3_000 });
    await ground.visit(visit, '', undefined, `http://127.0.0.1:${proxy.port}`);
    await page.goto(`http://127.0.0.1:${proxy.port}/#/feed?event=session.added`);
    // What the view is made of comes once, and is not what is to be cut.
    await page.getByRole('heading', { name: 'Feed' }).waitFor();
    await page.getByText('added t-1').first().waitFor();
    const ids = Array.from({ length: 30 }, (_, i) => `cut-${String(i).padStart(2, '0')}`);
    for (const [i, id] of ids.entries()) {
      await ground.holdfast.sessions.add({ id, url: 'http://127.0.0.1:9/' });
      if (i % 6 === 5) proxy.reset();
    }
    await until(
      async () => {
        const seen = await page.locator('main').innerText();
        const missing = ids.filter((id) => !seen.includes(id));
        if (missing.length > 0) throw new Error(`not there: ${missing.join(', ')}`);
        return true;
      },
      { what: 'every event to be there', deadlineMs: 20_000, every: 100 },
    );
    const words = await page.locator('main').innerText();
    for (const id of ids) expect(words.split(`added ${id}`)).toHaveLength(2);
    await visit.keep('feed-cut');
  });
});
