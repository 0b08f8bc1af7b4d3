import { describe, expect, it } from 'vitest';
import { builtIn, callWithSession, functionPipeline } from '../../src/worker/pipelines/function.ts';
import type { PipelineFunction } from '../../src/worker/pipelines/pipeline.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { FakeHold, sessionFor } from './support/fake-hold.ts';

const session = sessionFor({});

function start(run: PipelineFunction, clock = new FakeClock()) {
  const hold = new FakeHold(clock);
  const running = functionPipeline(clock, callWithSession(run))(session, hold);
  return { hold, running };
}

describe('I-17 a function pipeline', () => {
  it('is called with its context before start returns', async () => {
    const calls: unknown[] = [];
    const { running, hold } = start((...args) => calls.push(args));
    expect(calls).toMatchObject([[session, { fence: 1_234, slot: '2', signal: hold.signal }]]);
    expect(await running.started).toBeNull();
  });

  it('may destructure its context', async () => {
    const { running, hold } = start((_, { progress, assertHeld }) => {
      progress('half');
      assertHeld();
    });
    await running.ended;
    expect(hold.reported).toEqual(['half']);
    expect(hold.asserted).toBe(1);
  });

  it('has completed when it returns, and its result is kept', async () => {
    const clock = new FakeClock();
    const { running } = start(async () => {
      await clock.sleep(1_500);
      return { frames: 3 };
    }, clock);
    await clock.advance(1_500);
    expect(await running.ended).toEqual({
      how: 'completed',
      isGone: true,
      detail: { tookMs: 1_500, result: { frames: 3 } },
    });
  });

  const round: Record<string, unknown> = {};
  round.self = round;
  it.each([
    ['nothing', undefined],
    ['a function', () => {}],
    ['a value that cannot be JSON', 10n],
    ['an object that contains itself', round],
    ['a long text', 'x'.repeat(5_000)],
  ])('that returns %s has completed without a result', async (_, result) => {
    const { running } = start(() => result);
    expect(await running.ended).toEqual({ how: 'completed', isGone: true, detail: { tookMs: 0 } });
  });

  it.each([
    ['an error', new Error('no signal'), 'no signal'],
    ['an error that says nothing', new TypeError(), 'TypeError'],
    ['a text', 'no signal', 'no signal'],
    ['an error with a long message', new Error('x'.repeat(9_000)), 'x'.repeat(500)],
    ['nothing', undefined, 'undefined'],
    [
      'a value that cannot be shown',
      Object.create(null),
      'the function threw a value that cannot be shown',
    ],
  ])('that throws %s has failed, and says why', async (_, thrown, error) => {
    const failed = { how: 'failed', isGone: true, detail: { tookMs: 0, error } };
    const { running } = start(() => {
      throw thrown;
    });
    expect(await running.ended).toEqual(failed);
    expect(await start(() => Promise.reject(thrown)).running.ended).toEqual(failed);
  });

  it.each([
    ['returns', () => 'done'],
    [
      'throws',
      () => {
        throw new Error('aborted');
      },
    ],
  ])('that is told to end and then %s was stopped', async (_, settle) => {
    const { running, hold } = start(async (_session, { signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return settle();
    });
    hold.abort();
    running.stop();
    expect(await running.ended).toMatchObject({ how: 'stopped', isGone: true });
  });
});

describe('the built-in pipeline', () => {
  it('reports every second how long it has run, and ends when it is told to', async () => {
    const clock = new FakeClock();
    const hold = new FakeHold(clock);
    const running = functionPipeline(clock, callWithSession(builtIn(clock)))(session, hold);
    await clock.advance(2_500);
    expect(hold.reported).toEqual([0, 1_000, 2_000].map((runningForMs) => ({ runningForMs })));
    hold.abort();
    running.stop();
    expect(await running.ended).toMatchObject({ how: 'stopped', detail: { tookMs: 2_500 } });
    expect(clock.pendingTimers).toBe(0);
  });
});
