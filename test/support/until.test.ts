import { expect, it } from 'vitest';
import { until, within } from './until.ts';

it('until returns what the condition found', async () => {
  let looks = 0;
  const found = await until(() => (++looks === 3 ? 'it' : undefined), { what: 'it', every: 1 });
  expect(found).toBe('it');
});

it('until counts zero and the empty string as found', async () => {
  expect(await until(() => 0, { what: 'a number' })).toBe(0);
  expect(await until(() => '', { what: 'a string' })).toBe('');
});

it('until takes an error for "not yet", and tells the last one at the deadline', async () => {
  const failing = () => {
    throw new Error('refused');
  };
  const waiting = until(failing, { what: 'the server', deadlineMs: 20, every: 5 });
  await expect(waiting).rejects.toMatchObject({
    message: 'waited 20 ms for the server',
    cause: new Error('refused'),
  });
});

it('until does not hang on a condition that never answers', async () => {
  const silent = () => new Promise<boolean>(() => {});
  const waiting = until(silent, { what: 'an answer', deadlineMs: 20 });
  await expect(waiting).rejects.toThrow('waited 20 ms for an answer');
});

it('within gives up on a promise that is late', async () => {
  expect(await within(1_000, Promise.resolve(1))).toBe(1);
  await expect(within(10, new Promise(() => {}))).rejects.toThrow('no answer within 10 ms');
});
