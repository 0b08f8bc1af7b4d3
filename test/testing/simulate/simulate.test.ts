import { describe, expect, it } from 'vitest';
import { type SimulateOptions, SimulationFailedError, simulate } from '../../../testing/index.ts';

/** Charges without an idempotency key: a second try charges again. */
const CARELESS: SimulateOptions = {
  seeds: 10,
  duration: '5m',
  setup: async ({ holdfast, sink }) => {
    await holdfast
      .processor({
        name: 'billing',
        role: 'effect',
        handlers: { CHARGE: ({ total }: { total: number }) => sink.write('bank', total) },
      })
      .start();
  },
  client: async ({ holdfast, clock }) => {
    for (let total = 1; total <= 10; total++) {
      const order = await holdfast.workflows.claim(`order-${total}`);
      await order.emit('CHARGE', { total }, { target: 'billing' });
      await order.release();
      await clock.sleep(20_000);
    }
  },
};

const SHORT = { seed: 1, instances: 1, duration: 0 } as const;

describe('B-30 a program in simulated worlds', () => {
  it('that repeats an effect is found, shrunk and told, and its seed finds the same again', async () => {
    const { failure } = await simulate(CARELESS);
    if (failure === null) throw new Error('nothing was found');
    expect(failure).toMatchObject({ invariant: 'repeated effect' });
    expect(failure.faults.length).toBeLessThan(4);
    expect(failure.atMs.shrunk).toBeLessThan(failure.atMs.found);
    expect(failure.story).toMatch(/ {2}\w+ begins CHARGE of 'order-\d+' \(try 1\)\.\n/);
    expect(failure.story.split('\n').at(-1)).toMatch(/'bank' takes \d+ from \w+\./);

    const again = await simulate({ ...CARELESS, seed: failure.seed });
    expect(again.failure).toEqual(failure);
    expect(() => again.assert()).toThrow(SimulationFailedError);
    expect(`${again}`).toContain(`To see it again: simulate({ …, seed: ${failure.seed} })`);
  });

  it('that was not caught says what it met, and what it did not', async () => {
    const setup = async ({ holdfast }: Parameters<SimulateOptions['setup']>[0]) => {
      await holdfast.poller({ every: '5s', poll: () => {} }).start();
    };
    const faults = { kill: false, freeze: false };
    const report = await simulate({ setup, targets: ['a'], seeds: 2, duration: '3m', faults });
    expect(report).toMatchObject({ failure: null, seeds: 2 });
    report.assert();
    expect(report.reached.get('poll done')).toBeGreaterThan(10);
    const met = [...Object.keys(report.faults), ...report.missed];
    expect(met).toContain('restart');
    expect(met).not.toContain('kill');
    expect(`${report}`).toMatch(/^nothing was found in 2 worlds, \d+ min .* of simulated time\n/);
  });

  it.each<[string, Partial<SimulateOptions>, string]>([
    ['setup', { setup: () => Promise.reject(new Error('no port')) }, 'setup failed: no port'],
    [
      'client',
      { client: () => Promise.reject(new Error('no work')) },
      'the client failed: no work',
    ],
    ['client', { client: () => new Promise(() => {}) }, 'the client did not end within an hour'],
    ['check', { check: () => Promise.reject(new Error('1 order is unpaid')) }, '1 order is unpaid'],
    [
      'unhandled rejection',
      { setup: () => void Promise.reject(new Error('lost')) },
      'no code handles a rejection: Error: lost',
    ],
  ])('whose %s goes wrong is told so: %#', async (invariant, part, text) => {
    const { failure } = await simulate({ setup: () => {}, ...SHORT, ...part });
    expect(failure).toMatchObject({ invariant, violation: expect.stringContaining(text) });
  });

  it.each([
    ['fence fell', { fences: 'ignored' }, [{ fence: 2 }, { fence: 1 }]],
    ['key twice', { keys: 'ignored' }, [{ idempotencyKey: 'k' }, { idempotencyKey: 'k' }]],
  ] as const)(
    'writes to a sink as careless as its database: %s',
    async (invariant, sink, writes) => {
      const client: SimulateOptions['client'] = async (instance) => {
        for (const options of writes)
          await instance.sink.write('device', 'on', options).catch(() => {});
      };
      const options = { setup: () => {}, client, ...SHORT };
      expect((await simulate({ ...options, sink })).failure).toMatchObject({ invariant });
      const effects: number[] = [];
      const check: SimulateOptions['check'] = (end) => void effects.push(end.effects.length);
      expect((await simulate({ ...options, check })).failure).toBeNull();
      expect(new Set(effects)).toEqual(new Set([1]));
    },
  );

  it('is refused with options that make no sense, and told what is known', async () => {
    const setup = () => {};
    await expect(simulate({ setup, seeds: 0 })).rejects.toThrow('seeds');
    await expect(simulate({ setup, instances: 7 })).rejects.toThrow('from 1 to 6');
    await expect(simulate({ setup, duration: '30d' })).rejects.toThrow("at most '7d'");
    const faults = { fire: true } as Record<string, boolean>;
    await expect(simulate({ setup, faults })).rejects.toThrow('Known faults: kill, restart');
    const unknown = { setup, second: 1 };
    await expect(simulate(unknown)).rejects.toThrow('unknown option. Known options: setup');
  });
});
