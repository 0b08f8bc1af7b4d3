/** Each kind of handler with a bug that only faults bring out, and the same handler without it. */
import { describe, expect, it } from 'vitest';
import {
  type SimulatedInstance,
  type SimulateOptions,
  type SimulationInvariant,
  simulate,
} from '../../testing/index.ts';

/** A bug is found within so many worlds; as many show nothing about the handler without it. */
const SEEDS = 40;
const CLEAN_SEEDS = 12;
const LONG = { timeout: 240_000 };

interface Planted {
  readonly handler: string;
  readonly invariant: SimulationInvariant;
  /** `isCareful`: without the bug. */
  options(isCareful: boolean): SimulateOptions;
}

type Setup = (instance: SimulatedInstance) => Promise<unknown>;

const TARGETS = { targets: ['a', 'b'], seeds: SEEDS };

/** The client has workflows started, one every 15 s. */
const orders =
  (start: (holdfast: SimulatedInstance['holdfast'], id: string) => Promise<unknown>) =>
  async ({ holdfast, clock }: SimulatedInstance): Promise<void> => {
    for (let n = 1; n <= 20; n++) {
      await start(holdfast, `order-${n}`);
      await clock.sleep(15_000);
    }
  };

const poll = (isCareful: boolean): Setup => {
  return async ({ holdfast, sink }) => {
    const handler = async ({ id }: { id: string }, { fence }: { fence: number }) =>
      void (await sink.write(id, 'on', isCareful ? { fence } : {}));
    await holdfast.poller({ every: '5s', poll: handler }).start();
  };
};

const run = (isCareful: boolean): Setup => {
  return async ({ holdfast, sink, clock }) => {
    await holdfast
      .runner({
        run: async ({ id }, { fence, signal }) => {
          while (!signal.aborted) {
            await sink.write(id, 'beat', isCareful ? { fence } : {});
            await clock.sleep(3_000, signal);
          }
        },
      })
      .start();
  };
};

const lease = (isCareful: boolean): Setup => {
  return async ({ holdfast, sink, clock }) => {
    for (;;) {
      const work = async ({ fence, signal }: { fence: number; signal: AbortSignal }) => {
        await clock.sleep(2_000, signal);
        await sink.write('report', 'rows', isCareful ? { fence } : {});
      };
      await holdfast.withLease('nightly', work, { wait: '1m' }).catch(() => {});
      await clock.sleep(1_000);
    }
  };
};

const lead = (isCareful: boolean): Setup => {
  return async ({ holdfast, sink, clock }) => {
    holdfast.elect('scheduler', {
      onElected: async ({ fence, signal }) => {
        while (!signal.aborted) {
          await sink.write('tick', 1, isCareful ? { fence } : {}).catch(() => {});
          await clock.sleep(2_000, signal).catch(() => {});
        }
      },
    });
  };
};

const processor = (isCareful: boolean): SimulateOptions => ({
  seeds: SEEDS,
  setup: async ({ holdfast, sink }) => {
    const CHARGE = async ({ total }: { total: number }, how: { idempotencyKey: string }) =>
      (await sink.write('bank', total, isCareful ? { idempotencyKey: how.idempotencyKey } : {})).by;
    await holdfast.processor({ name: 'billing', role: 'effect', handlers: { CHARGE } }).start();
  },
  client: orders(async (holdfast, id) => {
    const order = await holdfast.workflows.claim(id);
    await order.emit('CHARGE', { total: 42, id }, { target: 'billing' });
    await order.release();
  }),
});

const step = (isCareful: boolean): SimulateOptions => ({
  seeds: SEEDS,
  setup: async ({ holdfast, sink }) => {
    const fulfil = holdfast.workflow('fulfil', async (order, item: string) => {
      const ship = ({ idempotencyKey }: { idempotencyKey: string }) =>
        sink.write('post', item, isCareful ? { idempotencyKey } : {});
      await order.step('ship', ship, { retry: { tries: 3 } });
      return order.sleep('return', '20s');
    });
    await fulfil.run();
  },
  client: orders((holdfast, id) => holdfast.workflows.start('fulfil', id, 'tea')),
});

/** The lines of a function run again after a crash; its steps do not. */
const lines = (isCareful: boolean): SimulateOptions => ({
  seeds: SEEDS,
  setup: async ({ holdfast, sink }) => {
    const greet = holdfast.workflow('greet', async (order, to: string) => {
      const mail = (options = {}) => sink.write('mail', to, options);
      if (isCareful) await order.step('mail', ({ idempotencyKey }) => mail({ idempotencyKey }));
      else await mail();
      await order.sleep('a while', '5s');
    });
    await greet.run();
  },
  client: orders((holdfast, id) => holdfast.workflows.start('greet', id, id)),
});

const session = (isCareful: boolean): SimulateOptions => ({
  seeds: SEEDS,
  open: ({ sink, clock }) => ({
    kinds: {
      resize: {
        run: async (_, { session: { id }, signal }) => {
          await clock.sleep(8_000, signal);
          await sink.write('image', 'small', isCareful ? { idempotencyKey: id } : {});
        },
      },
    },
  }),
  setup: async ({ holdfast }) => {
    holdfast.intents().start();
    await holdfast.worker().start();
  },
  client: async ({ holdfast, clock }) => {
    const intents = holdfast.intents();
    for (let n = 1; n <= 20; n++) {
      const by = { tenant: null, client: 'test' };
      await intents.submit({ type: 'start', kind: 'resize', params: { n } }, by);
      await clock.sleep(15_000);
    }
  },
});

const PLANTED: readonly Planted[] = [
  { handler: 'poll', invariant: 'two owners', options: (is) => ({ ...TARGETS, setup: poll(is) }) },
  { handler: 'run', invariant: 'two owners', options: (is) => ({ ...TARGETS, setup: run(is) }) },
  {
    handler: 'withLease',
    invariant: 'two owners',
    options: (is) => ({ seeds: SEEDS, setup: background(lease(is)) }),
  },
  {
    handler: 'elect',
    invariant: 'two owners',
    options: (is) => ({ seeds: SEEDS, setup: lead(is) }),
  },
  { handler: 'processor', invariant: 'repeated effect', options: processor },
  { handler: 'step', invariant: 'repeated effect', options: step },
  { handler: 'workflow function', invariant: 'repeated effect', options: lines },
  { handler: 'function of a kind', invariant: 'repeated effect', options: session },
];

/** A setup that never ends, as a loop of its own. */
function background(setup: Setup): Setup {
  return async (instance) => void setup(instance);
}

describe.each(PLANTED)('B-30 a simulated $handler', ({ invariant, options }) => {
  it(`with a bug breaks '${invariant}' within ${SEEDS} worlds`, LONG, async () => {
    const { failure } = await simulate(options(false));
    expect(failure).toMatchObject({ invariant });
    expect(failure?.faults.length).toBeGreaterThan(0);
    expect(failure?.faults.length).toBeLessThan(6);
    expect(failure?.story.split('\n').length).toBeLessThan(50);
  });

  it(`without it is clean in ${CLEAN_SEEDS}`, LONG, async () => {
    const report = await simulate({ ...options(true), seeds: CLEAN_SEEDS });
    expect(`${report}`).toMatch(/^nothing was found/);
    expect(report.reached.get('effect')).toBeGreaterThan(0);
  });
});
