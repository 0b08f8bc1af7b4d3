import { expect, expectTypeOf, it } from 'vitest';
import { open, type Schema } from '../../src/index.ts';

interface Bill {
  readonly total: number;
}

const bill: Schema<{ total: string }, Bill> = {
  '~standard': {
    ...{ version: 1, vendor: 'this test' },
    validate: (value) => ({ value: { total: Number((value as { total: string }).total) } }),
  },
};

it('a handler gets the payload that the schema returns, and declares its type if there is no schema', async () => {
  await using holdfast = await open('memory:');
  const actions = { CHARGE: { target: 'billing', payload: bill }, MAIL: { target: 'billing' } };
  const processor = holdfast.processor({
    ...{ name: 'billing', role: 'effect', actions },
    handlers: {
      CHARGE: (payload) => {
        expectTypeOf(payload).toEqualTypeOf<Bill>();
        return payload.total;
      },
      MAIL: ({ to }: { to: string }) => `sent to ${to}`,
    },
  });
  await processor.start();
  await using wf = await holdfast.workflows.claim('order-7', { actions });
  const charge = await wf.emit('CHARGE', { total: '42' });
  expect(await wf.result(charge.action_id)).toMatchObject({ success: true, value: 42 });
  const mail = await wf.emit('MAIL', { to: 'ana' });
  expect(await wf.result(mail.action_id)).toMatchObject({ success: true, value: 'sent to ana' });
});
