import { expect, it } from 'vitest';
import type { Action } from '../../src/workflow/action.ts';
import type { Handoff, Orchestrator } from '../../src/workflow/orchestrator.ts';
import fc from '../support/fast-check.ts';
import {
  inMemory,
  onSqlite,
  type WorkflowActor,
  type WorkflowWorld,
} from '../support/workflow-world.ts';

const CLIENTS = 3;
const TTL_MS = 2_000;
const WINDOW_MS = 500;
const CALL = { timeoutMs: 5_000 };

/** A workflow as it must be. */
interface Model {
  epoch: number;
  state: unknown;
  /** Which client's tenure the store has to take steps of, if any's. */
  holder: number | null;
  /** Every epoch that was ever given out, with the lease it was given out under. */
  readonly given: Map<number, string>;
  unresolved: number;
}

interface Real {
  readonly world: WorkflowWorld;
  readonly actors: readonly WorkflowActor[];
  /** The last tenure of each client, over or not: what it still sends is sent. */
  readonly tenures: (Orchestrator | null)[];
  handoff: Handoff | null;
}

type Command = fc.AsyncCommand<Model, Real>;

/** What the runs have come by: a model that never meets it proves nothing about it. */
const MET = ['claim refused', 'reemitted', 'dropped', 'handoff claimed', 'step refused'] as const;
const met = new Set<(typeof MET)[number]>();

const settledOf = async <T>(promise: Promise<T>): Promise<T | null> => promise.catch(() => null);

/** What the store says is what the model says. */
async function agree({ epoch, state, unresolved }: Model, { world }: Real): Promise<void> {
  const [found] = await world.store.workflows.read(['w'], CALL);
  if (found === null || found === undefined) expect(epoch).toBe(0);
  else expect(found).toMatchObject({ epoch, state, unresolved });
}

/** Each epoch is given out once, in order, and to the lease that the workflow was in. */
function give(model: Model, leaseId: string, epoch: number): void {
  expect(epoch).toBe(model.epoch);
  expect(model.given.has(epoch)).toBe(false);
  model.given.set(epoch, leaseId);
  model.epoch++;
}

abstract class OfClient implements Command {
  readonly client: number;

  constructor(client: number) {
    this.client = client;
  }

  check(): boolean {
    return true;
  }

  abstract run(model: Model, real: Real): Promise<void>;

  toString(): string {
    return `${this.constructor.name}(${this.client})`;
  }
}

class Claim extends OfClient {
  async run(model: Model, real: Real): Promise<void> {
    const { handoff } = real;
    const options = { ttl: TTL_MS, ...(handoff && { handoff }) };
    const { workflows } = (real.actors[this.client] as WorkflowActor).holdfast;
    const wf = await settledOf(workflows.claim('w', options));
    if (model.holder !== null) expect(wf).toBe(null);
    if (wf === null) met.add('claim refused');
    else {
      if (wf.reemitted.length > 0) met.add('reemitted');
      if (wf.dropped.length > 0) met.add('dropped');
      if (handoff !== null) met.add('handoff claimed');
      real.handoff = null;
      for (const action of wf.reemitted) give(model, wf.leaseId, action.epoch);
      model.unresolved -= wf.dropped.length;
      expect(wf.reemitted.length).toBe(model.unresolved);
      expect([wf.epoch, wf.state]).toEqual([model.epoch, model.state]);
      real.tenures[this.client] = wf;
      model.holder = this.client;
    }
    await agree(model, real);
  }
}

/** A step of a tenure: taken if it is the one that holds the workflow, and otherwise it changes nothing. */
abstract class StepOf extends OfClient {
  async run(model: Model, real: Real): Promise<void> {
    const wf = real.tenures[this.client];
    if (wf === null || wf === undefined) return;
    const isTaken = await this.take(wf, model, real);
    expect(isTaken).toBe(model.holder === this.client);
    if (isTaken) this.after(model);
    else met.add('step refused');
    await agree(model, real);
  }

  abstract take(wf: Orchestrator, model: Model, real: Real): Promise<boolean>;

  after(_model: Model): void {}
}

