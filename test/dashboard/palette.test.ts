import { describe, expect, it, vi } from 'vitest';
import { colourOf, markOf, nameOf, startOf, withNames } from '../../dashboard/src/data/palette.ts';

// What the dashboard knows of restarts asks the browser where it is.
vi.stubGlobal('location', { href: 'http://localhost/', hash: '' });
const { predecessorOf } = await import('../../dashboard/src/data/restarts.ts');

const FIRST = 'ana-1794794965598888000-aaaaaaaa';
const SECOND = 'ana-1794794999598888000-bbbbbbbb';
const BEN = 'ben-1794794965598888000-cccccccc';

describe('the colour of an instance', () => {
  it('follows from its name, in whatever order instances appear', () => {
    const names = ['ana', 'ben', 'cleo', 'api-1', 'worker', 'eu-west-3'];
    const forwards = names.map((name) => markOf(name).colour);
    const backwards = [...names].reverse().map((name) => markOf(name).colour);
    expect(backwards.reverse()).toEqual(forwards);
    expect(forwards.every((colour) => /^var\(--owner-(\d|1[01])\)$/.test(colour))).toBe(true);
  });

  it('is the same after a restart, and so are its letters', () => {
    expect(markOf(SECOND)).toEqual(markOf(FIRST));
  });

  it('differs between the instances of the demo, and between twelve numbered ones', () => {
    const colours = (names: readonly string[]) => new Set(names.map(colourOf)).size;
    expect(colours(['ana', 'ben', 'cleo'])).toBe(3);
    expect(colours(Array.from({ length: 12 }, (_, i) => `api-${i + 1}`))).toBe(12);
  });

  it('comes with letters that tell names apart', () => {
    expect(markOf(FIRST).letters).toBe('an');
    expect(markOf('andy').letters).not.toBe('an');
    expect(markOf('api-12').letters).toBe('a12');
  });
});

describe('an instance id', () => {
  it('has a name and a time', () => {
    expect([nameOf(FIRST), nameOf('eu-west-1794794965598888000-aaaaaaaa')]).toEqual([
      'ana',
      'eu-west',
    ]);
    expect(startOf(FIRST)).toBeCloseTo(1_794_794_965_598.888, 2);
    expect([nameOf('php-1'), startOf('php-1')]).toEqual(['php-1', null]);
  });

  it('is a name where the server writes it into a sentence', () => {
    expect(withNames(`${FIRST} keeps it; ${BEN} had it.`)).toBe('ana keeps it; ben had it.');
  });
});

describe('a restart', () => {
  const named = new Map([
    ['ana', new Set([FIRST, SECOND])],
    ['ben', new Set([BEN])],
  ]);

  it('is an instance whose name an earlier one had, which is gone', () => {
    expect(predecessorOf(SECOND, named, new Set([SECOND, BEN]))).toBe(FIRST);
    expect(predecessorOf(FIRST, named, new Set([FIRST]))).toBeUndefined();
    expect(predecessorOf(BEN, named, new Set([BEN]))).toBeUndefined();
  });

  it('is none while the earlier one still runs: two of a name run beside each other', () => {
    expect(predecessorOf(SECOND, named, new Set([FIRST, SECOND]))).toBeUndefined();
  });
});
