import { describe, expect, it } from 'vitest';
import { FORECAST, ForecastRun } from '../../src/cli/commands/demo/forecast-run.ts';
import { printAlmanac, watchChannels } from '../../src/cli/commands/demo/programme.ts';
import { StationServer } from '../../src/cli/commands/demo/station-server.ts';
import type { Violation } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import { type Holdfast, open } from '../../src/holdfast.ts';
// The memory store loads it on first use, which takes longer than a clock that is stepped will wait.
import '../../src/store/memory/tables.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

const STEP_MS = 100;
const MOST_STEPS = 5_000;

/** One store, whoever is on it, and time that passes only in `until`. */
class Ground implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly over = new AbortController();
  readonly violations: Violation[] = [];
  readonly #store = createMemoryStore({ clock: this.clock });
  readonly #opened: Holdfast[] = [];

  async open(name: string): Promise<Holdfast> {
    const { clock } = this;
    const holdfast = await open(this.#store, { clock, name, random: seededRandom(name.length) });
    holdfast.on('workflow.violation', (violation) => this.violations.push(violation));
    this.#opened.push(holdfast);
    return holdfast;
  }

  async until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
    for (let step = 0; step < MOST_STEPS; step++) {
      if (await condition()) return;
      await this.clock.advance(STEP_MS);
    }
    throw new Error(`waited ${MOST_STEPS * STEP_MS} ms for ${what}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.over.abort();
    const closing = Promise.all(this.#opened.map((holdfast) => holdfast.close({ within: 0 })));
    let isDone = false;
    void closing.then(() => {
      isDone = true;
    });
    await this.until(() => isDone, 'all to be closed');
  }
}

describe('the programme of the demo', () => {
  it('W-04 W-11 goes on with its workflow while writers that were revoked, or have handed over, are refused', async () => {
    await using ground = new Ground();
    const { clock, over, violations } = ground;
    const operator = await ground.open('demo');
    const orchestrators = [await ground.open('dora'), await ground.open('emily')];
    const stations = new StationServer(seededRandom(7));
    const running = new ForecastRun(
      { clock, stations, operator, orchestrators },
      over.signal,
    ).run();
    const codes = () => [...new Set(violations.map(({ code }) => code))].sort();
    await ground.until(() => codes().length === 2, 'refusals of both kinds');
    expect(codes()).toEqual(['LEASE_VIOLATION', 'STALE_EPOCH']);
    const before = (await operator.workflows.get(FORECAST))?.epoch ?? 0;
    const goesOn = async () => ((await operator.workflows.get(FORECAST))?.epoch ?? 0) > before + 4;
    await ground.until(goesOn, 'the workflow to go on');
    const state = (await operator.workflows.get(FORECAST))?.state;
    expect(state).toMatchObject({
      city: expect.any(String),
      observed: { celsius: expect.any(Number) },
    });
    over.abort();
    await running;
  });

  it('continues the workflow after an operator has revoked its lease', async () => {
    await using ground = new Ground();
    const { clock, over } = ground;
    const operator = await ground.open('demo');
    const parts = { clock, stations: new StationServer(seededRandom(7)), operator };
    const running = new ForecastRun({ ...parts, orchestrators: [operator] }, over.signal).run();
    const { workflows } = operator;
    const heldBy = async () => {
      const view = await workflows.get(FORECAST);
      return view?.isHeld === true ? view.leaseId : null;
    };
    await ground.until(async () => (await heldBy()) !== null, 'a writer');
    const first = (await heldBy()) as string;
    await workflows.revokeLease(first, 'to see what happens');
    const another = async () => ![null, first].includes(await heldBy());
    await ground.until(another, 'another writer');
    over.abort();
    await running;
  });

  it('has one dead letter, which is done once an operator has it tried again', async () => {
    await using ground = new Ground();
    const holdfast = await ground.open('demo');
    const { deadLetters } = holdfast.workflows;
    await printAlmanac(holdfast);
    const dead = async () => {
      for await (const { id } of deadLetters.list('press')) return id;
      return null;
    };
    await ground.until(async () => (await dead()) !== null, 'a dead letter');
    const done: unknown[] = [];
    holdfast.on('action.done', (facts) => done.push(facts));
    await deadLetters.retry((await dead()) as string);
    await ground.until(() => done.length === 1, 'it to be printed');
  });

  it('always has two channels watched, and now and then another', async () => {
    await using ground = new Ground();
    const { clock, over } = ground;
    const holdfast = await ground.open('demo');
    const intents = holdfast.intents();
    const watching = watchChannels(intents, clock, over.signal);
    const states: ('NEW' | 'ENDED')[] = ['NEW'];
    const open = async () => {
      const { sessions } = await intents.sessions({ tenant: null, states });
      return sessions.map(({ target }) => target).sort();
    };
    await ground.until(async () => (await open()).length === 2, 'two channels');
    expect(await open()).toEqual(['harbour-cam', 'rain-radar']);
    await ground.until(async () => (await open()).includes('sea-level'), 'the third');
    await ground.until(async () => (await open()).length === 2, 'the first to be switched off');
    expect(await open()).toEqual(['rain-radar', 'sea-level']);
    over.abort();
    await watching;
  });
});