class Emit extends StepOf {
  async take(wf: Orchestrator, model: Model): Promise<boolean> {
    const both = await Promise.all(
      ['a', 'b'].map((payload) => settledOf<Action>(wf.emit('STEP', payload, { target: 't' }))),
    );
    const actions = both.filter((action) => action !== null);
    for (const action of actions) {
      expect(action.lease_id).toBe(wf.leaseId);
      give(model, wf.leaseId, action.epoch);
      model.unresolved++;
    }
    return actions.length === 2;
  }
}

class Update extends StepOf {
  async take(wf: Orchestrator, model: Model): Promise<boolean> {
    const state = { by: wf.leaseId, at: wf.epoch };
    const isTaken = (await settledOf(wf.updateState(state).then(() => true))) === true;
    if (isTaken) {
      give(model, wf.leaseId, model.epoch);
      model.state = state;
    }
    return isTaken;
  }
}

class HandOff extends StepOf {
  async take(wf: Orchestrator, model: Model, real: Real): Promise<boolean> {
    const handoff = await settledOf(wf.handoff({ window: WINDOW_MS }));
    if (handoff === null) return false;
    give(model, wf.leaseId, handoff.transfer_epoch);
    real.handoff = handoff;
    return true;
  }

  override after(model: Model): void {
    model.holder = null;
  }
}

class Revoke extends StepOf {
  async take(wf: Orchestrator, _: Model, real: Real): Promise<boolean> {
    const { workflows } = (real.actors[0] as WorkflowActor).holdfast;
    return (await settledOf(workflows.revokeLease(wf.leaseId, 'a test').then(() => true))) === true;
  }

  override after(model: Model): void {
    model.holder = null;
  }

  /** The tenure of a lease that ran out can be revoked until another begins: it makes no difference to who may write. */
  override async run(model: Model, real: Real): Promise<void> {
    const wf = real.tenures[this.client];
    if (wf === null || wf === undefined) return;
    const isTaken = await this.take(wf, model, real);
    if (model.holder === this.client) expect(isTaken).toBe(true);
    if (isTaken) this.after(model);
    await agree(model, real);
  }
}

/** Cut off until its lease, and whatever window there is, has run out: it hears of nothing. */
class Expire extends OfClient {
  async run(model: Model, real: Real): Promise<void> {
    const { faults } = real.actors[this.client] as WorkflowActor;
    faults.refuse = true;
    let steps = 0;
    await real.world.until(() => steps++ * 50 > TTL_MS + WINDOW_MS, 'time to pass');
    faults.refuse = false;
    if (model.holder === this.client) model.holder = null;
    real.handoff = null;
    await agree(model, real);
  }
}

const client = fc.nat({ max: CLIENTS - 1 });
const commands = fc.commands(
  [
    client.map((one): Command => new Claim(one)),
    client.map((one): Command => new Claim(one)),
    client.map((one): Command => new Emit(one)),
    client.map((one): Command => new Update(one)),
    client.map((one): Command => new HandOff(one)),
    client.map((one): Command => new Revoke(one)),
    client.map((one): Command => new Expire(one)),
  ],
  { maxCommands: 40, size: 'max' },
);

const check = (make: () => Promise<WorkflowWorld>, numRuns: number) =>
  fc.assert(
    fc.asyncProperty(commands, async (all) => {
      await using world = await make();
      const actors = await Promise.all(Array.from({ length: CLIENTS }, () => world.actor()));
      const real: Real = { world, actors, tenures: Array(CLIENTS).fill(null), handoff: null };
      const model = {
        epoch: 0,
        state: 'initialized',
        holder: null,
        given: new Map(),
        unresolved: 0,
      };
      await fc.asyncModelRun(() => ({ model, real }), all);
    }),
    { numRuns },
  );

it('W-01 W-02 W-03 in memory no epoch is used twice or goes back, and each belongs to the holder of the lease', async () => {
  await check(inMemory.make, 100);
  expect([...met].sort()).toEqual([...MET].sort());
}, 30_000);

it('W-01 W-02 W-03 on SQLite no epoch is used twice or goes back, and each belongs to the holder of the lease', async () => {
  await check(onSqlite.make, 20);
}, 30_000);
