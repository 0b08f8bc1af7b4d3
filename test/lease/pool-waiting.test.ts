import { describe, expect, it } from 'vitest';
import type { SlotOptions } from '../../src/lease/pool/pool.ts';
import { around, holdersOf, poolOf, type Taken } from '../support/pools.ts';
import { world } from '../support/world.ts';

const WAIT = { wait: '20s' };

/** A world with a full pool and a second process that wants some of it. */
async function fullPool(slots = 3) {
  const { clock, store, actor } = world();
  const [one, two] = [await actor(), await actor()];
  const [a, b] = [poolOf(one, { slots }), poolOf(two, { slots })];
  const held = await a.fill();
  /** Who got a slot, in the order of getting it. */
  const served: string[] = [];
  const waits = (holder: string, options: SlotOptions = WAIT): Promise<Taken> => {
    const taking = b.take({ holder, ...options });
    taking.then(
      () => served.push(holder),
      () => {},
    );
    return taking;
  };
  /** The other process lets go of a slot. */
  const free = async (slot: string) => {
    await held.find((taken) => taken.slot === slot)?.lease.release();
  };
  return { clock, store, actor, one, two, a, b, held, served, waits, free };
}

describe('a waiter of a pool', () => {
  it('K-10 gets the first slot that is freed, at once, with a higher fence', async () => {
    const { clock, held, waits, free } = await fullPool();
    const waiting = waits('w');
    await clock.advance(5_000);
    await free('2');
    await clock.advance(0);
    const { slot, lease } = await waiting;
    expect(slot).toBe('2');
    expect(lease.fence).toBeGreaterThan(held[1]?.lease.fence ?? 0);
  });

  it('K-10 takes no second slot', async () => {
    const { clock, two, waits, free } = await fullPool();
    void waits('w');
    await clock.advance(10);
    await free('2');
    await clock.advance(0);
    await free('1');
    await free('3');
    await clock.advance(30_000);
    expect(two.names()).toEqual(['lease.acquired']);
  });

  it('K-10 gets the slot of a holder that died at the expiry it saw', async () => {
    const { clock, one, waits, b } = await fullPool();
    one.faults.hang = true;
    const waiting = waits('w', { wait: '40s' });
    await clock.advance(29_999);
    expect(await holdersOf(b.pool)).not.toContain('w');
    await clock.advance(20);
    expect((await waiting).lease.isHeld()).toBe(true);
  });

  it('K-10 is served in the order of arrival, whichever slots are freed', async () => {
    const { clock, served, waits, free } = await fullPool();
    const all = ['first', 'second', 'third'].map((holder) => waits(holder));
    await clock.advance(10);
    for (const slot of ['3', '1', '2']) {
      await free(slot);
      await clock.advance(0);
    }
    expect(served).toEqual(['first', 'second', 'third']);
    expect((await Promise.all(all)).map(({ slot }) => slot)).toEqual(['3', '1', '2']);
  });

  it('K-10 is not overtaken by a later caller while it still looks, even if a slot is freed meanwhile', async () => {
    const { clock, store, served, waits, free } = await fullPool();
    let isSlow = true;
    around(store, 'read', (read) => async (keys, call) => {
      const seen = await read(keys, call);
      // What the first has seen is on its way for a while.
      if (isSlow) await clock.sleep(50);
      return seen;
    });
    const first = waits('first');
    await clock.advance(10);
    isSlow = false;
    await free('1');
    const second = waits('second');
    await clock.advance(100);
    expect(served).toEqual(['first']);
    await free('2');
    await clock.advance(0);
    expect([(await first).slot, (await second).slot]).toEqual(['1', '2']);
  });

  it('I-08 gets the first free slot at once if the line is empty', async () => {
    const { clock, actor } = world();
    const { pool, take } = poolOf(await actor());
    const all = Array.from({ length: 3 }, () => take(WAIT));
    expect((await Promise.all(all)).map(({ slot }) => slot)).toEqual(['1', '2', '3']);
    expect(clock.pendingTimers).toBe(1);
    expect(await holdersOf(pool)).not.toContain(null);
  });

  it('K-10 is not overtaken by a later caller if another process took the slot that it had released', async () => {
    const { actor } = world();
    const [a, b] = [poolOf(await actor()), poolOf(await actor())];
    for (const { lease } of [await a.take(), await a.take()]) await lease.release();
    for (const { lease } of await Promise.all([a.take(WAIT), a.take(WAIT)])) await lease.release();
    expect((await b.take()).slot).toBe('1');
    const served: string[] = [];
    const take = (who: string) =>
      a.take(WAIT).then(({ slot }) => {
        served.push(who);
        return slot;
      });
    const slots = await Promise.all([take('first'), take('second')]);
    expect(served).toEqual(['first', 'second']);
    expect(slots.toSorted()).toEqual(['2', '3']);
  });

  it('K-10 sends no request while it waits', async () => {
    const { clock, store, waits } = await fullPool();
    const waiting = waits('w', { wait: '9s' }).catch(() => {});
    await clock.advance(100);
    let asked = 0;
    around(store, 'acquire', (acquire) => (requests, call) => {
      asked++;
      return acquire(requests, call);
    });
    await clock.advance(8_000);
    expect(asked).toBe(0);
    await clock.advance(1_000);
    await waiting;
    // Once more for each slot, when the time was up: so the answer is true.
    expect(asked).toBe(3);
  });
});

