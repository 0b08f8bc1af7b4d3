/** Random content in a store, through its port, as processes leave it when all of them have stopped. */
import { startStream } from '../../src/store/port/intent-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { workflowKey } from '../../src/store/port/workflow-store.ts';

const CALL = { timeoutMs: 10_000 };

/** A number from 0 up to, but not including, `below`. */
export type Draw = (below: number) => number;

/** A draw that repeats for its seed (mulberry32). */
export function drawOf(seed: number): Draw {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const TEXTS = [
  'plain',
  '',
  'Grüße ☃ 𝒳',
  'line\nbreak\t"quoted" \\ back',
  'nul \u0000 sign',
  "it's",
];

export async function fill(store: Store, draw: Draw): Promise<void> {
  const text = () => TEXTS[draw(TEXTS.length)] ?? '';
  await records(store, draw, text);
  for (let i = 0; i < 2 + draw(3); i++) await workflow(store, draw, `flow-${i}`, text);
  for (let i = 0; i < 1 + draw(3); i++) await run(store, draw, `run-${i}`, text);
  for (let i = 0; i < 3 + draw(4); i++) await session(store, draw, i, text);
  await stream(store, draw, text);
  await fences(store, draw);
}

async function records(store: Store, draw: Draw, text: () => string): Promise<void> {
  for (const collection of ['session', 'record', 'once', 'pins'])
    for (let i = 0; i < 1 + draw(5); i++) {
      const id = `${collection}-ä-${i}`;
      const value = { i, text: text(), nested: [null, { big: 2 ** 53 - 1, small: 1e-7 }] };
      for (let n = 0; n <= draw(3); n++)
        await store.records.put(collection, [{ id, value, fence: 100 + n }], CALL);
      if (draw(4) === 0) await store.records.remove(collection, [{ id }], CALL);
    }
}

/** Takes the lease of a workflow, and begins a tenure. */
async function begin(store: Store, id: string, leaseId: string, resume = true) {
  const request = { key: workflowKey(id), holder: leaseId };
  const call = { ...CALL, ttlMs: 5_000, inbox: 'test' };
  const [reply] = await store.leases.acquire([request], call);
  if (reply?.kind !== 'granted') throw new Error(`no lease: ${JSON.stringify(reply)}`);
  const { fence } = reply;
  const begun = await store.workflows.begin(
    id,
    { leaseId, fence, inbox: `${leaseId}-inbox`, resume },
    CALL,
  );
  if (begun.kind !== 'begun') throw new Error('not begun');
  return { fence, epoch: begun.workflow.epoch };
}

async function release(store: Store, id: string, leaseId: string, fence: number): Promise<void> {
  await store.leases.release([{ key: workflowKey(id), holder: leaseId, fence }], CALL);
}

async function workflow(store: Store, draw: Draw, id: string, text: () => string): Promise<void> {
  const leaseId = `${id}-lease`;
  let { fence, epoch } = await begin(store, id, leaseId);
  const at = () => ({ leaseId, epoch, read: [] });
  for (let i = 0; i < 1 + draw(6); i++) {
    const action = {
      id: `${id}-action-${i}`,
      target: ['pay', 'ship'][draw(2)] ?? 'pay',
      priority: 1 + draw(10),
      body: JSON.stringify({ text: text() }),
      about: { type: 'T', bytes: draw(99) },
    };
    const reply = await store.workflows.emit(id, { ...at(), actions: [action] }, CALL);
    if (reply.kind === 'done') epoch = reply.epoch;
  }
  await settle(store, draw, text);
  if (draw(2) === 0) {
    const { results } = await store.workflows.results(id, { ...CALL, most: 1 });
    const read = results.map(({ position }) => position);
    await store.workflows.markRead(id, { leaseId, read }, CALL);
  }
  if (draw(2) === 0) {
    const reply = await store.workflows.update(id, { ...at(), state: { text: text() } }, CALL);
    if (reply.kind === 'done') epoch = reply.epoch;
  }
  const way = draw(4);
  if (way === 0) await store.workflows.revoke(leaseId, { ...CALL, reason: `by hand: ${draw(9)}` });
  else if (way === 1) {
    const handed = await store.workflows.handoff(
      id,
      { ...at(), successor: `${id}-next`, windowMs: 60_000 },
      CALL,
    );
    if (handed.kind === 'done') await release(store, id, `${id}-next`, handed.fence);
  } else {
    if (way === 2) {
      await release(store, id, leaseId, fence);
      ({ fence, epoch } = await begin(store, id, leaseId));
    }
    await release(store, id, leaseId, fence);
  }
}

async function settle(store: Store, draw: Draw, text: () => string): Promise<void> {
  for (const target of ['pay', 'ship']) {
    const call = { ...CALL, consumer: 'test', most: 1 + draw(3), claimMs: 10_000 };
    for (const taken of await store.workflows.take(target, call)) {
      if (taken.kind !== 'reserved') continue;
      const held = { workflow: taken.workflow, fence: taken.fence };
      const value = { text: text() };
      const settlements = [
        { ...held, outcome: 'succeeded' as const, value },
        { ...held, outcome: 'failed' as const, value },
        { ...held, outcome: 'retry' as const, afterMs: 60_000, error: 'later' },
        { ...held, outcome: 'dead' as const, value, reason: `dead: ${text()}` },
      ];
      const settlement = settlements[draw(4)];
      if (settlement) await store.workflows.settle(target, [settlement], CALL);
    }
  }
}

async function run(store: Store, draw: Draw, id: string, text: () => string): Promise<void> {
  const fn = `fn-${draw(2)}`;
  await store.runs.start(id, { function: fn, input: { text: text() } }, CALL);
  for (let i = 0; i < draw(3); i++)
    await store.runs.signal(id, { id: `s-${i}`, name: 'go', value: text() }, CALL);
  if (draw(3) === 0) return;
  const leaseId = `${id}-lease`;
  const { fence } = await begin(store, id, leaseId);
  for (let i = 0; i < 1 + draw(4); i++) {
    const step = { leaseId, name: `step-${i}`, kind: 'step' as const, isDone: draw(3) > 0 };
    const receives = i === 0 ? 's-0' : undefined;
    await store.runs.keep(id, { ...step, value: { text: text() }, receives }, CALL);
  }
  const phase = (['suspended', 'retrying', 'done', 'failed'] as const)[draw(4)] ?? 'done';
  const loaded = await store.runs.load(id, CALL);
  const rest = { tries: draw(3), waits: { until: text() }, value: text(), forgets: [] };
  const wakeInMs = phase === 'suspended' || phase === 'retrying' ? 1_000 * draw(100) : null;
  const signalCount = loaded?.signalCount ?? 0;
  await store.runs.pause(id, { leaseId, phase, signalCount, wakeInMs, ...rest }, CALL);
  await release(store, id, leaseId, fence);
}

async function session(store: Store, draw: Draw, i: number, text: () => string): Promise<void> {
  const id = `session-${i}`;
  const kind = `kind-${draw(2)}`;
  const request = {
    id,
    tenant: 'acme',
    kind,
    label: `label ${text().replaceAll('\0', '')}`,
    priority: 1 + draw(10),
  };
  const body = JSON.stringify({ text: text() });
  const status = JSON.stringify({ said: text() });
  const keys = [`key-${i}`, `old-key-${i}`].slice(0, 1 + draw(2));
  await store.intents.start({ ...request, body, status, keys, client: 'a' }, CALL);
  if (draw(2) === 0)
    await store.intents.start({ ...request, body, status, keys, client: 'b' }, CALL);
  const way = draw(4);
  if (way === 0)
    await store.intents.stop({ id, tenant: null, client: 'a', force: true, ending: status }, CALL);
  if (way === 1) {
    const [entry] = await store.streams.consume(startStream(kind), {
      ...CALL,
      consumer: 'w',
      most: 1,
      claimMs: 10_000,
    });
    if (entry) await store.streams.retry(startStream(kind), [{ ...entry, afterMs: 0 }], CALL);
    await store.intents.advance(id, { ifRevision: 1, state: 'RUNNING', status }, CALL);
  }
}

async function stream(store: Store, draw: Draw, text: () => string): Promise<void> {
  const name = 'letters';
  for (let i = 0; i < 2 + draw(6); i++) {
    const entry = { lane: `lane-${draw(3)}`, priority: 1 + draw(3), value: { text: text() } };
    await store.streams.append(name, [entry], CALL);
  }
  const call = { ...CALL, consumer: 'w', most: 2, claimMs: 10_000 };
  for (const held of await store.streams.consume(name, call))
    if (draw(2) === 0)
      await store.streams.bury(name, [{ ...held, reason: `why: ${text()}` }], CALL);
    else await store.streams.retry(name, [{ ...held, afterMs: 1_000 * draw(60) }], CALL);
}

async function fences(store: Store, draw: Draw): Promise<void> {
  for (let i = 0; i < 1 + draw(5); i++) {
    const key = `lease:key ${i}`;
    const [reply] = await store.leases.acquire([{ key, holder: 'h' }], {
      ...CALL,
      ttlMs: 5_000,
      inbox: 'test',
    });
    if (reply?.kind === 'granted')
      await store.leases.release([{ key, holder: 'h', fence: reply.fence }], CALL);
  }
}

/** Everything that the port shows of what a copy moves. */
export async function contentOf(store: Store): Promise<unknown> {
  const { ids } = await store.workflows.list({ ...CALL, most: 100 });
  const { sessions } = await store.intents.list({ ...CALL });
  const streams = await store.streams.names(CALL);
  return {
    workflows: await Promise.all(ids.map((id) => workflowOf(store, id))),
    sessions: sessions.map((one) => ({ ...one, ...wholeTimes(one) })),
    streams: await Promise.all(
      streams.map(async (name) => {
        const { entries } = await store.streams.dead(name, CALL);
        return [
          name,
          entries.map(({ id: _, atMs, ...rest }) => ({ ...rest, atMs: Math.floor(atMs) })),
        ];
      }),
    ),
  };
}

async function workflowOf(store: Store, id: string): Promise<unknown> {
  const [snapshot] = await store.workflows.read([id], CALL);
  const { results } = await store.workflows.results(id, CALL);
  const { entries } = await store.workflows.history(id, CALL);
  const loaded = await store.runs.load(id, CALL);
  return {
    // A workflow without a tenure has no inbox: stores say so in different ways.
    snapshot: snapshot && { ...snapshot, inbox: snapshot.inbox || null, ...wholeTimes(snapshot) },
    results: results.map(({ position: _, atMs, ...rest }) => ({ ...rest, atMs: Math.floor(atMs) })),
    history: entries.map(({ position: _, atMs, ...rest }) => ({ ...rest, atMs: Math.floor(atMs) })),
    input: loaded?.input,
    run: loaded?.run && { ...loaded.run, dueInMs: loaded.run.dueInMs !== null },
    steps: loaded?.steps.map(({ atMs: _, ...step }) => step),
    signals: loaded?.signals.map(({ atMs: _, ...signal }) => signal),
    signalCount: loaded?.signalCount,
  };
}

function wholeTimes({ createdAtMs, changedAtMs }: { createdAtMs: number; changedAtMs: number }) {
  return { createdAtMs: Math.floor(createdAtMs), changedAtMs: Math.floor(changedAtMs) };
}

/** Takes out what waits or rests, lane by lane: the order that a copy has to keep. */
export async function drained(store: Store, name: string): Promise<string[]> {
  const call = { ...CALL, consumer: 'w', most: 1, claimMs: 10_000 };
  const found: string[] = [];
  for (;;) {
    const [entry] = await store.streams.consume(name, call);
    if (entry === undefined) return found;
    found.push(`${entry.lane} ${entry.tries} ${JSON.stringify(entry.value)}`);
    await store.streams.ack(name, [entry], CALL);
  }
}
