import { describe, expect, it } from 'vitest';
import { Batcher } from '../../src/core/batcher.ts';

describe('Batcher', () => {
  it('sends the items of one turn in one request, and those of its duration in the next', async () => {
    const sent: number[][] = [];
    const batcher = new Batcher(async (items: readonly number[]) => {
      sent.push([...items]);
      if (sent.length === 1) later = batcher.submit(4);
      return items.map((item) => item * 10);
    }, 100);
    let later: Promise<number> | null = null;
    expect(await Promise.all([1, 2, 3].map((item) => batcher.submit(item)))).toEqual([10, 20, 30]);
    expect(await later).toBe(40);
    expect(sent).toEqual([[1, 2, 3], [4]]);
  });

  it('splits items over several requests when there are more than fit into one', async () => {
    const sizes: number[] = [];
    const batcher = new Batcher(async (items: readonly number[]) => {
      sizes.push(items.length);
      return items;
    }, 2);
    await Promise.all([1, 2, 3, 4, 5].map((item) => batcher.submit(item)));
    expect(sizes).toEqual([2, 2, 1]);
  });

  it('rejects the items of a failed request only', async () => {
    const batcher = new Batcher(async (items: readonly number[]) => {
      if (items.includes(1)) throw new Error('refused');
      return items;
    }, 1);
    const [first, second] = await Promise.allSettled([batcher.submit(1), batcher.submit(2)]);
    expect(first.status).toBe('rejected');
    expect(second).toEqual({ status: 'fulfilled', value: 2 });
  });
});
