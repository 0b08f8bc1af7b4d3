import { afterEach, describe, expect, it } from 'vitest';
import { stepViews } from '../../src/workflow/kept-step.ts';
import type { Orchestrator } from '../../src/workflow/orchestrator.ts';
import type { WorkflowFunctionOptions } from '../../src/workflow/workflow-function.ts';
import type { StepContext } from '../../src/workflow/workflow-run.ts';
import {
  inMemory,
  onSqlite,
  type WorkflowActor,
  type WorkflowWorld,
} from '../support/workflow-world.ts';

/** What the outside world has seen: each effect once per idempotency key, whatever is tried. */
class Sink {
  readonly byKey = new Map<string, string>();
  readonly tried: string[] = [];

  apply(name: string, key: string): number {
    this.tried.push(name);
    this.byKey.set(key, this.byKey.get(key) ?? name);
    return this.byKey.size;
  }

  get effects(): string[] {
    return [...this.byKey.values()];
  }
}

const worlds: WorkflowWorld[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world[Symbol.asyncDispose]();
});

async function make(kind = inMemory): Promise<WorkflowWorld> {
  const world = await kind.make();
  worlds.push(world);
  return world;
}

/** A processor that ships, and says how often. */
async function warehouse({ holdfast }: WorkflowActor, sink: Sink): Promise<void> {
  const SHIP = (parcel: unknown, { idempotencyKey }: { idempotencyKey: string }) => {
    sink.apply('ship', idempotencyKey);
    return { shipped: parcel };
  };
  await holdfast.processor({ name: 'warehouse', role: 'effect', handlers: { SHIP } }).start();
}

const DAY_MS = 86_400_000;
const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'fine',
    (error: { code?: string }) => error.code ?? error,
  );

/** Ten steps: five here, two calls, a sleep, two signals. `line` is called before and after each. */
function tenLines(sink: Sink, line: (n: number) => Promise<void> = async () => {}) {
  return async (order: Orchestrator, input: { item: string }) => {
    const at = (name: string) => (context: StepContext) => {
      sink.apply(name, context.idempotencyKey);
      return `${name} ${input.item}`;
    };
    const results: unknown[] = [];
    const lines: (() => Promise<unknown>)[] = [
      () => order.step('reserve', at('reserve')),
      () => order.step('charge', at('charge')),
      () => order.call('SHIP', { of: input.item }, { as: 'ship', to: 'warehouse' }),
      () => order.sleep('cool-off', '20s'),
      () => order.step('after-sleep', at('after-sleep')),
      () => order.waitFor('approved', { timeout: '10m' }).then((got) => got?.value),
      () => order.call('SHIP', { gift: true }, { as: 'gift', to: 'warehouse' }),
      () => order.waitFor('never', { timeout: '5s' }),
      () => order.step('thank', at('thank')),
      () => order.step('close', at('close')),
    ];
    for (const [n, each] of lines.entries()) {
      await line(n);
      results.push(await each());
    }
    await line(lines.length);
    return results;
  };
}

const EXPECTED = [
  ...[
    'reserve tea',
    'charge tea',
    { shipped: { of: 'tea' } },
    null,
    'after-sleep tea',
    { by: 'me' },
  ],
  ...[{ shipped: { gift: true } }, null, 'thank tea', 'close tea'],
];
const EFFECTS = ['reserve', 'charge', 'ship', 'after-sleep', 'ship', 'thank', 'close'];

