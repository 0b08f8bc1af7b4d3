import type { Locator } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { leaveNothingBehind } from '../integration/support/holdfasts.ts';
import { startUp } from '../integration/support/instances.ts';
import { until } from '../support/until.ts';
import { type Visit, withBrowser } from './support/browser.ts';
import { Ground } from './support/ground.ts';

leaveNothingBehind();
const browser = withBrowser();

const TARGETS = ['t-1', 't-2', 't-3', 't-4'];

/** Whether all of it is on the screen, and nothing lies over its middle. */
async function isInSight(element: Locator): Promise<boolean> {
  return element.evaluate((one) => {
    const { top, bottom, left, right } = one.getBoundingClientRect();
    const isInside = top >= 0 && left >= 0 && bottom <= innerHeight && right <= innerWidth;
    const above = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    return isInside && above !== null && (one.contains(above) || above.contains(one));
  });
}

const colourOf = ({ page }: Visit, name: string) =>
  page
    .getByRole('region', { name, exact: true })
    .locator('.owner i')
    .first()
    .evaluate((mark) => getComputedStyle(mark).backgroundColor);

describe('on a phone', () => {
  it('the header has one line, the current view is in sight, and a table that is cut off says so', async () => {
    await using ground = await Ground.start({ targets: TARGETS });
    await using visit = await browser.open({ size: 'phone' });
    const { page } = visit;
    await ground.visit(visit);
    const signOut = page.getByRole('button', { name: 'Sign out' });
    const [header, button] = [
      await page.locator('.top').boundingBox(),
      await signOut.boundingBox(),
    ];
    expect(header?.height).toBeLessThan(56);
    expect(button?.height).toBeLessThan(32);
    for (const [place, title] of [
      ['', 'Map'],
      ['targets', 'Targets'],
      ['workflows', 'Workflows'],
      ['doctor', 'Doctor'],
    ] as const) {
      await page.goto(`${ground.url}/#/${place}`);
      const tab = page.getByRole('navigation').locator('[aria-current=page]', { hasText: title });
      await until(() => isInSight(tab), { what: `${title} to be in sight`, deadlineMs: 10_000 });
    }
    await page.goto(`${ground.url}/#/members`);
    await page.getByText('scroll sideways').waitFor();
    await visit.keep('phone-members');
  });
});

describe('on a desk', () => {
  it('the explanation of a gap opens below its row, in sight', async () => {
    await using ground = await Ground.start({ targets: TARGETS });
    const { owner } = await ground.client.target('t-1');
    const to = [ground.idOf('ana'), ground.idOf('ben')].find((id) => id !== owner) ?? '';
    await ground.client.transfer('t-1', { to });
    await until(async () => (await ground.client.target('t-1')).owner === to, {
      ...{ what: 't-1 to have moved', deadlineMs: 20_000 },
    });
    await using visit = await browser.open();
    const { page } = visit;
    await ground.visit(visit, 'targets/t-1');
    const why = page.getByRole('button', { name: /why\?/ }).first();
    await why.click();
    await page.getByText(/^t-1 moved from/).waitFor();
    expect(await why.getAttribute('aria-expanded')).toBe('true');
    await until(() => isInSight(page.locator('.holders-why')), {
      ...{ what: 'the explanation to be in sight', deadlineMs: 10_000 },
    });
    await visit.keep('target-why');
    await why.click();
    await page.locator('.holders-why').waitFor({ state: 'detached' });
  });

  it('the inspector of the map does not cover its legend', async () => {
    await using ground = await Ground.start({ targets: TARGETS });
    await using visit = await browser.open();
    const { page } = visit;
    await ground.visit(visit);
    await page.getByText('Legend').click();
    await page.locator('[data-target]').first().hover();
    await page.locator('.map-detail dl').waitFor();
    const last = page.locator('.legend dd').last();
    await last.scrollIntoViewIfNeeded();
    await until(() => isInSight(last), { what: 'the legend to be in sight', deadlineMs: 10_000 });
    await visit.keep('map-legend');
  });

  it('an instance that restarts keeps its colour, and is marked', async () => {
    await using ground = await Ground.start({ targets: TARGETS });
    await using visit = await browser.open();
    const { page } = visit;
    await ground.visit(visit);
    const lane = page.getByRole('region', { name: 'ana', exact: true });
    await lane.locator('[data-target]').first().waitFor();
    const before = await colourOf(visit, 'ana');
    expect(await colourOf(visit, 'ben')).not.toBe(before);
    expect(await lane.getByText('restarted').count()).toBe(0);
    ground.members.get('ana')?.running.signal('SIGKILL');
    await using again = startUp('ana', { at: ground.at });
    await again.says(/^is up/, 30_000);
    await lane.getByText('restarted').waitFor();
    expect(await colourOf(visit, 'ana')).toBe(before);
    await visit.keep('map-restarted');
  });
});
