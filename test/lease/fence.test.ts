import { describe, expect, it } from 'vitest';
import {
  FENCE_HEADER,
  FenceGate,
  fenceFromHeaders,
  fenceHeaders,
  fenceSql,
  fenceStaleFrom,
} from '../../src/lease/fence.ts';

describe('K-11 the fence helpers', () => {
  it('K-11 FenceGate passes equal and higher fences, and refuses lower ones with the fence it has seen', () => {
    const gate = new FenceGate();
    gate.pass('r', 5);
    gate.pass('r', 5);
    gate.pass('r', 9);
    expect(() => gate.pass('r', 8)).toThrow(
      expect.objectContaining({ code: 'FENCE_STALE', resource: 'r', fence: 8, seen: 9 }),
    );
    gate.pass('other', 1);
    expect([gate.seen('r'), gate.seen('none')]).toEqual([9, 0]);
  });

  it('K-11 fenceSql returns the condition and the assignment of a fenced UPDATE', () => {
    expect(fenceSql('jobs.fence', '$2')).toEqual({ where: 'jobs.fence <= $2', set: 'fence = $2' });
    for (const [column, placeholder] of [
      ['fence; DROP TABLE jobs', '$1'],
      ['fence', '1 OR 1=1'],
      ['', '?'],
    ] as const) {
      expect(() => fenceSql(column, placeholder)).toThrow(
        expect.objectContaining({ code: 'CONFIG_INVALID' }),
      );
    }
  });

  it('K-11 a fence in an HTTP header is a decimal string, and is read back exactly', () => {
    const fence = 1_794_717_334_484_473;
    expect(fenceHeaders(fence)).toEqual({ [FENCE_HEADER]: '1794717334484473' });
    expect(fenceFromHeaders(fenceHeaders(fence))).toBe(fence);
    expect(fenceFromHeaders(new Headers(fenceHeaders(fence)))).toBe(fence);
    for (const text of ['', '-1', '1e15', '0x10', ' 1', '99999999999999999', 'NaN']) {
      expect(() => fenceFromHeaders({ [FENCE_HEADER]: text })).toThrow(
        expect.objectContaining({ code: 'CONFIG_INVALID' }),
      );
    }
    expect(() => fenceFromHeaders({})).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }));
    expect(() => fenceFromHeaders({ [FENCE_HEADER]: ['1', '2'] })).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID' }),
    );
  });

  it('K-11 fenceStaleFrom turns the refusal of a guarded Redis script into the typed error', () => {
    expect(fenceStaleFrom(new Error('FENCE_STALE 9'), 'r', 8)).toMatchObject({
      code: 'FENCE_STALE',
      fence: 8,
      seen: 9,
    });
    expect(fenceStaleFrom(new Error('OOM'), 'r', 8)).toBeUndefined();
  });
});
