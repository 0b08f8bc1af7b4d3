import { describe, expect, it } from 'vitest';
import { leaveNothingBehind } from '../integration/support/holdfasts.ts';
import { until } from '../support/until.ts';
import { withBrowser } from './support/browser.ts';
import { Ground, READER } from './support/ground.ts';

leaveNothingBehind();
const browser = withBrowser();

/** What was done, and by whom, as the log that all share has it. */
async function acted(ground: Ground, action: string): Promise<Record<string, unknown>> {
  return until(
    async () => {
      const { entries } = await ground.holdfast.log.recall();
      return entries.find((entry) => entry.event === 'operator.acted' && entry.action === action);
    },
    { what: `'${action}' to be written down`, deadlineMs: 10_000, every: 50 },
  );
}

describe('who may act', () => {
  it('drains a member, sees it hand everything over, and takes that back', async () => {
    await using ground = await Ground.start({ targets: ['t-1', 't-2', 't-3', 't-4'] });
    await using visit = await browser.open();
    const { page } = visit;
    const ana = ground.idOf('ana');
    await ground.visit(visit, `members/${ana}`);
    await page.getByRole('button', { name: 'Drain …' }).click();
    const dialog = page.getByRole('dialog', { name: 'Drain' });
    expect(await dialog.innerText()).toContain(`holdfast drain ${ana}`);
    await dialog.getByRole('button', { name: 'Drain', exact: true }).click();
    await page
      .getByText(/draining/i)
      .first()
      .waitFor();
    await until(
      async () => (await ground.client.members()).find(({ id }) => id === ana)?.owned === 0,
      {
        what: 'ana to own nothing',
        deadlineMs: 20_000,
      },
    );
    expect(await acted(ground, 'member.drain')).toMatchObject({ subject: ana, by: 'api:admin' });
    await page
      .getByRole('button', { name: /^Undo|^Undrain|^Take part/ })
      .first()
      .click();
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /^Undo|^Undrain|^Take part/ })
      .click();
    await until(
      async () => (await ground.client.members()).find(({ id }) => id === ana)?.owned === 2,
      {
        what: 'ana to have its share again',
        deadlineMs: 20_000,
      },
    );
  });

  it('pauses a target, resumes it, hands it to another, and revokes it with a reason', async () => {
    await using ground = await Ground.start({ targets: ['t-1', 't-2'] });
    await using visit = await browser.open();
    const { page } = visit;
    await ground.visit(visit, 'targets/t-1');
    const confirm = async (name: RegExp) => {
      await page.getByRole('button', { name }).first().click();
      const dialog = page.getByRole('dialog').filter({ visible: true });
      await dialog.getByRole('button', { name }).click();
    };
    await confirm(/^Pause/);
    await page
      .getByText(/paused/i)
      .first()
      .waitFor();
    expect(await acted(ground, 'session.pause')).toMatchObject({ subject: 't-1' });
    await confirm(/^Resume/);
    const { owner } = await until(
      async () => {
        const target = await ground.client.target('t-1');
        return target.reason === 'kept' && target;
      },
      { what: 't-1 to have an owner again', deadlineMs: 20_000, every: 50 },
    );
    const other = [ground.idOf('ana'), ground.idOf('ben')].find((id) => id !== owner) ?? '';
    await page.getByLabel('Move to').selectOption(other);
    await confirm(/^Transfer/);
    await until(async () => (await ground.client.target('t-1')).owner === other, {
      what: 't-1 to be the other’s',
      deadlineMs: 20_000,
    });
    expect(await acted(ground, 'target.transfer')).toMatchObject({ subject: 't-1' });

    // A page that still shows the lease from before would revoke that one, and spare the new owner's.
    // The other claims it with a fence of its own, so the fence may change once more.
    const isShown = async () => {
      const { fence } = await ground.client.target('t-1');
      return page.locator('.fence', { hasText: fence }).first().isVisible();
    };
    await until(isShown, { what: 'the page to show the new lease', deadlineMs: 20_000 });
    await page
      .getByRole('button', { name: /^Revoke/ })
      .first()
      .click();
    const dialog = page.getByRole('dialog').filter({ visible: true });
    await dialog.getByRole('button', { name: /^Revoke/ }).click();
    expect(await dialog.isVisible(), 'without a reason nothing is done').toBe(true);
    await dialog.getByLabel(/Reason/).fill('it polls the wrong thing');
    await dialog.getByRole('button', { name: /^Revoke/ }).click();
    expect(await acted(ground, 'target.revoke')).toMatchObject({
      reason: 'it polls the wrong thing',
    });
    await ground.settled();
    await visit.keep('target-acted');
  });
});

describe('who may only look', () => {
  it('is offered nothing, is told why, and is refused whatever it sends all the same', async () => {
    await using ground = await Ground.start({ targets: ['t-1'] });
    await using visit = await browser.open();
    const { page } = visit;
    await ground.visit(visit, 'targets/t-1', READER);
    const pause = page.getByRole('button', { name: /^Pause/ });
    expect(await pause.isDisabled()).toBe(true);
    expect(await pause.getAttribute('title')).toContain('v3:write');
    const status = await page.evaluate(async (token) => {
      const headers = { authorization: `Bearer ${token}` };
      return (await fetch('api/v3/sessions/t-1/pause', { method: 'POST', headers })).status;
    }, READER);
    expect(status).toBe(403);
    expect((await ground.client.target('t-1')).reason).toBe('kept');
  });
});
