import { describe, expect, expectTypeOf, it } from 'vitest';
import type { Schema } from '../../src/core/schema.ts';
import { actionOf, readAction } from '../../src/workflow/action.ts';
import { inMemory, LONG_MS } from '../support/workflow-world.ts';

const A = '00000000-0000-4000-8000-00000000000a';
const B = '00000000-0000-4000-8000-00000000000b';

const GOOD = {
  action_id: A,
  workflow_id: 'w',
  action_type: 'STEP',
  target_node_type: 't',
  payload: { list: [1, { deep: true }] },
  lease_id: B,
  epoch: 0,
  priority: 5,
  created_at: '2026-01-31T12:00:00.000Z',
  timeout_ms: null,
};

/** A schema by hand, as zod makes them: `2` and `'2'` are numbers for it, and what it gives on is the number. */
const amount = (isAsync: boolean): Schema<{ amount: number | string }, { amount: number }> => ({
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) => {
      const given = Number((value as { amount?: unknown } | null)?.amount);
      const result = Number.isNaN(given)
        ? { issues: [{ message: 'it is no number', path: ['amount'] }, { message: 'nor text' }] }
        : { value: { amount: given } };
      return isAsync ? Promise.resolve(result) : result;
    },
  },
});

const claimed = async () => {
  const world = await inMemory.make();
  const actor = await world.actor();
  const wf = await actor.holdfast.workflows.claim('w', { ttl: LONG_MS });
  return { world, actor, wf };
};

describe('an action', () => {
  it('W-02 an action has exactly the fields of the format, priority 5 by default, and never changes', async () => {
    const { world, wf } = await claimed();
    await using _ = world;
    const action = await wf.emit('STEP', { list: [1] }, { target: 't' });
    expect(action).toEqual({
      ...{ action_id: expect.any(String), workflow_id: 'w', action_type: 'STEP' },
      ...{ target_node_type: 't', payload: { list: [1] }, lease_id: wf.leaseId, epoch: 0 },
      ...{ priority: 5, created_at: '2026-01-01T00:00:00.000Z', timeout_ms: null },
    });
    const { list } = action.payload as { list: number[] };
    expect(() => Object.assign(action, { epoch: 7 })).toThrow(TypeError);
    expect(() => list.push(2)).toThrow(TypeError);
    const more = { target: 't', priority: 10, timeout: '2s', actionId: A };
    expect(await wf.emit('STEP', null, more)).toMatchObject({
      ...{ action_id: A, epoch: 1, priority: 10, timeout_ms: 2_000, payload: null },
    });
  });

  it('W-02 an invalid action is refused with the field and the rule', () => {
    expect(readAction(GOOD)).toBe(GOOD);
    const bad: [string, object][] = [
      ['extra', { extra: 1 }],
      ['action_id', { action_id: 'a' }],
      ['lease_id', { lease_id: null }],
      ['workflow_id', { workflow_id: 'a b' }],
      ['action_type', { action_type: '' }],
      ['target_node_type', { target_node_type: 7 }],
      ['payload', { payload: undefined }],
      ...[-1, 1.5, '1', Number.NaN].map((epoch): [string, object] => ['epoch', { epoch }]),
      ...[0, 11, 5.5, '5'].map((priority): [string, object] => ['priority', { priority }]),
      ['created_at', { created_at: 'yesterday' }],
      ...[0, -1, 1e12].map((timeout_ms): [string, object] => ['timeout_ms', { timeout_ms }]),
    ];
    for (const [field, change] of bad)
      expect(() => readAction({ ...GOOD, ...change })).toThrow(
        expect.objectContaining({ code: 'ACTION_INVALID', field }),
      );
    for (const whole of [null, undefined, 7, 'action', [], JSON.parse('{"__proto__": {}}')])
      expect(() => readAction(whole)).toThrow(expect.objectContaining({ code: 'ACTION_INVALID' }));
  });

  it('W-02 an action from the store is frozen; readAction leaves the object of its caller as it is', () => {
    const body =
      '{"action_type":"STEP","payload":{"a":[1]},"created_at":"2026-01-31T12:00:00.000Z","timeout_ms":null}';
    const stored = { id: A, target: 't', priority: 5, body, leaseId: B, epoch: 3 };
    const action = actionOf('w', stored);
    expect(Object.isFrozen((action.payload as { a: number[] }).a)).toBe(true);
    readAction(GOOD);
    expect(Object.isFrozen(GOOD.payload)).toBe(false);
  });

  it('W-02 an action that JSON would change is refused before it uses an epoch', async () => {
    const { world, wf } = await claimed();
    await using _ = world;
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    const invalid = { code: 'ACTION_INVALID' };
    for (const payload of [undefined, () => 1, 10n, { big: 10n }, cycle])
      await expect(wf.emit('STEP', payload, { target: 't' })).rejects.toMatchObject(invalid);
    for (const options of [{ priority: 0 }, { priority: 11 }, { actionId: 'mine' }, { timeout: 0 }])
      await expect(wf.emit('STEP', 1, { target: 't', ...options })).rejects.toMatchObject(invalid);
    const config = { code: 'CONFIG_INVALID' };
    for (const options of [{}, { target: 'a b' }, { target: 't', colour: 1 }, { timeout: 'soon' }])
      await expect(wf.emit('STEP', 1, options)).rejects.toMatchObject(config);
    expect([wf.epoch, await world.store.streams.names({ timeoutMs: 1_000 })]).toEqual([0, []]);
  });
});

