import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import fc from '../support/fast-check.ts';
import { LEASE_VERBS, LeaseSteps, stepOf } from '../support/lease-steps.ts';
import {
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';
import { flowOrRunStep, takeFlowStep } from './support/flow-steps.ts';
import { intentStep, takeIntentStep } from './support/intent-steps.ts';
import type { Twin } from './support/redis-twins.ts';
import { Telling } from './support/telling.ts';

// Two makes of one port: functions of PostgreSQL, and the tables of SQLite. Whatever is asked of both, they have to answer the same.

/** How many sequences are tried: few here; set HOLDFAST_RUNS to 1000 for a long look. */
const RUNS = Number(process.env.HOLDFAST_RUNS ?? 25);
/** Opaque, or a moment. */
const OWN = new Set(['position', 'atMs', 'createdAtMs', 'changedAtMs', 'revokedAtMs', 'nowMs']);

let server: PostgresServer;
let control: pg.Client;
beforeAll(async () => {
  server = await startPostgres(postgresPrograms() ?? '', { isDurable: true });
  await (await openPostgresStore(server.url)).close();
  control = new pg.Client({ connectionString: server.url });
  await control.connect();
  // The time of the store is the time of the test.
  await control.query(`CREATE TABLE holdfast.test_clock (now_us bigint NOT NULL); INSERT INTO holdfast.test_clock VALUES (0);
    CREATE OR REPLACE FUNCTION holdfast.clock_us() RETURNS bigint LANGUAGE sql VOLATILE AS
    'SELECT now_us FROM holdfast.test_clock'`);
}, 60_000);
afterAll(async () => {
  await control.end();
  await server[Symbol.asyncDispose]();
});

let sequences = 0;
async function openBoth(clock: FakeClock): Promise<Twin[]> {
  const prefix = `sequence-${sequences++}:`;
  // The time begins again with each sequence, and fences of deliveries follow it.
  await control.query('UPDATE holdfast.delivery SET fence = 0');
  const postgres = await openPostgresStore(server.url, { prefix, quarantine: 'off' });
  return [createMemoryStore({ clock }), postgres].map((store) => {
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

/** What one sequence has. The memory store keeps all of it but leases in SQLite's tables. */
interface Subject<S> {
  readonly step: fc.Arbitrary<S>;
  readonly take: (twin: Twin, step: S) => Promise<unknown>;
  /** Whether so much time passes before a step that every claim has ended. */
  readonly isLate: (step: S) => boolean;
}

function agree<S>(about: string, { step, take, isLate }: Subject<S>): void {
  it(
    `B-21 PostgreSQL and SQLite give the same answers about ${about}`,
    async () => {
      const steps = fc.array(step, { maxLength: 60, size: 'max' });
      const property = fc.asyncProperty(steps, async (all) => {
        const clock = new FakeClock();
        const both = await openBoth(clock);
        for (const one of all) {
          await clock.advance(isLate(one) ? 61_000 : 1);
          const nowUs = Math.floor(clock.wallMs() * 1_000);
          await control.query(`UPDATE holdfast.test_clock SET now_us = ${nowUs}`);
          const answers = await Promise.all(
            both.map(async (twin) => twin.telling.tell(plain(await take(twin, one)))),
          );
          expect(answers[1], JSON.stringify(one)).toEqual(answers[0]);
        }
        for (const { store } of both) await store.close();
      });
      await fc.assert(property, { numRuns: RUNS });
    },
    120_000 + RUNS * 5_000,
  );
}

agree('streams, workflows and runs', {
  step: flowOrRunStep,
  take: takeFlowStep,
  isLate: ({ pick }) => pick === 60,
});
agree('sessions, their keys, clients, pages and starts', {
  // Only Redis can lose one key of a session.
  step: intentStep.filter(({ intent }) => intent !== 'lose'),
  // The id of a session that is there is refused.
  take: (twin, step) => takeIntentStep(twin, step).catch((error: Error) => error.message),
  isLate: ({ pick }) => pick === 60,
});

it(
  'B-21 B-25 PostgreSQL and the memory store give the same answers about leases and keepalives',
  async () => {
    const property = fc.asyncProperty(
      fc.array(stepOf([...LEASE_VERBS, 'elapse']), { maxLength: 60, size: 'max' }),
      async (steps) => {
        const clock = new FakeClock();
        const both = (await openBoth(clock)).map((twin) => {
          return { ...twin, leases: new LeaseSteps(twin.store) };
        });
        for (const step of steps) {
          await clock.advance(step.verb === 'elapse' ? step.pick * 40 : 1);
          const nowUs = Math.floor(clock.wallMs() * 1_000);
          await control.query(`UPDATE holdfast.test_clock SET now_us = ${nowUs}`);
          const answers = await Promise.all(both.map(({ leases }) => leases.take(step)));
          expect(answers[1], JSON.stringify(step)).toEqual(answers[0]);
        }
        for (const { store } of both) await store.close();
      },
    );
    await fc.assert(property, { numRuns: RUNS });
  },
  120_000 + RUNS * 5_000,
);