for (const kind of [inMemory, onSqlite])
  describe(`WorkflowFunction on ${kind.name}`, () => {
    it('B-15 B-16 B-17 B-18 a function of ten steps returns what its steps kept', async () => {
      const world = await make(kind);
      const one = await world.actor();
      const sink = new Sink();
      await warehouse(one, sink);
      const fulfil = await one.holdfast.workflow('fulfil', tenLines(sink)).run();
      expect(await fulfil.start('order-7', { item: 'tea' })).toEqual({
        id: 'order-7',
        isNew: true,
      });
      expect(await fulfil.start('order-7', { item: 'x' })).toEqual({ id: 'order-7', isNew: false });
      await fulfil.signal('order-7', 'approved', { by: 'me' });
      expect(await world.outcome(fulfil.result('order-7'))).toEqual(EXPECTED);
      expect(sink.effects).toEqual(EFFECTS);
      expect(sink.tried).toEqual(EFFECTS);
    });

    it('B-22 a step is given guard and keep, which this store does not offer', async () => {
      const world = await make(kind);
      const one = await world.actor();
      const charge = (order: Orchestrator) =>
        order.step('charge', async ({ guard, keep }) => [
          await codeOf(guard(async () => {})),
          await codeOf(keep(async () => {}, 'result')),
        ]);
      const charged = await one.holdfast.workflow('charge', charge).run();
      await charged.start('order-7', {});
      const refused = ['GUARD_NOT_OFFERED', 'GUARD_NOT_OFFERED'];
      expect(await world.outcome(charged.result('order-7'))).toEqual(refused);
    });

    it('B-19 a function whose instance dies at any line is continued by another', async () => {
      const world = await make(kind);
      const sink = new Sink();
      await warehouse(await world.actor(), sink);
      for (let line = 0; line <= 10; line++) {
        const id = `order-${line}`;
        // It is frozen at this line, and never comes back.
        const dead = await world.actor();
        let hasDied = false;
        const first = dead.holdfast.workflow(
          'fulfil',
          tenLines(sink, async (n) => {
            if (n !== line || hasDied) return;
            hasDied = true;
            dead.faults.hang = true;
            await new Promise(() => {});
          }),
        );
        await first.start(id, { item: 'tea' });
        await first.signal(id, 'approved', { by: 'me' });
        await first.run();
        await world.until(() => hasDied, `${id} to be left behind`);
        const next = await world.actor();
        const second = await next.holdfast.workflow('fulfil', tenLines(sink)).run();
        expect(await world.outcome(second.result(id))).toEqual(EXPECTED);
        await world.outcome(second.stop());
      }
      expect(sink.effects.length).toBe(11 * EFFECTS.length);
      expect(sink.tried.length).toBe(sink.effects.length);
    }, 60_000);

    it('B-17 a suspended workflow holds no lease, and is not in memory', async () => {
      const world = await make(kind);
      const { holdfast } = await world.actor();
      let runs = 0;
      const nap = await holdfast
        .workflow('nap', async (order: Orchestrator) => {
          runs++;
          await order.sleep('long', '30d');
          return runs;
        })
        .run();
      await nap.start('w', null);
      await world.until(
        () => holdfast.workflows.get('w').then((w) => w?.run?.phase === 'suspended'),
        'it to sleep',
      );
      await world.until(() => nap.running === 0, 'it to be unloaded');
      const view = await holdfast.workflows.get('w');
      expect([view?.isHeld, view?.run?.waits]).toMatchObject([false, [{ sleep: 'long' }]]);
      expect(Math.round((view?.run?.dueInMs ?? 0) / DAY_MS)).toBe(30);
      expect(holdfast.held).toBe(0);
    });

    it('B-18 a signal that comes before the wait, and one that comes after, are received once each', async () => {
      const world = await make(kind);
      const { holdfast } = await world.actor();
      const both = await holdfast
        .workflow('both', async (order: Orchestrator) => {
          const first = await order.waitFor<number>('paid', { as: 'first' });
          const second = await order.waitFor<number>('paid', { as: 'second' });
          const third = await order.waitFor('paid', { as: 'third', timeout: '1m' });
          return [first.value, second.value, third];
        })
        .run();
      await both.start('w', null);
      await both.signal('w', 'paid', 1);
      const read = () => holdfast.workflows.get('w');
      await world.until(() => read().then((w) => w?.run?.phase === 'suspended'), 'it to wait');
      await both.signal('w', 'paid', 2);
      expect(await world.outcome(both.result('w'))).toEqual([1, 2, null]);
    });
  });