describe('schemas of actions', () => {
  it.each([false, true])(
    'W-04 a schema is checked when an action is emitted and when it is handled; asynchronous: %s',
    async (isAsync) => {
      await using world = await inMemory.make();
      const { holdfast } = await world.actor();
      const schema = amount(isAsync);
      const actions = { PAY: { target: 'bank', payload: schema, result: schema } };
      const wf = await holdfast.workflows.claim('w', { ttl: LONG_MS, actions });
      const untyped = await holdfast.workflows.claim('v', { ttl: LONG_MS });
      const paid: number[] = [];
      const bank = holdfast.processor({
        ...{ name: 'bank', role: 'effect', actions },
        handlers: {
          PAY: (payload) => {
            paid.push(payload.amount);
            return payload.amount === 13 ? ({ amount: 'unlucky' } as never) : payload;
          },
        },
      });
      await expect(wf.emit('PAY', { amount: 'much' })).rejects.toMatchObject({
        ...{
          code: 'ACTION_INVALID',
          field: 'payload.amount',
          rule: 'it is no number (and 1 more)',
        },
      });
      expect(wf.epoch).toBe(0);
      const good = await wf.emit('PAY', { amount: '2' });
      expect(good.payload).toEqual({ amount: '2' });
      expect(await bank.process(good)).toMatchObject({ value: { amount: 2 } });
      const foreign = await untyped.emit('PAY', { amount: 'much' }, { target: 'bank' });
      expect(await bank.process(foreign)).toMatchObject({
        ...{ success: false, is_dead: false, error: { name: 'ActionInvalidError' } },
      });
      const unlucky = await wf.emit('PAY', { amount: 13 });
      expect((await bank.process(unlucky)).error?.message).toContain('result.amount');
      expect(paid).toEqual([2, 13]);
    },
  );

  it('W-02 a schema gives types to payloads, handlers and results', async () => {
    await using world = await inMemory.make();
    const { holdfast } = await world.actor();
    const actions = { PAY: { target: 'bank', payload: amount(false), result: amount(false) } };
    const wf = await holdfast.workflows.claim('w', { ttl: LONG_MS, actions });
    // @ts-expect-error: it is an object with an amount
    await expect(wf.emit('PAY', { sum: 2 })).rejects.toMatchObject({ code: 'ACTION_INVALID' });
    // @ts-expect-error: there is no such action
    await expect(wf.emit('STEAL', {})).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
    const bank = holdfast.processor({
      ...{ name: 'bank', role: 'effect', actions },
      handlers: {
        PAY: (payload) => {
          expectTypeOf(payload).toEqualTypeOf<{ amount: number }>();
          return { amount: '3' };
        },
      },
    });
    const action = await wf.emit('PAY', { amount: 2 });
    await bank.process(action);
    const result = await wf.result<'PAY'>(action.action_id);
    expectTypeOf(result.value).toEqualTypeOf<{ amount: number } | null>();
    expect(result.value).toEqual({ amount: 3 });
    holdfast.processor({
      ...{ name: 'bank', role: 'effect', actions },
      // @ts-expect-error: a result is an object with an amount
      handlers: { PAY: () => 'paid' },
    });
  });
});
