import { expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random.ts';
import { RedirectionError } from '../../src/store/redis/topology/redirection.ts';
import { type Reach, type ServedSlots, WitnessState } from '../../src/store/redis/witness-state.ts';

const NAMES = { recorded: '', former: '', own: 'run:' };
const ALL: ServedSlots = { isEmpty: false, has: () => true };

function witness(served = ALL): WitnessState {
  return new WitnessState({ random: seededRandom(1) }, 'marker', served);
}

/** A server that answers each command in turn, and a marker that records whatever is placed. */
function reach(...answers: unknown[]): Reach {
  return {
    ask: async () => answers.shift(),
    run: async (_script, _keys, args) => args[3],
  };
}

it('K-15 an acquire presents an era also while a look at the witness is under way', async () => {
  const own = witness();
  expect(await own.confirm(reach('OK'), { ...NAMES, era: 'e1' })).toBe('confirmed');
  const name = own.name;
  expect(name).not.toBe('');
  let answer: (era: string) => void = () => {};
  const slow: Reach = {
    ...reach(),
    ask: () =>
      new Promise((resolve) => {
        answer = resolve;
      }),
  };
  const looking = own.confirm(slow, { ...NAMES, recorded: name, era: 'e1' });
  expect(own.name).toBe(name);
  answer('e1');
  expect([await looking, own.name]).toEqual(['confirmed', name]);
});

it('K-15 a witness that is gone keeps its name, so that nothing is granted before the next one stands', async () => {
  const own = witness();
  await own.confirm(reach('OK'), { ...NAMES, era: 'e1' });
  const { name } = own;
  expect(await own.confirm(reach(null), { ...NAMES, recorded: name, era: 'e1' })).toBe('lost');
  expect(own.name).toBe(name);
});

it('K-15 a witness whose slot has gone is placed under another name', async () => {
  const own = witness();
  await own.confirm(reach('OK'), { ...NAMES, era: 'e1' });
  const { name } = own;
  const moved = new RedirectionError('MOVED 1 b:1');
  const again = reach(moved, 'OK');
  expect(await own.confirm(again, { ...NAMES, recorded: name, era: 'e1' })).toBe('confirmed');
  expect(own.name).not.toBe(name);
});

it.each([
  ['without slots', { isEmpty: true, has: () => false }, []],
  ['that is out of memory', ALL, [new Error('OOM command not allowed')]],
])('K-05 a server %s is used without a witness', async (_, served, answers) => {
  const own = witness(served);
  expect(await own.confirm(reach(...answers), { ...NAMES, era: 'e1' })).toBe('confirmed');
  expect(own.name).toBe('');
});
