import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MISTAKES, type ModelWorld, SMALL } from '../../testing/model/mistakes.ts';
import { LeaseModel } from '../../testing/model/rules.ts';
import { checkWorld, walkWorld } from '../../testing/model/spin.ts';
import { type ModelStep, TICK_MS, traceOf } from '../../testing/model/story.ts';
import { requirePrograms, thisMachine } from '../support/require-redis.ts';

/** Spin makes a program in C for each world, which a busy machine takes its time to compile. */
const DEADLINE_MS = 300_000;
const WALKS = 4;
/** Of spin's own, which takes some eighty for each step of the model. */
const STEPS = 40_000;
const EVERYTHING: ModelWorld = {
  ...SMALL,
  KEYS: 2,
  STRAYS: 1,
  SESSIONS: 3,
  HANDOVERS: 1,
  GUARDING: 1,
};

beforeAll(() => requirePrograms(thisMachine, ['spin', 'gcc']), DEADLINE_MS);

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'holdfast-model-'));
  folders.push(made);
  return made;
}

/** The rules in TypeScript that the steps of spin break. */
function refusals(steps: readonly ModelStep[]): string[] {
  const model = new LeaseModel({ boundMs: 2 * TICK_MS, drift: 0, slackMs: 0 });
  return traceOf(steps).flatMap((event) => model.take(event)?.rule ?? []);
}

describe('the formal model', () => {
  it(
    'B-28 holds in every state of the smallest world',
    async () => {
      const found = await checkWorld({ folder: folder(), world: SMALL, mistake: null });
      expect(found).toMatchObject({ steps: null, isComplete: true });
      expect(found.states).toBeGreaterThan(10_000);
    },
    DEADLINE_MS,
  );

  it.concurrent.each(MISTAKES)(
    'B-28 finds $name, and so do the rules for traces',
    async ({ name, world }) => {
      const { steps } = await checkWorld({ folder: folder(), world, mistake: name });
      expect(steps?.length).toBeGreaterThan(0);
      expect(refusals(steps ?? [])).not.toEqual([]);
    },
    DEADLINE_MS,
  );

  it(
    'B-28 goes no way that the rules for traces refuse',
    async () => {
      for (let seed = 1; seed <= WALKS; seed++) {
        const run = { folder: folder(), world: EVERYTHING, mistake: null };
        const steps = await walkWorld(run, { seed, steps: STEPS });
        expect(steps.length).toBeGreaterThan(100);
        expect(refusals(steps)).toEqual([]);
      }
    },
    DEADLINE_MS,
  );
});
