import { afterAll, describe, expect, it } from 'vitest';
import type { ActionResult } from '../../src/workflow/action.ts';
import type { HandlerContext } from '../../src/workflow/attempt.ts';
import type { DeadLetter } from '../../src/workflow/dead-letters.ts';
import type { Orchestrator } from '../../src/workflow/orchestrator.ts';
import type { ProcessorOptions } from '../../src/workflow/processor-options.ts';
import {
  CLAIM_MS,
  inMemory,
  LONG_MS,
  onSqlite,
  redisWorlds,
  type WorkflowActor,
  type WorkflowWorld,
  type WorkflowWorldKind,
} from '../support/workflow-world.ts';
import { codeOf } from './support/holdfasts.ts';

const onRedis = await redisWorlds();
afterAll(() => onRedis[Symbol.asyncDispose]());

type Handler = (payload: never, context: HandlerContext) => unknown;
const TO = { target: 't' };

const claim = ({ holdfast }: WorkflowActor, id = 'w', ttl = LONG_MS): Promise<Orchestrator> =>
  holdfast.workflows.claim(id, { ttl });

/** A processor of `t` that does one thing. */
const processor = (actor: WorkflowActor, STEP: Handler, more: Partial<ProcessorOptions> = {}) =>
  actor.holdfast.processor({
    ...{ name: 't', role: 'effect', backoff: 10, tries: 3, ...more },
    handlers: { STEP: STEP as (payload: unknown, context: HandlerContext) => unknown },
  });

const deadLetters = async ({ holdfast }: WorkflowActor): Promise<DeadLetter[]> => {
  const found: DeadLetter[] = [];
  for await (const letter of holdfast.workflows.deadLetters.list()) found.push(letter);
  return found;
};

/** Results as they come in. */
const collect = (wf: Orchestrator): ActionResult[] => {
  const found: ActionResult[] = [];
  const reading = async () => {
    for await (const result of wf.results()) found.push(result);
  };
  reading().catch(() => {});
  return found;
};

/** Work that ends when the test says. */
const gate = () => {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
};

const unresolved = async (world: WorkflowWorld, id = 'w') =>
  (await world.store.workflows.read([id], { timeoutMs: 5_000 }))[0]?.unresolved;