describe('the order between processes', () => {
  /** Waiters of three processes, in the order of their arrival. */
  async function queue(names: readonly string[]) {
    const full = await fullPool(2);
    const { clock, actor, served } = full;
    const actors = [await actor(), await actor(), await actor()];
    const pools = actors.map((each) => poolOf(each, { slots: 2 }));
    for (const name of names) {
      const taking = pools[Number(name[1])]?.take({ holder: name, wait: '25s' });
      void taking?.then(() => served.push(name)).catch(() => {});
      await clock.advance(20);
    }
    return { ...full, actors };
  }

  it.each([
    ['of one waiter each is the order of arrival', ['a0', 'b1', 'c2'], ['a0', 'b1', 'c2']],
    [
      'lets a process whose waiter was served keep that place once in the lines of the other slots',
      ['a0', 'b1', 'c2', 'd2', 'e0', 'f1'],
      ['a0', 'e0', 'b1', 'f1', 'c2', 'd2'],
    ],
  ])('K-10 %s', async (_, names, order) => {
    const { clock, one, b, held, served } = await queue(names);
    for (const { lease } of held) {
      await lease.release();
      await clock.advance(20);
    }
    for (let n = 0; n < names.length; n++) {
      const views = await b.pool.inspect();
      const taken = views.find(({ holder }) => holder === served[n]);
      if (taken === undefined) continue;
      await one.holdfast.revoke(b.pool.keyOf(taken.slot), { force: true, reason: 'next' });
      await clock.advance(20);
    }
    expect(served).toEqual(order);
  });

  it('B-02 K-10 passes a first waiter that is frozen within a second, and keeps the order behind it', async () => {
    const { clock, actors, held, served } = await queue(['a0', 'b1', 'c2']);
    if (actors[0]) actors[0].faults.hang = true;
    await held[0]?.lease.release();
    await clock.advance(1_000);
    await held[1]?.lease.release();
    await clock.advance(1_000);
    expect(served).toEqual(['b1', 'c2']);
  });

  it('K-10 does not hold for a caller that asks before the woken waiter does; that waiter stays the first', async () => {
    const { clock, store, actor, held, served } = await queue(['a0', 'b1']);
    const late = poolOf(await actor(), { slots: 2 });
    await late.pool.inspect();
    // Each request takes a moment. The newcomer asks for the slot before it is freed.
    around(store, 'acquire', (acquire) => async (requests, call) => {
      if (requests.some(({ holder }) => !holder.startsWith('late'))) await clock.sleep(5);
      return acquire(requests, call);
    });
    await held[0]?.lease.release();
    expect((await late.take({ holder: 'late' })).slot).toBe('1');
    await clock.advance(50);
    expect(served).toEqual([]);
    await held[1]?.lease.release();
    await clock.advance(50);
    expect(served).toEqual(['a0']);
  });
});

