import { describe, expect, it } from 'vitest';
import { confirmationNow } from '../../src/core/validity.ts';
import { draftAction } from '../../src/workflow/action.ts';
import { Attempt, type HandlerContext } from '../../src/workflow/attempt.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

const LEASE_ID = '5b2a9f0e-4a3a-4f0f-9a52-3d5a3f1f8f11';
const ACTION_ID = '0d3c7c1e-9b7e-4c55-8a55-6c0f4f0a9c22';

/** A handler at work, whose claim is good for 19 s. */
function scene() {
  const clock = new FakeClock();
  const draft = { actionId: ACTION_ID, workflow: 'order', type: 'STEP', target: 'press' };
  const more = {
    payload: null,
    priority: 5,
    timeoutMs: null,
    origin: null,
    createdAtMs: clock.wallMs(),
  };
  const action = { ...draftAction({ ...draft, ...more }).stored, leaseId: LEASE_ID, epoch: 0 };
  const claimNow = () => ({ ...confirmationNow(clock), validMs: 19_000, jumpMs: 500 });
  const taken = { kind: 'reserved', workflow: 'order', action, fence: 7, tries: 1 } as const;
  const attempt = new Attempt(clock, taken, claimNow());
  const contexts: HandlerContext[] = [];
  void attempt.run((_, context) => {
    contexts.push(context);
    return new Promise(() => {});
  }, 60_000);
  const [context] = contexts;
  if (context === undefined) throw new Error('the handler was not called');
  return { clock, attempt, context, extend: () => attempt.extend(claimNow()) };
}

describe('Attempt', () => {
  it('W-05 a handler may run until its claim expires here, to the millisecond', () => {
    const { clock, context } = scene();
    clock.block(18_999);
    expect(() => context.assertHeld()).not.toThrow();
    clock.block(1);
    expect(() => context.assertHeld()).toThrow('its claim has expired');
    expect(context.signal.aborted).toBe(true);
  });

  it('W-05 a handler must stop after its host has slept past the end of its claim', () => {
    const { clock, context } = scene();
    clock.jumpWall(18_000);
    expect(() => context.assertHeld()).not.toThrow();
    clock.jumpWall(1_000);
    expect(() => context.assertHeld()).toThrow('its claim has expired');
  });

  it('W-05 a handler must stop while a wall clock that was set back may hide a sleep, unless its claim was extended since', () => {
    const extended = scene();
    extended.clock.jumpWall(-3_600_000);
    extended.extend();
    expect(() => extended.context.assertHeld()).not.toThrow();
    const { clock, context } = scene();
    clock.jumpWall(-400);
    expect(() => context.assertHeld()).not.toThrow();
    clock.jumpWall(-200);
    expect(() => context.assertHeld()).toThrow('its claim has expired');
  });
});
