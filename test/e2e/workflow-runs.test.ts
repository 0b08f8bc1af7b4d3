import { describe, expect, it } from 'vitest';
import type { Orchestrator } from '../../src/index.ts';
import { leaveNothingBehind } from '../integration/support/holdfasts.ts';
import { until } from '../support/until.ts';
import { withBrowser } from './support/browser.ts';
import { Ground, READER } from './support/ground.ts';

leaveNothingBehind();
const browser = withBrowser();

const SCRIPT = '<script>document.title="taken"</script><img src=x onerror=alert(1)>';
const SLOW = { timeout: 120_000 };

interface Input {
  readonly mode: string;
  readonly note: string;
}

/** A function that does what its input says. */
async function fulfil(order: Orchestrator, { mode, note }: Input) {
  await order.step('reserve', () => ({ note }));
  if (mode === 'sleep') await order.sleep('review', '3d');
  if (mode === 'signal') await order.waitFor('delivered', { timeout: '14d' });
  if (mode === 'fail') throw new Error(`declined: ${note}`);
  if (mode === 'again')
    await order.step(
      'charge',
      () => {
        throw new Error(`the bank is away: ${note}`);
      },
      { retry: { tries: 1_000, backoff: '1s..1s' } },
    );
  return { mode, note };
}

async function started(modes: readonly string[]): Promise<Ground> {
  const ground = await Ground.start({ members: [] });
  const fn = ground.holdfast.workflow('fulfil', fulfil, { retry: { tries: 1 } });
  await fn.run();
  for (const mode of modes) await fn.start(`order-${mode}`, { mode, note: SCRIPT });
  return ground;
}

describe('runs of workflow functions', () => {
  it(
    'B-20 are listed by state and function, filtered, and updated as they change',
    SLOW,
    async () => {
      await using ground = await started(['done', 'fail', 'signal', 'sleep']);
      await ground.holdfast.workflows.start('bill', 'invoice-1', null);
      await using visit = await browser.open();
      const { page } = visit;
      await ground.visit(visit, 'workflows');
      const row = (id: string) => page.locator(`[data-workflow="${id}"]`);
      const shows = (id: string, state: string) => row(id).locator(`[data-run=${state}]`).waitFor();
      await shows('order-done', 'done');
      await shows('order-fail', 'failed');
      await shows('order-signal', 'waiting');
      await shows('order-sleep', 'sleeping');
      await shows('invoice-1', 'due');
      expect(await row('order-signal').innerText()).toContain('for delivered, at most 13 d');
      expect(await row('order-fail').innerText()).toContain('declined: <script>');

      await page.getByLabel('Function').selectOption('bill');
      await row('order-done').waitFor({ state: 'detached' });
      await shows('invoice-1', 'due');
      await page.getByLabel('Function').selectOption('');
      await page.getByRole('button', { name: /^Failed/ }).click();
      await row('invoice-1').waitFor({ state: 'detached' });
      expect(await page.locator('[data-workflow]').count()).toBe(1);
      expect(page.url()).toContain('state=failed');
      await page.getByRole('button', { name: /^Failed/ }).click();

      await ground.holdfast.workflows.signal('order-signal', 'delivered', 1);
      await shows('order-signal', 'done');
      await visit.keep('workflow-runs');
    },
  );

  it('B-20 are shown with steps, waits, values and history, all of it as text', SLOW, async () => {
    await using ground = await started(['again', 'signal']);
    await using visit = await browser.open();
    const { page } = visit;
    await ground.visit(visit, 'workflows/order-signal');
    const step = (name: string, state: string) =>
      page.locator(`[data-step-name="${name}"][data-step-state=${state}]`).waitFor();
    await step('reserve', 'done');
    await step('delivered', 'waiting');
    const status = page.getByRole('region', { name: 'Status' });
    expect(await status.innerText()).toMatch(/Next wake-up\s+20\d\d-/);
    await page
      .getByText('Input', { exact: false })
      .filter({ hasText: /^Input/ })
      .last()
      .click();
    await page.getByText('"mode": "signal"').waitFor();
    expect(await page.getByRole('region', { name: 'History' }).innerText()).toContain(
      'Suspended: waits for signal delivered',
    );

    // A step that fails now is not in the store yet: the log has its tries.
    await page.goto(`${ground.url}/#/workflows/order-again`);
    await step('charge', 'retrying');
    await page.getByText(/Attempt 2 failed at .*the bank is away: <script>/).waitFor();
    await page.getByText('Run by').waitFor();
    const { instance } = await ground.client.workflow('order-again');
    expect(instance).toBe(ground.holdfast.instanceId);
    expect(await status.locator('.owner').first().getAttribute('title')).toBe(instance);
    expect(await page.locator('img[src="x"]').count()).toBe(0);
    expect(await page.title()).not.toBe('taken');
    await visit.keep('workflow-run-again');
  });

  it(
    'B-18 get the signal that they wait for from the page, once it is confirmed',
    SLOW,
    async () => {
      await using ground = await started(['signal']);
      await using visit = await browser.open();
      const { page } = visit;
      await ground.visit(visit, 'workflows/order-signal');
      const send = page.getByRole('button', { name: 'Send signal …' });
      await until(
        async () =>
          (await page.getByRole('textbox', { name: 'Signal' }).inputValue()) === 'delivered',
        {
          ...{ what: 'the name of the signal', deadlineMs: 20_000 },
        },
      );
      await page.getByLabel('Value (JSON)').fill('not json');
      expect(await send.isDisabled()).toBe(true);
      await page.getByLabel('Value (JSON)').fill('{"at":"noon"}');
      await send.click();
      const dialog = page.getByRole('dialog', { name: 'Send signal' });
      expect(await dialog.innerText()).toContain(
        `holdfast workflows signal order-signal delivered --value '{"at":"noon"}'`,
      );
      await dialog.getByRole('button', { name: 'Send signal', exact: true }).click();
      await page.locator('[data-run=done]').first().waitFor();
      const { run } = await ground.client.workflow('order-signal');
      expect(run?.steps.at(-1)).toMatchObject({ value: { text: '{"at":"noon"}' } });
      const { events } = await until(
        async () => {
          const page = await ground.client.history({ event: 'operator.acted' });
          return page.events.length > 0 && page;
        },
        { what: 'the log to tell', deadlineMs: 20_000 },
      );
      expect(events).toMatchObject([{ action: 'workflow.signal', subject: 'order-signal' }]);
    },
  );

  it('B-19 that failed are restarted by an administrator, and by no reader', SLOW, async () => {
    await using ground = await started(['fail']);
    await using reading = await browser.open();
    await ground.visit(reading, 'workflows/order-fail', READER);
    await reading.page.locator('[data-run=failed]').first().waitFor();
    expect(await reading.page.getByRole('button', { name: 'Restart …' }).isDisabled()).toBe(true);
    await using visit = await browser.open();
    const { page } = visit;
    await ground.visit(visit, 'workflows/order-fail');
    await page.getByRole('button', { name: 'Restart …' }).click();
    const dialog = page.getByRole('dialog', { name: 'Restart' });
    await dialog.getByRole('button', { name: 'Restart', exact: true }).click();
    await page.getByText('An operator restarts the function').waitFor();
    await visit.keep('workflow-run-restarted');
  });
});
