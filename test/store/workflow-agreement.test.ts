import { expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import {
  HISTORY_STATE_MOST,
  RESULTS_KEPT,
  type Settlement,
  type StepReply,
  UNREAD_MOST,
  workflowKey,
} from '../../src/store/port/workflow-store.ts';
import { openRedisStoreOn } from '../../src/store/redis/redis-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { SimRedis } from '../../testing/sim-redis/server.ts';
import { type FlowStep, flowStep, takeFlowStep } from '../integration/support/flow-steps.ts';
import type { Twin } from '../integration/support/redis-twins.ts';
import { Telling } from '../integration/support/telling.ts';
import fc from '../support/fast-check.ts';
import { simDialer } from '../support/sim-link.ts';

// Two makes of one port: SQL, and Lua on Redis. Whatever is asked of both, they have to answer the same.

/** How many sequences are tried: few here; set HOLDFAST_RUNS to 10000 for a long look. */
const RUNS = Number(process.env.HOLDFAST_RUNS ?? 100);
const CALL = { timeoutMs: 5_000 };
/** What they have once disagreed about. */
const FOUND: FlowStep[][] = [
  // A dead action of a workflow that was removed and begun again, with an action of that id under way, for another target.
  [
    ['claim', 't1', 0],
    ['emit', 't2', 19],
    ['work', 't2', 3],
    ['late', 't1', 60],
    ['forget', 't1', 0],
    ['claim', 't1', 0],
    ['emit', 't1', 43],
    ['revive', 't2', 0],
  ],
  // An action that is in somebody's hands, and has another epoch than it was taken with.
  [
    ['claim', 't1', 0],
    ['emit', 't1', 3],
    ['reserve', 't1', 46],
    ['handoff', 't1', 1],
    ['claim', 't1', 0],
    ['reserve', 't1', 26],
  ],
].map((steps) =>
  steps.map(([flow, target, pick]) => ({ flow, id: 'w1', who: 'h1', target, pick }) as FlowStep),
);
/** Opaque, or a moment. */
const OWN = new Set(['position', 'atMs', 'createdAtMs', 'changedAtMs', 'revokedAtMs']);

async function openBoth(clock: FakeClock): Promise<Twin[]> {
  const random = seededRandom(1);
  const server = new SimRedis({
    wallMs: () => clock.wallMs(),
    nowMs: () => clock.monotonicMs(),
    random,
  });
  const redis = await openRedisStoreOn(simDialer(server), { quarantine: 'off', clock, random });
  return [createMemoryStore({ clock }), redis].map((store) => {
    // Nobody talks to these but through their store.
    return { store, link: undefined as never, messages: [], telling: new Telling() };
  });
}

/** What is said of it, without what each store may choose. */
function plain(answer: unknown): unknown {
  if (Array.isArray(answer)) return answer.map(plain);
  if (typeof answer !== 'object' || answer === null) return answer;
  const isDead = 'reason' in answer && 'tries' in answer;
  const fields = Object.entries(answer).filter(
    ([name]) => !OWN.has(name) && !(isDead && name === 'id'),
  );
  return Object.fromEntries(fields.map(([name, value]) => [name, plain(value)]));
}

it(
  'a store on SQL and one on Redis give the same answers about streams and workflows',
  async () => {
    const property = fc.asyncProperty(
      fc.array(flowStep, { maxLength: 60, size: 'max' }),
      async (steps) => {
        const clock = new FakeClock();
        const both = await openBoth(clock);
        for (const step of steps) {
          await clock.advance(step.pick === 60 ? 61_000 : 1);
          const answers = await Promise.all(
            both.map(async (twin) => twin.telling.tell(plain(await takeFlowStep(twin, step)))),
          );
          expect(answers[1], JSON.stringify(step)).toEqual(answers[0]);
        }
        for (const { store } of both) await store.close();
      },
    );
    await fc.assert(property, { numRuns: RUNS, examples: FOUND.map((steps) => [steps]) });
  },
  60_000 + RUNS * 500,
);

/** Whole batches, so that a sequence passes what is kept of results and of history. */
const BATCH = 20;
const BATCHES = Math.ceil((RESULTS_KEPT * 1.3) / BATCH);
const LONG_RUNS = Math.max(1, Math.round(RUNS / 50));
const LARGE = 'x'.repeat(HISTORY_STATE_MOST);

const longStep = fc.record({
  does: fc.constantFrom('read', 'read', 'known', 'known', 'revive', 'update', 'succeed'),
  /** Where in the past it looks, as a share of it. */
  share: fc.noBias(fc.nat({ max: 999 })).map((n) => n / 1_000),
  size: fc.noBias(fc.nat({ max: 40 })),
});
type LongStep = typeof longStep extends fc.Arbitrary<infer S> ? S : never;

/** A tenure of one long workflow on one store; both stores are driven by the same steps. */
class LongRun {
  readonly #store: Store;
  #leaseId = 'l0';
  #epoch = 0;
  #emitted = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  async claim(): Promise<unknown> {
    const { leases, workflows } = this.#store;
    const key = workflowKey('w');
    const [held] = await leases.read([key], CALL);
    if (held?.kind === 'held') await leases.release([{ key, ...held }], CALL);
    this.#leaseId = `l${Number(this.#leaseId.slice(1)) + 1}`;
    const call = { ...CALL, ttlMs: 300_000, inbox: 'in', leaseClass: 'workflow' };
    const [reply] = await leases.acquire([{ key, holder: this.#leaseId }], call);
    const fence = reply?.kind === 'granted' ? reply.fence : 0;
    const begun = await workflows.begin(
      'w',
      { leaseId: this.#leaseId, fence, inbox: 'in', resume: true },
      CALL,
    );
    if (begun.kind === 'begun') this.#epoch = begun.workflow.epoch;
    return begun;
  }

  /** Emits a batch, and lets all that is there be done. */
  async batch(): Promise<unknown> {
    const reply = await this.#emit(Array.from({ length: BATCH }, () => `a${this.#emitted++}`));
    return [reply, ...(await this.#work())];
  }

  /** Emits, and says of some results, twice of each, that they have been read; lets some be done. */
  async fill({ share, size }: LongStep): Promise<unknown> {
    const read = await this.#unread(0, Math.floor(share * 40));
    const ids = Array.from({ length: size }, () => `a${this.#emitted++}`);
    const reply = await this.#emit(ids, size % 2 === 0 ? [] : [...read, ...read]);
    const done = size % 3 === 0 ? await this.#work() : [];
    return [reply, done, await this.#store.workflows.read(['w'], CALL)];
  }

  /** Lets all that is there be done; every 7th action dies. */
  async #work(): Promise<unknown[]> {
    const told: unknown[] = [];
    const { workflows } = this.#store;
    for (;;) {
      const call = { ...CALL, consumer: 'c', most: 1, claimMs: 60_000 };
      const [taken] = await workflows.take('t', call);
      if (taken?.kind !== 'reserved') return told;
      const { workflow, fence, action, tries } = taken;
      const isDead = Number(action.id.slice(1)) % 7 === 0;
      const how = isDead ? { outcome: 'dead', reason: 'a\u0000b' } : { outcome: 'succeeded' };
      const settlement = { workflow, fence, value: action.id, ...how } as Settlement;
      told.push(action.id, action.epoch, tries);
      told.push(await workflows.settle('t', [settlement], CALL));
    }
  }

  async take({ does, share, size }: LongStep): Promise<unknown> {
    const { workflows, streams } = this.#store;
    const past = `a${Math.floor(share * this.#emitted)}`;
    switch (does) {
      case 'read': {
        const read = await this.#unread(share, size);
        return workflows.markRead('w', { ...this.#ref, read }, CALL);
      }
      case 'known':
        return [await workflows.resultOf('w', past, CALL), await this.#emit([past])];
      case 'revive': {
        const { entries } = await streams.dead('action:t', CALL);
        const dead = entries[Math.floor(share * entries.length)];
        const revived = await workflows.revive('t', dead?.id ?? '1-1', CALL);
        return [dead?.reason, revived, this.#grown(await workflows.unpark('w', this.#ref, CALL))];
      }
      case 'update': {
        const state = size % 2 === 0 ? { size } : LARGE.slice(size);
        return this.#grown(await workflows.update('w', { ...this.#ref, state }, CALL));
      }
      case 'succeed':
        return this.claim();
    }
  }

  async look(): Promise<unknown> {
    const { workflows } = this.#store;
    const { entries, more } = await workflows.history('w', CALL);
    return [await workflows.read(['w'], CALL), entries.length, more, entries[0], entries.at(-1)];
  }

  get #ref() {
    return { leaseId: this.#leaseId, epoch: this.#epoch, read: [] as string[] };
  }

  async #emit(ids: readonly string[], read: string[] = []): Promise<unknown> {
    const actions = ids.map((id) => ({ id, target: 't', priority: 5, body: '{}' }));
    const step = { ...this.#ref, read, actions };
    return this.#grown(await this.#store.workflows.emit('w', step, CALL));
  }

  #grown(reply: StepReply): StepReply {
    if (reply.kind === 'done') this.#epoch = reply.epoch;
    return reply;
  }

  /** Some positions, from a page in the middle of what is unread. */
  async #unread(share: number, size: number): Promise<string[]> {
    const { workflows } = this.#store;
    const first = await workflows.results('w', CALL);
    const after = first.results[Math.floor(share * first.results.length)]?.position;
    const call = { ...CALL, most: size + 1, ...(share > 0.3 && after && { after }) };
    return (await workflows.results('w', call)).results.map(({ position }) => position);
  }
}

/** Drives both stores by the same steps, and compares what each answers. */
async function agreeing(
  take: (
    agree: (what: string, ask: (run: LongRun) => Promise<unknown>) => Promise<void>,
  ) => Promise<void>,
): Promise<void> {
  const clock = new FakeClock();
  const both = await openBoth(clock);
  const runs = both.map(({ store, telling }) => ({ run: new LongRun(store), telling }));
  await take(async (what, ask) => {
    await clock.advance(1);
    const [sql, redis] = await Promise.all(
      runs.map(async ({ run, telling }) => telling.tell(plain(await ask(run)))),
    );
    expect(redis, what).toEqual(sql);
  });
  for (const { store } of both) await store.close();
}

it('W-02 a store on SQL and one on Redis agree on when a workflow has too many unread results', async () => {
  const steps = fc.array(longStep, { minLength: 60, maxLength: 60, size: 'max' });
  const property = fc.asyncProperty(steps, (steps) =>
    agreeing(async (agree) => {
      await agree('claim', (run) => run.claim());
      for (let n = BATCH; n < UNREAD_MOST; n += BATCH)
        await agree(`batch ${n}`, (run) => run.batch());
      for (const [i, step] of steps.entries())
        await agree(`step ${i}: ${JSON.stringify(step)}`, (run) => run.fill(step));
    }),
  );
  await fc.assert(property, { numRuns: 1, endOnFailure: true });
}, 60_000);

it(
  'W-13 a store on SQL and one on Redis agree on what is kept of results and history, beyond every limit',
  async () => {
    const property = fc.asyncProperty(
      fc.array(longStep, { minLength: BATCHES, maxLength: BATCHES, size: 'max' }),
      (steps) =>
        agreeing(async (agree) => {
          await agree('claim', (run) => run.claim());
          for (const [i, step] of steps.entries()) {
            await agree(`batch ${i}`, (run) => run.batch());
            await agree(`step ${i}: ${JSON.stringify(step)}`, (run) => run.take(step));
            if (i % 10 === 0) await agree(`look ${i}`, (run) => run.look());
          }
          await agree('the end', (run) => run.look());
        }),
    );
    await fc.assert(property, { numRuns: LONG_RUNS, endOnFailure: true });
  },
  60_000 + LONG_RUNS * 15_000,
);
