import { describe, expect, it } from 'vitest';
import {
  type Effect,
  EffectAudit,
  type SimulationInvariant,
} from '../../../testing/simulate/effect-audit.ts';
import type { BegunWork } from '../../../testing/simulate/work-log.ts';

const poll: BegunWork = {
  kind: 'poll',
  subject: 'target:a',
  title: "the poll of 'a'",
  fence: 1,
  isOnce: false,
  number: 1,
  process: 'i0.1',
};
const action: BegunWork = { ...poll, kind: 'action', subject: 'action:7', isOnce: true };
const effect: Effect = {
  to: 'device',
  value: 'on',
  by: 'ana',
  atMs: 0,
  fence: null,
  idempotencyKey: null,
};

function audit({ allowed = [] as string[] } = {}): EffectAudit {
  return new EffectAudit({ nowMs: () => 7, allowed: new Set(allowed) });
}

function judged(
  effects: readonly (readonly [Partial<Effect>, BegunWork | null])[],
): SimulationInvariant | null {
  const own = audit();
  for (const [facts, work] of effects) own.accepted({ ...effect, ...facts }, work);
  return own.violation?.invariant ?? null;
}

describe('B-30 what the sink took', () => {
  it('with a lower fence after a higher one is found', () => {
    expect(
      judged([
        [{ fence: 2 }, null],
        [{ fence: 2 }, null],
      ]),
    ).toBeNull();
    expect(
      judged([
        [{ fence: 2 }, null],
        [{ fence: 1, to: 'other' }, null],
      ]),
    ).toBeNull();
    expect(
      judged([
        [{ fence: 2 }, null],
        [{ fence: 1 }, null],
      ]),
    ).toBe('fence fell');
  });

  it('twice with one idempotency key is found', () => {
    const write = { idempotencyKey: 'k' };
    expect(
      judged([
        [write, null],
        [{ ...write, to: 'other' }, null],
      ]),
    ).toBeNull();
    expect(
      judged([
        [write, null],
        [write, null],
      ]),
    ).toBe('key twice');
  });

  it('of an owner after another process had taken over is found, with a fence or without', () => {
    const later = { ...poll, fence: 2, process: 'i1.1' };
    expect(
      judged([
        [{}, poll],
        [{}, later],
      ]),
    ).toBeNull();
    expect(
      judged([
        [{}, poll],
        [{}, later],
        [{}, poll],
      ]),
    ).toBe('two owners');
    expect(
      judged([
        [{}, poll],
        [{}, { ...later, process: 'i0.1' }],
        [{}, poll],
      ]),
    ).toBeNull();
    expect(
      judged([
        [{}, later],
        [{}, { ...poll, subject: 'target:b' }],
      ]),
    ).toBeNull();
  });

  it('from two tries of one action is found, if it is the same', () => {
    const second = { ...action, number: 2, fence: 2 };
    expect(
      judged([
        [{}, action],
        [{}, action],
      ]),
    ).toBeNull();
    expect(
      judged([
        [{}, action],
        [{ value: 'off' }, second],
      ]),
    ).toBeNull();
    expect(
      judged([
        [{}, poll],
        [{}, { ...poll, number: 2 }],
      ]),
    ).toBeNull();
    expect(
      judged([
        [{}, action],
        [{}, second],
      ]),
    ).toBe('repeated effect');
  });

  it('is not judged by an invariant that is allowed to break; the first of the others counts', () => {
    const own = audit({ allowed: ['key twice'] });
    for (const fence of [2, 1, 0]) own.accepted({ ...effect, fence, idempotencyKey: 'k' }, null);
    expect(own.violation).toMatchObject({ invariant: 'fence fell', atMs: 7, about: ['device'] });
    expect(own.violation?.text).toContain('fence 1 after one with fence 2');
    expect(own.effects).toHaveLength(3);
  });
});
