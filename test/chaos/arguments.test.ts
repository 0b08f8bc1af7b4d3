import { expect, it } from 'vitest';
import { readArguments, UsageError } from '../../chaos/arguments.ts';

it.each([
  ['--topology', 'mesh'],
  ['--seconds', '0'],
  ['--seconds', '1e3'],
  ['--seed', '-1'],
  ['--unheard-of'],
  ['--naive', '--topology', 'cluster'],
])('wrong use is refused: %s %s', (...args) => {
  expect(() => readArguments(args)).toThrow(UsageError);
});

it('without arguments it is a minute on a single Redis, by a seed that chance gives', () => {
  const wanted = readArguments([]);
  expect(wanted).toMatchObject({ topology: 'single', seconds: 60, isNaive: false, isJson: false });
  expect(wanted?.seed).toBeGreaterThanOrEqual(0);
});

it('faults are chosen by name', () => {
  expect(readArguments(['--faults', 'kill, short freeze'])).toMatchObject({
    faults: ['kill', 'short freeze'],
  });
});

it('help is no run', () => {
  expect(readArguments(['--help'])).toBeNull();
});
