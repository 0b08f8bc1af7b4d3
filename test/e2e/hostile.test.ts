import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { leaveNothingBehind, take } from '../integration/support/holdfasts.ts';
import { until } from '../support/until.ts';
import { withBrowser } from './support/browser.ts';
import { ADMIN, Ground } from './support/ground.ts';

leaveNothingBehind();
const browser = withBrowser();

const SCRIPT = '<script>document.title="taken"</script><img src=x onerror=alert(1)>';

/** With headers that a browser would not let a page set. */
function asked(
  url: string,
  method: string,
  headers: Readonly<Record<string, string>>,
): Promise<{ status: number | undefined; body: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode, body: Buffer.concat(chunks).toString() }),
      );
    });
    sent.on('error', reject);
    sent.end();
  });
}

describe('what others write into the store', () => {
  it('is text on the page, whatever it looks like', async () => {
    await using ground = await Ground.start({
      members: ['ana'],
      targets: ['t-1'],
      roles: 'api,worker',
    });
    await take(ground.holdfast, 'device', { holder: SCRIPT });
    const { sessionId } = await ground.client.start({ serviceRef: SCRIPT });
    const workflow = await ground.holdfast.workflows.claim('order-1');
    await workflow.updateState({ note: SCRIPT });
    await using visit = await browser.open();
    const { page } = visit;
    const places = [
      'leases',
      'leases/device',
      'sessions',
      `sessions/${sessionId}`,
      'workflows',
      'workflows/order-1',
      'feed',
    ];
    await ground.visit(visit);
    for (const place of places) {
      await page.goto(`${ground.url}/#/${place}`);
      if (place !== 'feed')
        await until(() => page.getByText('<script>document').first().isVisible(), {
          what: `the text on ${place}`,
          deadlineMs: 15_000,
        });
      expect(await page.locator('img[src="x"]').count()).toBe(0);
    }
    await page.goto(`${ground.url}/#/targets/${encodeURIComponent(SCRIPT)}`);
    await page.getByRole('main').getByText('<script>document').first().waitFor();
    expect(await page.title()).not.toBe('taken');
  });
});

describe('pages of strangers', () => {
  it('are not answered under a foreign name, change nothing from a foreign origin, and can not frame the page', async () => {
    await using ground = await Ground.start({ members: ['ana'], targets: ['t-1'] });
    const { url } = ground;
    const foreign = await asked(`${url}/`, 'GET', { Host: 'evil.example' });
    expect([foreign.status, foreign.body]).toEqual([403, expect.stringContaining('foreign-host')]);
    const pause = `${url}/api/v3/sessions/t-1/pause`;
    const headers = { Authorization: `Bearer ${ADMIN}` };
    const refused = await asked(pause, 'POST', { ...headers, Origin: 'https://evil.example' });
    expect([refused.status, refused.body]).toEqual([
      403,
      expect.stringContaining('foreign-origin'),
    ]);
    expect((await ground.client.target('t-1')).reason).toBe('kept');
    expect((await asked(pause, 'POST', { ...headers, Origin: url })).status).toBe(200);
    const policy = (await fetch(url)).headers.get('content-security-policy') ?? '';
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("script-src 'self'");
    expect(policy).not.toContain('unsafe');
  });

  it('run no script on the page, even where one gets into it', async () => {
    await using ground = await Ground.start({ members: ['ana'], targets: ['t-1'] });
    await using visit = await browser.open();
    const { page } = visit;
    await ground.visit(visit);
    await page.evaluate(() => {
      const script = document.createElement('script');
      script.textContent = 'document.title = "taken"';
      document.body.append(script);
    });
    await until(() => visit.complaints.some((text) => /Content Security Policy/.test(text)), {
      what: 'the browser to refuse it',
    });
    visit.complaints.length = 0;
    expect(await page.title()).not.toBe('taken');
  });
});