describe('WorkflowFunction', () => {
  async function run(
    code: (order: Orchestrator, input: unknown) => unknown,
    options: WorkflowFunctionOptions = {},
  ) {
    const world = await make();
    const one = await world.actor();
    const fn = await one.holdfast.workflow('f', code, options).run();
    return { world, one, fn, workflows: one.holdfast.workflows };
  }

  it('B-18 a signal to a workflow that does not exist is an error, and writes nothing', async () => {
    const { world, workflows } = await run(() => null);
    expect(await codeOf(workflows.signal('absent', 'x', 1))).toBe('WORKFLOW_NOT_FOUND');
    expect(await codeOf(workflows.result('absent'))).toBe('WORKFLOW_NOT_FOUND');
    expect(await codeOf(workflows.restart('absent'))).toBe('WORKFLOW_NOT_FOUND');
    expect(await world.store.workflows.list({ timeoutMs: 1_000 })).toEqual({
      ids: [],
      more: false,
    });
  });

  it('B-18 a signal to a workflow that has ended is an error', async () => {
    const { world, fn } = await run(() => 'over');
    await fn.start('w', null);
    expect(await world.outcome(fn.result('w'))).toBe('over');
    expect(await codeOf(fn.signal('w', 'late'))).toBe('WORKFLOW_ENDED');
  });

  it('B-19 an id belongs to one function', async () => {
    const { fn, workflows } = await run(() => null);
    await fn.start('w', null);
    expect(await codeOf(workflows.start('other', 'w'))).toBe('WORKFLOW_TAKEN');
    await (await workflows.claim('plain')).release();
    expect(await codeOf(fn.start('plain', null))).toBe('WORKFLOW_TAKEN');
  });

  it('B-17 a sleep of 0 ends at once, and one of a negative time is an error', async () => {
    const { world, fn } = await run(async (order) => {
      await order.sleep('none', 0);
      return codeOf(order.sleep('past', -1));
    });
    await fn.start('w', null);
    expect(await world.outcome(fn.result('w'))).toBe('CONFIG_INVALID');
    const loaded = await world.store.runs?.load('w', { timeoutMs: 1_000 });
    expect(loaded?.steps.map(({ name }) => name)).toEqual(['none']);
  });

  it('B-17 the clock of the store decides when a sleep is over', async () => {
    const world = await make();
    // Its clocks stand still: by them no sleep would ever end.
    const frozen = await world.sleeper();
    const running = await world.actor();
    const code = (order: Orchestrator) => order.sleep('nap', '2m').then(() => 'awake');
    await frozen.holdfast.workflow('f', code).start('w', null);
    const fn = await running.holdfast.workflow('f', code).run();
    expect(await world.outcome(fn.result('w'))).toBe('awake');
    const entries: number[] = [];
    for await (const { what, atMs } of running.holdfast.workflows.history('w'))
      if (what.kind === 'kept' && what.name === 'nap') entries.push(atMs);
    const [began = 0, ended = 0] = entries;
    expect(ended - began).toBeGreaterThanOrEqual(120_000);
    expect(ended - began).toBeLessThan(120_000 + 10_000);
  });

  it('B-15 a name used with another payload is an error that names both', async () => {
    const { world, fn } = await run(async (order) => {
      const to = 'nobody';
      void order.call('SHIP', { n: 1 }, { as: 'ship', to }).catch(() => {});
      const error = await order.call('SHIP', { n: 2 }, { as: 'ship', to }).catch((e: unknown) => e);
      return [(error as { code: string }).code, (error as Error).message];
    });
    await fn.start('w', null);
    const [code, message] = (await world.outcome(fn.result('w'))) as [string, string];
    expect(code).toBe('STEP_MISMATCH');
    expect(message).toContain('{"n":1}');
    expect(message).toContain('{"n":2}');
  });

  it('B-16 a name kept as one kind of step is refused as another, and retried', async () => {
    const { world, fn, workflows } = await run(
      async (order) => {
        await order.step('x', () => 1);
        await order.sleep('x', '1s');
      },
      { retry: { tries: 2, backoff: '1s' } },
    );
    await fn.start('w', null);
    const error = await world.outcome(fn.result('w').catch((e: unknown) => e));
    expect(error).toMatchObject({
      code: 'WORKFLOW_FAILED',
      failure: { name: 'StepMismatchError' },
    });
    expect((await workflows.get('w'))?.run).toMatchObject({ phase: 'failed', tries: 2 });
  });

  it('B-19 an instance with the right version continues what another version could not', async () => {
    const world = await make();
    const [old, next] = [await world.actor(), await world.actor()];
    const retry = { tries: 100, backoff: '1s' };
    const v1 = old.holdfast.workflow(
      'f',
      async (order: Orchestrator) => {
        await order.step('a', () => 1);
        await order.waitFor('go');
        return 'v1';
      },
      { retry },
    );
    await v1.start('w', null);
    await v1.run();
    await world.until(
      () => old.holdfast.workflows.get('w').then((w) => w?.run?.phase === 'suspended'),
      'it to wait',
    );
    const v2 = await next.holdfast
      .workflow('f', (order: Orchestrator) => order.sleep('a', '1s').then(() => 'v2'), { retry })
      .run();
    await v1.signal('w', 'go');
    expect(await world.outcome(v2.result('w'))).toBe('v1');
  });

  it('B-16 a result that is not JSON, or too large, is refused', async () => {
    const { world, fn } = await run(async (order) => [
      await codeOf(order.step('big', () => 1n)),
      await codeOf(order.step('fn', () => () => 1)),
      await codeOf(order.step('large', () => 'x'.repeat(2_000_000))),
    ]);
    await fn.start('w', null);
    const found = await world.outcome(fn.result('w'));
    expect(found).toEqual(['CONFIG_INVALID', 'CONFIG_INVALID', 'VALUE_TOO_LARGE']);
  });

  it('B-19 a huge input is refused, and nothing is started', async () => {
    const { fn, workflows } = await run(() => null);
    expect(await codeOf(fn.start('w', 'x'.repeat(2_000_000)))).toBe('VALUE_TOO_LARGE');
    expect(await codeOf(fn.start('w', 1n))).toBe('CONFIG_INVALID');
    expect(await workflows.get('w')).toBe(null);
  });

  it('B-19 a failing function is tried again after a growing pause, then failed, and can be restarted', async () => {
    let isBroken = true;
    let runs = 0;
    let steps = 0;
    const { world, fn, workflows } = await run(
      async (order) => {
        runs++;
        await order.step('kept', () => ++steps);
        if (isBroken) throw new Error('no stock');
        return 'fine';
      },
      { retry: { tries: 3, backoff: '1s' } },
    );
    await fn.start('w', null);
    const error = await world.outcome(fn.result('w').catch((e: unknown) => e));
    expect(error).toMatchObject({ code: 'WORKFLOW_FAILED', failure: { message: 'no stock' } });
    expect((await workflows.get('w'))?.run?.value).toMatchObject({ message: 'no stock' });
    expect([runs, steps]).toEqual([3, 1]);
    isBroken = false;
    await workflows.restart('w');
    expect(await world.outcome(fn.result('w'))).toBe('fine');
    expect(steps).toBe(1);
    expect(await codeOf(workflows.restart('w'))).toBe('CONFIG_INVALID');
  });

  it('B-16 a failed step that ended a try runs again; one that was caught does not', async () => {
    const tried: string[] = [];
    const { world, fn } = await run(
      async (order) => {
        await order
          .step('caught', () => {
            tried.push('caught');
            throw new Error('declined');
          })
          .catch(() => {});
        return order.step('flaky', () => {
          tried.push('flaky');
          if (tried.length < 4) throw new Error('again');
          return tried;
        });
      },
      { retry: { tries: 5, backoff: '1s' } },
    );
    await fn.start('w', null);
    const ended = await world.outcome(fn.result('w'));
    expect(ended).toEqual(['caught', 'flaky', 'flaky', 'flaky']);
  });

  it('B-19 a step that fails in every try is no progress: the function fails after its tries', async () => {
    let runs = 0;
    const { world, fn, workflows } = await run(
      async (order) => {
        runs++;
        await order.step('kept', () => 1);
        await order.step('ship', () => {
          throw new Error('no such address');
        });
      },
      { retry: { tries: 3, backoff: '1s' } },
    );
    await fn.start('w', null);
    const error = await world.outcome(fn.result('w').catch((e: unknown) => e));
    expect(error).toMatchObject({ code: 'WORKFLOW_FAILED', tries: 3 });
    expect((await workflows.get('w'))?.run).toMatchObject({ phase: 'failed', tries: 3 });
    expect(runs).toBe(3);
  });

  it('B-20 a step keeps its failed tries with their errors, and each is an event', async () => {
    const { world, one, fn, workflows } = await run((order) =>
      order.step(
        'charge',
        ({ tries }) => {
          if (tries < 14) throw new Error(`bank is away ${tries}`);
          return 'receipt';
        },
        { retry: { tries: 20, backoff: '1s..1s' } },
      ),
    );
    const told: object[] = [];
    one.holdfast.on('step.failed', (facts) => told.push(facts));
    await fn.start('w', null);
    expect(await world.outcome(fn.result('w'))).toBe('receipt');
    expect(told).toHaveLength(13);
    expect(told[0]).toMatchObject({
      workflow: 'w',
      step: 'charge',
      tries: 1,
      why: 'bank is away 1',
    });
    const loaded = await workflows.steps('w');
    const [view] = stepViews('w', loaded ?? { run: null, steps: [] }, []);
    expect(view).toMatchObject({ state: 'done', tries: 14, value: 'receipt', error: null });
    expect(view?.tookMs).toBeGreaterThan(0);
    expect(view?.failed.map(({ tries }) => tries)).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
    expect(view?.failed.at(-1)?.error).toBe('bank is away 13');
  });

  it('B-16 a step is tried as often as it is told to, with one idempotency key', async () => {
    const keys: string[] = [];
    const { world, fn } = await run((order) =>
      order.step(
        'x',
        ({ idempotencyKey, tries }) => {
          keys.push(idempotencyKey);
          if (tries < 3) throw new Error('again');
          return tries;
        },
        { retry: { tries: 3, backoff: '10ms..1s' } },
      ),
    );
    await fn.start('w', null);
    expect(await world.outcome(fn.result('w'))).toBe(3);
    expect([keys.length, new Set(keys).size]).toEqual([3, 1]);
  });

  it('B-16 a step whose lease is revoked is stopped, and runs again elsewhere', async () => {
    const world = await make();
    const [one, two] = [await world.actor(), await world.actor()];
    const started: string[] = [];
    const code = (name: string) => (order: Orchestrator) =>
      order.step('long', async ({ signal, idempotencyKey }) => {
        started.push(`${name} ${idempotencyKey}`);
        if (name === 'two') return 'two';
        await new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason)),
        );
        return 'one';
      });
    const first = await one.holdfast.workflow('f', code('one')).run();
    await first.start('w', null);
    await world.until(() => started.length === 1, 'the step to run');
    const second = await two.holdfast.workflow('f', code('two')).run();
    void world.outcome(first.stop({ within: 1 }));
    const view = await two.holdfast.workflows.get('w');
    await two.holdfast.workflows.revokeLease(view?.leaseId ?? '', 'test').catch(() => {});
    expect(await world.outcome(second.result('w'))).toBe('two');
    expect(new Set(started.map((each) => each.split(' ')[1])).size).toBe(1);
  });

  it('B-19 an instance that stops lets its step end, and leaves the workflow to another', async () => {
    const world = await make();
    const [one, two] = [await world.actor(), await world.actor()];
    const ran: string[] = [];
    let finish = () => {};
    const code = (name: string) => async (order: Orchestrator) => {
      await order.step('a', async () => {
        ran.push(name);
        if (name === 'one') await new Promise<void>((resolve) => (finish = resolve));
      });
      return order.step('b', () => name);
    };
    const first = await one.holdfast.workflow('f', code('one')).run();
    await first.start('w', null);
    await world.until(() => ran.length === 1, 'the step to run');
    const stopping = first.stop();
    finish();
    await world.outcome(stopping);
    const second = await two.holdfast.workflow('f', code('two')).run();
    expect(await world.outcome(second.result('w'))).toBe('two');
    expect(ran).toEqual(['one']);
  });

  it('B-20 an action is tried as often as its call says, and each failure is in the history', async () => {
    const world = await make();
    const { holdfast } = await world.actor();
    const SHIP = () => {
      throw new Error('no truck');
    };
    await holdfast.processor({ name: 'p', role: 'effect', handlers: { SHIP }, tries: 9 }).start();
    const retry = { tries: 2, backoff: '10ms' };
    const fn = await holdfast
      .workflow('f', (order: Orchestrator) =>
        order
          .call('SHIP', { n: 1 }, { to: 'p', retry })
          .catch((e: unknown) => (e as { failure: unknown }).failure),
      )
      .run();
    await fn.start('w', null);
    expect(await world.outcome(fn.result('w'))).toMatchObject({ message: 'no truck' });
    const whats = [];
    for await (const { what } of holdfast.workflows.history('w')) whats.push(what);
    expect(whats).toMatchObject([
      ...[{ kind: 'started', function: 'f' }, { kind: 'claimed' }],
      ...[{ kind: 'emitted', type: 'SHIP', payloadBytes: 7 }],
      ...[{ kind: 'retried', tries: 1, error: 'no truck' }],
      ...[{ kind: 'settled', outcome: 'dead', tries: 2, error: 'no truck' }],
      ...[{ kind: 'paused', phase: 'done' }],
    ]);
  });

  it('B-15 B-16 steps of a claimed workflow are kept over tenures', async () => {
    const world = await make();
    const { holdfast } = await world.actor();
    const sink = new Sink();
    await warehouse({ holdfast } as WorkflowActor, sink);
    for (let tenure = 0; tenure < 3; tenure++) {
      const order = await holdfast.workflows.claim('w');
      const reserve = order.step('reserve', ({ idempotencyKey }) =>
        sink.apply('reserve', idempotencyKey),
      );
      expect(await world.outcome(reserve)).toBe(1);
      const shipped = order.call('SHIP', 1, { as: 'ship', to: 'warehouse' });
      expect(await world.outcome(shipped)).toEqual({ shipped: 1 });
      await world.outcome(order.sleep('nap', '1s'));
      if (tenure === 0) await holdfast.workflows.signal('w', 'go', 'now');
      expect(await world.outcome(order.waitFor('go'))).toMatchObject({ value: 'now' });
      await order.release();
    }
    expect(sink.tried).toEqual(['reserve', 'ship']);
  });
});
