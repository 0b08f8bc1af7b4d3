import { describe, expect, it } from 'vitest';
import { type Chronicle, faultsOf } from './chronicle.ts';
import type { Poll } from './poll-record.ts';

const poll = (instance: string, startMs: number, endMs: number, fence = 1): Poll => ({
  ...{ target: 't', instance, fence, startMs, arrivedMs: startMs + 1, endMs },
});

/** One target, polled by one member every 100 ms for a second. */
const calm: Chronicle = {
  polls: Array.from({ length: 10 }, (_, i) => poll('a', i * 100, i * 100 + 20)),
  phases: [{ name: 'calm', fromMs: 0, gapMs: 150 }],
  wanted: [{ target: 't', fromMs: 0, toMs: Number.POSITIVE_INFINITY }],
  standstills: [],
  told: new Map(),
  endMs: 1_000,
};

describe('a chronicle', () => {
  it('of a calm run has no faults', () => {
    expect(faultsOf(calm)).toBe('');
  });

  it('tells of two who polled at once, and what was going on', () => {
    const told = new Map([['b', [{ event: 'lease.acquired', atMs: 504, key: 't', fence: 2 }]]]);
    const faults = faultsOf({ ...calm, polls: [...calm.polls, poll('b', 505, 525, 1)], told });
    expect(faults).toContain("0.505 s 't' polled by b (fence 1) while a (fence 1) still did");
    expect(faults).toContain('0.504 s  b lease.acquired {"key":"t","fence":2}');
  });

  it('tells of a fence that went down', () => {
    const polls = [...calm.polls, poll('b', 30, 50, 2)];
    expect(faultsOf({ ...calm, polls })).toContain("'t' polled by a with fence 1 after 2");
  });

  it('does not blame a process for a poll that was stopped on its way', () => {
    const late = { ...poll('b', 30, 320, 1), arrivedMs: 310 };
    const polls = [...calm.polls.map((each) => ({ ...each, fence: 2 })), late];
    expect(faultsOf({ ...calm, polls })).not.toBe('');
    const standstills = [{ instance: 'b', fromMs: 31, toMs: 309 }];
    expect(faultsOf({ ...calm, polls, standstills })).toBe('');
  });

  it('tells of a gap that its phase does not allow, while the target was to be polled', () => {
    const polls = calm.polls.filter(({ startMs }) => startMs < 300 || startMs > 500);
    const found = faultsOf({ ...calm, polls });
    expect(found).toContain("0.220 s 't' not polled for 380 ms (calm: at most 150 ms)");
    const crash = { name: 'a crash', fromMs: 210, gapMs: 400 };
    const phases = [...calm.phases, crash, { name: 'calm again', fromMs: 610, gapMs: 150 }];
    expect(faultsOf({ ...calm, polls, phases })).toBe('');
    const wanted = [
      { target: 't', fromMs: 0, toMs: 250 },
      { target: 't', fromMs: 550, toMs: Number.POSITIVE_INFINITY },
    ];
    expect(faultsOf({ ...calm, polls, wanted })).toBe('');
  });
});
