import { describe, expect, it } from 'vitest';
import { type RangeText, timeRange } from '../../src/incident/time-range.ts';

/** Half past two in the afternoon, in the zone of the test. */
const NOW = new Date(2026, 5, 2, 14, 30);

function range(text: RangeText): [string, string] | null {
  const found = timeRange(text, NOW.getTime());
  return found && [localText(found.fromMs), localText(found.toMs)];
}

function localText(ms: number): string {
  const at = new Date(ms);
  const two = (part: number) => String(part).padStart(2, '0');
  return `${at.getDate()}. ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

describe('a range of time', () => {
  it('is everything, unless something is given', () => {
    expect(range({})).toBeNull();
  });

  it.each([
    [{ last: '30m' }, '2. 14:00:00', '2. 14:30:00'],
    [{ last: '30m', to: '12:00' }, '2. 11:30:00', '2. 12:00:00'],
    [{ from: '03:10', to: '03:20' }, '2. 03:10:00', '2. 03:20:00'],
    [{ from: '3:10:05' }, '2. 03:10:05', '2. 14:30:00'],
    // In the future: yesterday.
    [{ from: '23:10', to: '23:20' }, '1. 23:10:00', '1. 23:20:00'],
    [{ from: '23:50', to: '00:10' }, '1. 23:50:00', '2. 00:10:00'],
    [{ from: '14:00', to: '15:00' }, '2. 14:00:00', '2. 15:00:00'],
    [{ from: '2026-06-01T10:00', to: '11:00' }, '1. 10:00:00', '1. 11:00:00'],
    [{ from: '2026-06-01 10:00', to: '2026-06-02' }, '1. 10:00:00', '2. 00:00:00'],
  ])('B-29 is read as people mean it: %o', (text, from, to) => {
    expect(range(text)).toEqual([from, to]);
  });

  it('takes a time with its zone', () => {
    const found = timeRange({ from: '2026-06-01T03:10:00+02:00' }, NOW.getTime());
    expect(found?.fromMs).toBe(Date.UTC(2026, 5, 1, 1, 10));
  });

  it.each([
    [{ from: 'lunch' }, /^--from is "lunch": a time is one of today or yesterday such as 03:10/],
    [{ from: '25:00' }, /^--from is "25:00"/],
    [{ from: '2026-02-31T10:00' }, /^--from is "2026-02-31T10:00"/],
    [{ from: '2026-13-01T10:00' }, /^--from is "2026-13-01T10:00"/],
    [{ from: '2027-01-01' }, /^--from is "2027-01-01": it is in the future/],
    [{ from: '10:00', to: '2026-06-01T10:00' }, /^--to is .*: it has to be after --from/],
    [{ last: 'soon' }, /^--last is "soon": a duration/],
    [{ last: '0s' }, /^--last is "0s": it is longer than 0/],
    [{ last: '5m', from: '10:00' }, /^--last is "5m": give --last or --from, not both/],
  ])('is refused with its field, value and rule: %o', (text, message) => {
    expect(() => range(text)).toThrow(message);
  });
});
