import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { leaveNothingBehind } from '../integration/support/holdfasts.ts';
import { until } from '../support/until.ts';
import { withBrowser } from './support/browser.ts';
import { Ground } from './support/ground.ts';

leaveNothingBehind();
const browser = withBrowser();

const TARGETS = ['t-1', 't-2', 't-3', 't-4', 't-5', 't-6'];

describe('the map', () => {
  it('shows who owns what; an instance killed is a failover on it, and a gap on the timeline that is explained and can be kept as a report', async () => {
    await using ground = await Ground.start({ members: ['ana', 'ben'], targets: TARGETS });
    await using visit = await browser.open();
    const { page } = visit;
    await ground.visit(visit);
    const lane = (name: string) => page.getByRole('region', { name, exact: true });
    for (const name of ['ana', 'ben'])
      await until(async () => (await lane(name).locator('[data-target]').count()) === 3, {
        what: `three cells of ${name}`,
        deadlineMs: 15_000,
      });
    const lost = await lane('ana').locator('[data-target]').first().getAttribute('data-target');
    ground.members.get('ana')?.running.signal('SIGKILL');
    await page
      .getByText(/ben.*took \d targets? from.*ana.*fail/i)
      .first()
      .waitFor();
    await until(async () => (await lane('ben').locator('[data-target]').count()) === 6, {
      what: 'all six cells to be ben’s',
      deadlineMs: 20_000,
    });
    await visit.keep('map-failover');

    // Closely: changes of hands that lie near each other are drawn as one.
    await page.goto(`${ground.url}/#/timeline?q=${lost}&for=1m`);
    const gap = page.getByRole('button', { name: /gap/i }).first();
    await gap.waitFor();
    await gap.click();
    await page
      .getByText(/last renew/i)
      .first()
      .waitFor();
    const words = await page.locator('main').innerText();
    for (const word of [/TTL/i, /woke|wake/i, /grant/i]) expect(words).toMatch(word);
    await visit.keep('timeline-gap');

    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download report' }).click(),
    ]);
    expect(download.suggestedFilename()).toMatch(/^holdfast-[\d-]+\.html$/);
    const report = readFileSync(await download.path(), 'utf8');
    // The whole time that is shown, whatever the timeline is narrowed to; and it loads nothing.
    for (const word of [...TARGETS, 'ana', 'ben']) expect(report).toContain(word);
    expect(report).not.toMatch(/<(script|link|img)[^>]+(src|href)=/);
  });

  it('shows at once what is added and paused', async () => {
    await using ground = await Ground.start({ members: ['ana'], targets: ['t-1'] });
    await using visit = await browser.open();
    const { page } = visit;
    await ground.visit(visit);
    await page.locator('[data-target="t-1"]').waitFor();
    await ground.holdfast.sessions.add({ id: 't-new', url: 'http://127.0.0.1:9/' });
    await page.locator('[data-target="t-new"]').waitFor();
    await ground.holdfast.sessions.pause('t-new');
    await page
      .getByRole('region', { name: /paused/i })
      .locator('[data-target="t-new"]')
      .waitFor();
  });
});

describe('the page', () => {
  it('says that its data is old while the server is unavailable, and continues automatically', async () => {
    await using ground = await Ground.start({ members: ['ana'], targets: ['t-1'] });
    await using visit = await browser.open();
    const { page } = visit;
    await ground.visit(visit);
    const { pid } = ground.door.running;
    process.kill(pid, 'SIGSTOP');
    await page.locator('[data-age=old]', { hasText: /\d+ s old/ }).waitFor();
    process.kill(pid, 'SIGCONT');
    await page.locator('[data-age=live]').waitFor();
  });
});