const scenarios = ({ make }: WorkflowWorldKind) => {
  it('W-02 an emission whose answer was lost is sent again, and emitted once', async () => {
    await using world = await make();
    const [a, b] = [await world.actor(), await world.actor()];
    // An answer counts as lost after a sixth of that.
    const wf = await claim(a, 'w', 6_000);
    a.faults.loseReplies = true;
    const emitting = wf.emit('STEP', 'x', TO);
    await world.until(async () => (await unresolved(world)) === 1, 'it to arrive');
    a.faults.loseReplies = false;
    const action = await world.outcome(emitting);
    expect([action.epoch, wf.epoch]).toEqual([0, 1]);
    expect((await wf.emit('STEP', 'y', TO)).epoch).toBe(1);
    const done: unknown[] = [];
    const results = collect(wf);
    await processor(b, (payload) => done.push(payload)).start();
    await world.until(() => results.length === 2, 'both results');
    expect(done).toEqual(['x', 'y']);
  });

  it('W-02 an emission that did not arrive uses no epoch', async () => {
    await using world = await make();
    const a = await world.actor();
    const wf = await claim(a);
    a.faults.refuse = true;
    expect(await codeOf(wf.emit('STEP', 'x', TO))).toBe('STORE_UNREACHABLE');
    a.faults.refuse = false;
    expect((await wf.emit('STEP', 'y', TO)).epoch).toBe(0);
    expect(await unresolved(world)).toBe(1);
  });

  it('W-02 an action emitted again under its own id is the one that there is', async () => {
    await using world = await make();
    const a = await world.actor();
    const wf = await claim(a);
    const emitted: unknown[] = [];
    a.holdfast.on('action.emitted', ({ epoch }) => emitted.push(epoch));
    const actionId = '00000000-0000-4000-8000-0000000000aa';
    const own = { ...TO, actionId };
    const first = await wf.emit('STEP', 'x', own);
    await wf.emit('STEP', 'y', TO);
    const both = await Promise.all([wf.emit('STEP', 'x', own), wf.emit('STEP', 'z', TO)]);
    expect(both.map(({ epoch }) => epoch)).toEqual([first.epoch, 2]);
    await processor(a, () => 1).process(first);
    expect((await wf.emit('STEP', 'x', own)).epoch).toBe(0);
    expect([wf.epoch, emitted]).toEqual([3, [0, 1, 2]]);
  });

  it('W-05 the same action again replays its result, in any processor of that name', async () => {
    await using world = await make();
    const [a, b] = [await world.actor(), await world.actor()];
    const action = await (await claim(a)).emit('STEP', 1, TO);
    let runs = 0;
    const first = await processor(a, () => ++runs).process(action);
    const again = await processor(b, () => ++runs).process(action);
    expect(first).toMatchObject({ success: true, value: 1, epoch: 0 });
    expect(again).toEqual(first);
    expect(runs).toBe(1);
  });

  it('W-05 of two deliveries at once one is worked on, and the other refused before any work', async () => {
    await using world = await make();
    const [a, b] = [await world.actor(), await world.actor()];
    const action = await (await claim(a)).emit('STEP', 1, TO);
    const { opened, open } = gate();
    let runs = 0;
    const slow = async () => {
      runs++;
      await opened;
    };
    const both = [processor(a, slow).process(action), processor(b, slow).process(action)];
    for (const one of both) one.catch(() => {});
    expect(await codeOf(Promise.race(both))).toBe('STALE_EPOCH');
    open();
    const ends = await Promise.allSettled(both);
    expect(ends.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(runs).toBe(1);
  });

  it('W-13 W-05 a processor that dies at it: another has it after its claim, and the effect is there once', async () => {
    await using world = await make();
    const [a, b, c] = [await world.actor(), await world.actor(), await world.actor()];
    const wf = await claim(a);
    const { opened, open } = gate();
    const tries: unknown[] = [];
    const late: string[] = [];
    const effect = async (actor: WorkflowActor, { fence, idempotencyKey }: HandlerContext) =>
      actor.holdfast.records.put(`effect:${idempotencyKey}`, { fence }, { fence });
    const first = processor(
      b,
      async (_, context) => {
        tries.push(['b', context.tries]);
        await opened;
        late.push(await codeOf(effect(b, context)));
      },
      { claim: CLAIM_MS },
    );
    await first.start();
    const action = await wf.emit('STEP', 1, TO);
    await world.until(() => tries.length === 1, 'the first to be at it');
    b.faults.refuse = true;
    await processor(c, async (_, context) => {
      tries.push(['c', context.tries]);
      await effect(c, context);
      return 'done';
    }).start();
    expect(await world.outcome(wf.result(action.action_id))).toMatchObject({ value: 'done' });
    b.faults.refuse = false;
    open();
    await world.until(() => late.length === 1, 'the first to wake');
    expect([tries, late]).toEqual([
      [
        ['b', 1],
        ['c', 2],
      ],
      ['FENCE_STALE'],
    ]);
    const gone = world.until(() => first.running === 0, 'the first to give up');
    await gone;
    expect(await wf.result(action.action_id)).toMatchObject({ value: 'done', success: true });
  });

  it('W-13 a poison action dies after its tries; others go on, and its own workflow after it', async () => {
    await using world = await make();
    const [a, b] = [await world.actor(), await world.actor()];
    const [wf, other] = [await claim(a), await claim(a, 'other')];
    const done: unknown[] = [];
    const poison = (payload: string) => {
      done.push(payload);
      if (payload === 'poison') throw new Error('it does not agree with me');
    };
    const results = collect(wf);
    const bad = await wf.emit('STEP', 'poison', TO);
    await wf.emit('STEP', 'after', TO);
    const fine = await other.emit('STEP', 'other', TO);
    await processor(b, poison as Handler).start();
    expect(await world.outcome(other.result(fine.action_id))).toMatchObject({ success: true });
    await world.until(() => results.length === 2, 'both of the workflow');
    expect(results).toMatchObject([
      { action_id: bad.action_id, success: false, is_dead: true, value: null },
      { success: true, is_dead: false },
    ]);
    expect(results[0]?.error).toMatchObject({
      name: 'Error',
      message: 'it does not agree with me',
    });
    expect(done.filter((each) => each !== 'other')).toEqual([...Array(3).fill('poison'), 'after']);
    expect(done.indexOf('other')).toBeLessThan(done.indexOf('after'));
    expect(await deadLetters(a)).toMatchObject([
      { action: bad, tries: 3, reason: 'it does not agree with me' },
    ]);
  });

  it('W-13 a dead letter is emitted anew by the tenure of the moment; or dropped', async () => {
    await using world = await make();
    const [a, b] = [await world.actor(), await world.actor()];
    const wf = await claim(a);
    let isBroken = true;
    const done: unknown[] = [];
    const step = (payload: unknown, { epoch }: HandlerContext) => {
      if (isBroken) throw new Error('broken');
      done.push([payload, epoch]);
      return 'mended';
    };
    await processor(b, step as Handler, { tries: 1 }).start();
    const action = await wf.emit('STEP', 'x', TO);
    expect(await world.outcome(wf.result(action.action_id))).toMatchObject({ is_dead: true });
    const [letter] = await deadLetters(b);
    isBroken = false;
    const { deadLetters: letters } = b.holdfast.workflows;
    expect(await letters.retry(letter?.id ?? '')).toBe('w');
    expect(await world.outcome(wf.result(action.action_id))).toMatchObject({ value: 'mended' });
    expect([done, wf.epoch, await deadLetters(a)]).toEqual([[['x', 1]], 2, []]);
    expect(await letters.retry(letter?.id ?? '')).toBe(null);
    isBroken = true;
    const second = await wf.emit('STEP', 'y', TO);
    expect(await world.outcome(wf.result(second.action_id))).toMatchObject({ is_dead: true });
    const [other] = await deadLetters(b);
    expect(await letters.drop(other?.id ?? '')).toBe(true);
    expect([await letters.drop(other?.id ?? ''), await deadLetters(a)]).toEqual([false, []]);
  });

  it('W-13 a dead letter of a workflow that nobody holds is emitted anew by the next claim', async () => {
    await using world = await make();
    const [a, b] = [await world.actor(), await world.actor()];
    const wf = await claim(a);
    let isBroken = true;
    const step = () => {
      if (isBroken) throw new Error('broken');
    };
    await processor(b, step, { tries: 1 }).start();
    const action = await wf.emit('STEP', 'x', TO);
    await world.outcome(wf.result(action.action_id));
    await wf.release();
    isBroken = false;
    const [letter] = await deadLetters(b);
    expect(await b.holdfast.workflows.deadLetters.retry(letter?.id ?? '')).toBe('w');
    const next = await claim(a);
    expect(next.reemitted).toMatchObject([{ action_id: action.action_id, epoch: 1 }]);
    expect(await world.outcome(next.result(action.action_id))).toMatchObject({ success: true });
  });

  it('W-13 work whose outcome could not be told at once is not done again', async () => {
    await using world = await make();
    const [a, b] = [await world.actor(), await world.actor()];
    const wf = await claim(a);
    let runs = 0;
    const done = processor(b, () => {
      b.faults.refuse = true;
      return ++runs;
    });
    await done.start();
    const action = await wf.emit('STEP', 1, TO);
    await world.until(() => runs === 1 && done.running === 1, 'it to be done');
    b.faults.refuse = false;
    expect(await world.outcome(wf.result(action.action_id))).toMatchObject({ value: 1 });
    expect(runs).toBe(1);
  });
};

describe.each([inMemory, onSqlite])('over $name', scenarios);
// There time can not be stepped: they wait together.
describe.concurrent('over Redis', () => scenarios(onRedis));

describe.each([inMemory, onSqlite, onRedis])('a crowd over $name', ({ make }) => {
  it('W-13 a thousand workflows at once each have their result, and none has another’s', async () => {
    await using world = await make();
    const [a, b] = [await world.actor(), await world.actor()];
    const effects = new Map<string, number>();
    const twice = (payload: number, { idempotencyKey }: HandlerContext) => {
      effects.set(idempotencyKey, (effects.get(idempotencyKey) ?? 0) + 1);
      return 2 * payload;
    };
    await processor(b, twice as Handler, { concurrency: 200 }).start();
    const one = async (i: number) => {
      const wf = await claim(a, `w${i}`);
      const { action_id } = await wf.emit('STEP', i, TO);
      return (await wf.result(action_id)).value;
    };
    const all = Array.from({ length: 1_000 }, (_, i) => one(i));
    const values = await world.outcome(Promise.all(all));
    expect(values).toEqual(Array.from({ length: 1_000 }, (_, i) => 2 * i));
    expect([...effects.values()]).toEqual(Array(1_000).fill(1));
  });
});
