import axe from 'axe-core';
import { describe, expect, it } from 'vitest';
import { leaveNothingBehind, take } from '../integration/support/holdfasts.ts';
import { type Visit, withBrowser } from './support/browser.ts';
import { Ground } from './support/ground.ts';

leaveNothingBehind();
const browser = withBrowser();

const SLOW = { timeout: 120_000 };
const TARGETS = Array.from({ length: 40 }, (_, i) => `station-${i}`);

/** What axe finds that is serious or worse, where it is. */
async function barriers({ page }: Visit): Promise<string[]> {
  await page.evaluate(axe.source);
  const found: axe.Result[] = await page.evaluate('axe.run().then(({ violations }) => violations)');
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(
      ({ id, nodes }) =>
        `${id}: ${nodes
          .map(({ html }) => html)
          .slice(0, 3)
          .join(' ')}`,
    );
}

/** Every view, with something in it. */
async function furnished(): Promise<{ ground: Ground; places: string[] }> {
  const config =
    "resources: { tuners: 2 }, pipelines: { live: { run: async ({ signal }) => new Promise((end) => signal.addEventListener('abort', end)), resource: 'tuners' } }";
  const ground = await Ground.start({ targets: TARGETS, roles: 'api,worker', config });
  await take(ground.holdfast, 'nightly-report');
  const { sessionId } = await ground.client.start({ serviceRef: 'channel-7' });
  await ground.client.waitFor(sessionId, { until: 'RUNNING' });
  const workflow = await ground.holdfast.workflows.claim('order-42');
  await workflow.emit('CHARGE', { order: 42 }, { target: 'payments' });
  const fulfil = ground.holdfast.workflow('fulfil', async (order) => {
    await order.step('reserve', () => ({ shelf: 7 }));
    await order.waitFor('delivered', { timeout: '14d' });
  });
  await fulfil.start('order-43', null);
  await fulfil.run();
  const places = [
    '',
    'targets',
    'timeline',
    'feed',
    'members',
    `members/${ground.idOf('ana')}`,
    'targets/station-1',
    'leases',
    'leases/nightly-report',
    'workflows',
    'workflows/order-42',
    'workflows/order-43',
    'sessions',
    `sessions/${sessionId}`,
    'doctor',
    // The map again: by now the style sheets of all views are loaded.
    '',
  ];
  return { ground, places };
}

const nameOf = (place: string) =>
  place === '' ? 'map' : place.replace(/[^a-z]+.*$/, '') + (place.includes('/') ? '-one' : '');

describe('every view', () => {
  it(
    'shows real data, has no serious barrier, and fits in light and dark, wide and narrow',
    SLOW,
    async () => {
      const { ground, places } = await furnished();
      await using _ground = ground;
      for (const look of [
        { theme: 'light', size: 'desk' },
        { theme: 'dark', size: 'desk' },
        { theme: 'light', size: 'phone' },
      ] as const) {
        await using visit = await browser.open(look);
        const { page } = visit;
        await ground.visit(visit);
        for (const place of places) {
          await page.goto(`${ground.url}/#/${place}`);
          await page.locator('main h1').first().waitFor();
          await page.getByText('Loading …').waitFor({ state: 'detached' });
          const name = `${nameOf(place)}-${look.theme}-${look.size}`;
          await visit.keep(name);
          const width = await page.evaluate(() => document.documentElement.scrollWidth);
          expect(width, `${name} is as wide as the screen`).toBeLessThanOrEqual(
            look.size === 'desk' ? 1440 : 390,
          );
          // On a phone the same things stand below each other.
          if (look.size === 'desk') expect(await barriers(visit), name).toEqual([]);
        }
      }
    },
  );

  it('says what to do next where there is nothing yet', SLOW, async () => {
    await using ground = await Ground.start({ members: [] });
    for (const theme of ['light', 'dark'] as const) {
      await using visit = await browser.open({ theme });
      const { page } = visit;
      await ground.visit(visit);
      for (const place of [
        '',
        'targets',
        'timeline',
        'feed',
        'members',
        'leases',
        'workflows',
        'sessions',
        'doctor',
      ]) {
        await page.goto(`${ground.url}/#/${place}`);
        await page.getByText('Loading …').waitFor({ state: 'detached' });
        if (place !== 'doctor')
          await page
            .locator('main')
            .getByText('holdfast ')
            .filter({ visible: true })
            .first()
            .waitFor();
        await visit.keep(`empty-${nameOf(place)}-${theme}`);
        expect(await barriers(visit), place).toEqual([]);
      }
    }
  });

  it('is reached by keyboard', async () => {
    await using ground = await Ground.start({ members: ['ana'], targets: ['t-1'] });
    await using visit = await browser.open();
    const { page } = visit;
    await ground.visit(visit);
    for (const [key, view] of Object.entries({
      a: 'targets',
      t: 'timeline',
      f: 'feed',
      m: 'members',
      i: 'members',
      l: 'leases',
      w: 'workflows',
      s: 'sessions',
      d: 'doctor',
    })) {
      await page.keyboard.press('g');
      await page.keyboard.press(key);
      await page.waitForURL(`**/#/${view}`);
    }
    await page.keyboard.press('g');
    await page.keyboard.press('h');
    await page.locator('[data-target]').first().waitFor();
    await page.keyboard.press('/');
    expect(await page.evaluate(() => document.activeElement?.hasAttribute('data-search'))).toBe(
      true,
    );
    await page.keyboard.press('Escape');
    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor({ state: 'hidden' });
  });
});