describe('when two slots are freed at a time', () => {
  it('one waiter gets one of them, and the other is free again at once', async () => {
    const { clock, waits, free, b } = await fullPool();
    const waiting = waits('w');
    await clock.advance(10);
    await Promise.all([free('1'), free('2')]);
    await clock.advance(0);
    const { slot } = await waiting;
    expect(await holdersOf(b.pool)).toEqual(
      ['1', '2', '3'].map((each) =>
        each === slot ? 'w' : each === '3' ? expect.any(String) : null,
      ),
    );
  });

  it('two waiters get one each', async () => {
    const { clock, served, waits, free, b } = await fullPool();
    const all = [waits('first'), waits('second'), waits('third')];
    await clock.advance(10);
    await Promise.all([free('1'), free('2')]);
    await clock.advance(0);
    expect(served).toEqual(['first', 'second']);
    expect(
      (await holdersOf(b.pool)).filter((holder) => served.includes(holder ?? '')),
    ).toHaveLength(2);
    await free('3');
    await clock.advance(0);
    expect((await Promise.all(all)).map(({ slot }) => slot).sort()).toEqual(['1', '2', '3']);
  });

  it('waiters of two processes get one each', async () => {
    const { clock, actor, waits, free } = await fullPool();
    const c = poolOf(await actor());
    const all = [waits('here'), c.take({ holder: 'there', ...WAIT })];
    await clock.advance(10);
    await Promise.all([free('1'), free('2')]);
    await clock.advance(0);
    expect((await Promise.all(all)).map(({ slot }) => slot).sort()).toEqual(['1', '2']);
  });
});

describe('a waiter that leaves', () => {
  it('K-10 by its signal gets the reason of the signal, and leaves all lines', async () => {
    const { clock, served, waits, free } = await fullPool();
    const [reason, controller] = ['enough', new AbortController()];
    const impatient = waits('impatient', { ...WAIT, signal: controller.signal });
    const outcome = expect(impatient).rejects.toBe(reason);
    void waits('patient');
    await clock.advance(1_000);
    controller.abort(reason);
    await outcome;
    await free('2');
    await clock.advance(0);
    expect(served).toEqual(['patient']);
  });

  it('I-09 by its signal while it asks for one slot asks for no other', async () => {
    const { clock, store, actor } = world();
    const [one, two] = [await actor(), await actor()];
    const [a, b] = [poolOf(one), poolOf(two)];
    const asked: string[] = [];
    around(store, 'acquire', (acquire) => async (requests, call) => {
      asked.push(...requests.map(({ key }) => key));
      await clock.sleep(20);
      return acquire(requests, call);
    });
    const abort = new AbortController();
    // Both look at an empty pool. The first process is granted slot 1.
    const first = a.take();
    const waiting = b.take({ ...WAIT, holder: 'w', signal: abort.signal });
    const refused = expect(waiting).rejects.toThrow('gone');
    await clock.advance(10);
    abort.abort(new Error('gone'));
    await clock.advance(1_000);
    await refused;
    expect((await first).slot).toBe('1');
    expect(asked).toHaveLength(2);
    expect(await holdersOf(b.pool)).not.toContain('w');
  });

  it('K-10 before its first request sends none', async () => {
    const { two, waits } = await fullPool();
    two.faults.hang = true;
    const signal = AbortSignal.abort(new Error('never mind'));
    await expect(waits('w', { ...WAIT, signal })).rejects.toThrow('never mind');
    await expect(waits('w', { wait: 0, signal })).rejects.toThrow('never mind');
  });

  it.each([
    ['while it looks', 'read'],
    ['while it is granted one', 'acquire'],
  ] as const)('K-10 %s has nothing, and the slot is free', async (_, verb) => {
    const { clock, store, actor } = world();
    const { pool, take } = poolOf(await actor());
    const controller = new AbortController();
    around(store, verb, (original) => async (given: never, call: never) => {
      const answer = await (original as (a: never, b: never) => Promise<never>)(given, call);
      controller.abort(new Error('too late'));
      return answer;
    });
    await expect(take({ ...WAIT, signal: controller.signal })).rejects.toThrow('too late');
    await clock.advance(0);
    expect(await holdersOf(pool)).toEqual([null, null, null]);
  });

  it('K-10 by its signal while it is granted a freed slot leaves that slot to the next waiter', async () => {
    const { clock, store, served, waits, free } = await fullPool();
    const controller = new AbortController();
    const impatient = waits('impatient', { ...WAIT, signal: controller.signal });
    const outcome = expect(impatient).rejects.toThrow('enough');
    void waits('patient');
    await clock.advance(10);
    around(store, 'acquire', (acquire) => async (requests, call) => {
      const replies = await acquire(requests, call);
      if (replies.some(({ kind }) => kind === 'granted')) controller.abort(new Error('enough'));
      return replies;
    });
    await free('3');
    await clock.advance(10);
    await outcome;
    expect(served).toEqual(['patient']);
  });

  it('K-10 at the end of its time gets the reason and the first expiry', async () => {
    const { clock, b } = await fullPool();
    const waiting = b.pool.acquire({ wait: '2s' });
    await clock.advance(2_000);
    expect(await waiting).toEqual({
      ...{ ok: false, pool: 'gpu', slots: 3, reason: 'held', waitedMs: 2_000 },
      expiresInMs: 28_000,
    });
    expect(clock.pendingTimers).toBeLessThanOrEqual(1);
  });

  it('K-10 at the end of its time still gets a slot that is freed at that moment', async () => {
    const { clock, store, waits, free } = await fullPool();
    // No hint arrives: only the last question can find out.
    store.signals.publish = async () => {};
    const waiting = waits('w', { wait: '2s' });
    await clock.advance(1_999);
    await free('3');
    await clock.advance(1);
    expect((await waiting).slot).toBe('3');
  });
});

