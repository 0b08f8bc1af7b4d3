import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { privateFolder } from '../integration/support/cli.ts';
import { leaveNothingBehind } from '../integration/support/holdfasts.ts';
import { startUp } from '../integration/support/instances.ts';
import { withBrowser } from './support/browser.ts';
import { Ground, READER } from './support/ground.ts';

leaveNothingBehind();
const browser = withBrowser();

describe('entering the page', () => {
  it('takes the address that was printed where no token is configured, once', async () => {
    const at = { url: `sqlite:${join(privateFolder(), 'holdfast.db')}` };
    await using up = startUp('page', { at, roles: 'api', config: 'api: { port: 0 }' });
    await up.says(/^is up/, 30_000);
    const address = /^PAGE=(\S+)$/m.exec(up.running.stderr)?.[1] ?? '';
    expect(address).toMatch(/#pass=[0-9a-f]+$/);
    await using first = await browser.open();
    await first.page.goto(address);
    await first.page.locator('[data-age=live]').waitFor();
    expect(first.page.url()).not.toContain('pass');
    await first.page.reload();
    await first.page.locator('[data-age=live]').waitFor();
    await using second = await browser.open();
    await second.page.goto(address);
    await second.page.getByText('was used before').waitFor();
  });

  it('needs a token, says so when it is wrong, and forgets it when asked to', async () => {
    await using ground = await Ground.start({ members: ['ana'], targets: ['t-1'] });
    await using visit = await browser.open();
    const { page } = visit;
    await page.goto(ground.url);
    await page.getByLabel('Token').fill('a-token-that-nobody-knows');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('The server does not know this token').waitFor();
    await page.getByLabel('Token').fill(READER);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('read only').waitFor();
    await page.locator('[data-age=live]').waitFor();
    await page.reload();
    await page.locator('[data-age=live]').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Token').waitFor();
    expect(await page.evaluate(() => [sessionStorage.length, localStorage.length])).toEqual([0, 0]);
  });
});
