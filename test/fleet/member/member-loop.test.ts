import { expect, it } from 'vitest';
import { MemberLoop } from '../../../src/fleet/member/member-loop.ts';
import { FakeClock } from '../../../testing/fakes/fake-clock.ts';
import { testRuntime } from '../../support/test-runtime.ts';

const EVERY_MS = 10_000;

it('FR-006 a process that froze in the middle of a round beats again soon', async () => {
  const clock = new FakeClock();
  const beginnings: number[] = [];
  const rounds = new MemberLoop(testRuntime({ clock }), EVERY_MS, async () => {
    beginnings.push(clock.monotonicMs());
    if (beginnings.length === 1) clock.block(65_000);
    return Number.POSITIVE_INFINITY;
  });
  await rounds.start();
  const thawedMs = clock.monotonicMs();
  await clock.advance(EVERY_MS);
  await rounds.stop();
  expect(beginnings.length).toBeGreaterThan(1);
  expect(beginnings[1]).toBeLessThanOrEqual(thawedMs + EVERY_MS / 4);
});