describe('a store that fails during a wait', () => {
  it('K-10 does not end the wait if it answers again in time', async () => {
    const { clock, two, waits, free } = await fullPool();
    two.faults.refuse = true;
    const waiting = waits('w');
    await clock.advance(3_000);
    await free('2');
    two.faults.refuse = false;
    await clock.advance(1_100);
    expect((await waiting).slot).toBe('2');
  });

  it.each([
    ['refuses', 'STORE_UNREACHABLE', 2_000],
    ['hangs', 'OUTCOME_UNKNOWN', 3_000],
  ] as const)('K-10 and %s to the end is the error: %s, after %i ms', async (how, code, ms) => {
    const { clock, two, waits } = await fullPool();
    two.faults.refuse = how === 'refuses';
    two.faults.hang = how === 'hangs';
    const outcome = expect(waits('w', { wait: '2s' })).rejects.toMatchObject({ code });
    await clock.advance(ms);
    await outcome;
  });

  it('K-10 for one slot does not keep a waiter from another, and a wait without a slot then fails instead of reporting all as held', async () => {
    const { clock, store, waits, free } = await fullPool();
    const error = new Error('bad key');
    around(store, 'acquire', (acquire) => async (requests, call) => {
      const replies = await acquire(requests, call);
      return replies.map((reply, i) =>
        requests[i]?.key === 'lease:gpu:1' ? { kind: 'failed', error } : reply,
      );
    });
    const lucky = waits('lucky');
    await clock.advance(100);
    await free('2');
    await clock.advance(0);
    expect((await lucky).slot).toBe('2');
    const outcome = expect(waits('unlucky', { wait: '1s' })).rejects.toBe(error);
    await clock.advance(2_000);
    await outcome;
  });

  it('with a lost answer gets the granted slot released', async () => {
    const { clock, actor } = world();
    const one = await actor();
    const { pool, take } = poolOf(one, { slots: 1 });
    one.faults.loseReplies = true;
    const outcome = expect(take({ wait: '100ms' })).rejects.toMatchObject({
      code: 'OUTCOME_UNKNOWN',
    });
    await clock.advance(1_200);
    await outcome;
    one.faults.loseReplies = false;
    await clock.advance(40_000);
    expect(await holdersOf(pool)).toEqual([null]);
  });

  it('ends every wait when it is closed', async () => {
    const { clock, two, waits } = await fullPool();
    const outcomes = ['v', 'w'].map((holder) =>
      expect(waits(holder)).rejects.toMatchObject({ code: 'CLOSED' }),
    );
    await clock.advance(10);
    await two.holdfast.close();
    await Promise.all(outcomes);
    await expect(waits('late')).rejects.toMatchObject({ code: 'CLOSED' });
  });
});

it('a wait for a pool of 256 slots causes no warning of Node', async () => {
  const warnings: string[] = [];
  const listen = (warning: Error) => warnings.push(warning.message);
  process.on('warning', listen);
  const { clock, waits, free } = await fullPool(256);
  const all = ['a', 'b', 'c'].map((holder) => waits(holder));
  await clock.advance(10);
  for (const slot of ['200', '100', '1']) await free(slot);
  await clock.advance(10);
  expect((await Promise.all(all)).map(({ slot }) => slot).sort()).toEqual(['1', '100', '200']);
  process.off('warning', listen);
  expect(warnings).toEqual([]);
});
