/** What may be asked of a store about streams and workflows, through its port. */

import type { Store } from '../../../src/store/port/store.ts';
import { type Settlement, workflowKey } from '../../../src/store/port/workflow-store.ts';
import fc from '../../support/fast-check.ts';
import type { Twin } from './redis-twins.ts';

const CALL = { timeoutMs: 5_000 };
const TTL_MS = 60_000;
/** Over at once, or not within the test. */
const CLAIMS_MS = [0, TTL_MS, TTL_MS];
const OUTCOMES = ['succeeded', 'failed', 'retry', 'dead'] as const;

const FLOWS = [
  ...['claim', 'claim', 'emit', 'emit', 'emit', 'update', 'mark', 'unpark', 'handoff', 'depose'],
  ...['work', 'work', 'take', 'late', 'reserve', 'revive', 'look', 'tell', 'forget'],
  ...['append', 'consume', 'say', 'names'],
] as const;
const RUN_FLOWS = ['start', 'due', 'keep', 'keep', 'signal', 'pause', 'restart', 'load'] as const;
type Flow = (typeof FLOWS)[number] | (typeof RUN_FLOWS)[number];

/** One step. `pick` decides what is left open. */
const stepOf = (...flows: readonly Flow[]) =>
  fc.record({
    flow: fc.constantFrom(...flows),
    id: fc.constantFrom('w1', 'w1', 'w2'),
    who: fc.constantFrom('h1', 'h1', 'h2', 'h3'),
    target: fc.constantFrom('t1', 't1', 't2'),
    pick: fc.nat({ max: 60 }),
  });
/** Redis counts a run that has just started as resting, and SQL counts it as given out. */
export const flowStep = stepOf(...FLOWS);
export const flowOrRunStep = stepOf(...FLOWS, ...RUN_FLOWS);
export type FlowStep = typeof flowStep extends fc.Arbitrary<infer S> ? S : never;

export async function takeFlowStep({ store, telling }: Twin, step: FlowStep): Promise<unknown> {
  const fence = telling.micros(step.pick);
  const place = (flow: Flow) => [...FLOWS, ...RUN_FLOWS].indexOf(flow);
  if (place(step.flow) < place('work')) return orchestrate(store, step);
  if (place(step.flow) < place('append')) return process(store, step, fence);
  return place(step.flow) < place('start') ? stream(store, step, fence) : run(store, step);
}

async function orchestrate(
  { leases, workflows }: Store,
  { flow, id, who, target, pick }: FlowStep,
): Promise<unknown> {
  const [before] = await workflows.read([id], CALL);
  const { results } = await workflows.results(id, { ...CALL, most: 2 });
  // Nearly always what it is, as whose it is.
  const epoch = (before?.epoch ?? 0) + (pick % 7 === 0 ? (pick % 3) - 1 : 0);
  // No two workflows have the same one.
  const own = `${who}.${id}`;
  const leaseId = pick % 5 === 0 ? own : (before?.leaseId ?? own);
  const step = { leaseId, epoch, read: results.slice(0, pick % 3).map(({ position }) => position) };
  switch (flow) {
    case 'claim': {
      const acquire = { ...CALL, ttlMs: TTL_MS, inbox: who };
      const [reply] = await leases.acquire([{ key: workflowKey(id), holder: own }], acquire);
      const fence = reply?.kind === 'granted' ? reply.fence : 7;
      const request = { leaseId: own, fence, inbox: who, resume: pick % 2 === 0 };
      return [reply, await workflows.begin(id, request, CALL)];
    }
    case 'emit': {
      const body = `{"pick":${pick},"text":"ünï😀\\n"}`;
      const call = pick % 4 === 0 ? { name: `s${pick % 5}`, value: { pick } } : undefined;
      const action = (n: number) => {
        return { id: `a${n % 12}`, target, priority: 1 + (n % 10), body, step: call };
      };
      const actions = pick % 3 === 0 ? [action(pick), action(pick + 1)] : [action(pick)];
      return workflows.emit(id, { ...step, actions }, CALL);
    }
    case 'update':
      return workflows.update(id, { ...step, state: { pick: pick % 3 } }, CALL);
    case 'mark':
      return workflows.markRead(id, step, CALL);
    case 'unpark':
      return workflows.unpark(id, step, CALL);
    case 'handoff':
      return workflows.handoff(id, { ...step, successor: own, windowMs: TTL_MS }, CALL);
    default:
      return workflows.revoke(leaseId, { ...CALL, reason: 'why' });
  }
}

async function process(
  { workflows, streams }: Store,
  { flow, id, who, target, pick }: FlowStep,
  fence: number,
): Promise<unknown> {
  const call = { ...CALL, consumer: who, most: 1 + (pick % 3), claimMs: CLAIMS_MS[pick % 3] ?? 0 };
  switch (flow) {
    case 'take':
      return workflows.take(target, call);
    case 'work': {
      const taken = await workflows.take(target, call);
      const held = taken.flatMap((each) => (each.kind === 'reserved' ? [each] : []));
      const settlements = held.map((each, i) => settlement(each, pick + i));
      const extended = await workflows.extend(target, held, call);
      return [taken, extended, await workflows.settle(target, settlements, CALL)];
    }
    case 'late':
      return workflows.settle(target, [settlement({ workflow: id, fence }, pick)], CALL);
    case 'reserve': {
      const [before] = await workflows.read([id], CALL);
      const epoch = Math.max(0, (before?.epoch ?? 0) - 1 - (pick % 5));
      const leaseId = before?.leaseId ?? who;
      const strictness = pick % 2 === 0 ? 'strict' : 'monotonic';
      const all = Array.from({ length: 12 }, (_, n) => ({ workflow: id, id: `a${n}`, leaseId }));
      const replies: unknown[] = [];
      for (const ref of all)
        replies.push(await workflows.reserve(target, { ...ref, epoch }, { ...call, strictness }));
      return replies;
    }
    case 'revive': {
      const { entries } = await streams.dead(`action:${target}`, CALL);
      const [dead] = entries;
      return [entries, await workflows.revive(target, dead?.id ?? '1-1', CALL)];
    }
    case 'look':
      return [await workflows.read([id, 'none'], CALL), await workflows.list(CALL)];
    case 'tell': {
      const { results } = await workflows.results(id, { ...CALL, most: 2 });
      const { entries } = await workflows.history(id, { ...CALL, most: 1 + (pick % 9) });
      const from = (list: readonly { position: string }[]) => ({
        ...CALL,
        after: list.at(-1)?.position ?? 'garbage',
      });
      const one = await workflows.resultOf(id, `a${pick % 12}`, CALL);
      const rest = await workflows.results(id, from(results));
      return [results, rest, one, entries, await workflows.history(id, from(entries))];
    }
    default:
      return workflows.remove(id, CALL);
  }
}

function settlement(
  { workflow, fence }: { workflow: string; fence: number },
  pick: number,
): Settlement {
  const outcome = OUTCOMES[pick % OUTCOMES.length] ?? 'succeeded';
  const held = { workflow, fence };
  if (outcome === 'retry') return { ...held, outcome, afterMs: CLAIMS_MS[pick % 3] ?? 0 };
  if (outcome === 'dead') return { ...held, outcome, value: null, reason: 'poison' };
  return { ...held, outcome, value: { pick, text: 'ünï\n😀' } };
}

async function stream(
  { streams }: Store,
  { flow, id, who, pick }: FlowStep,
  fence: number,
): Promise<unknown> {
  const call = { ...CALL, consumer: who, most: 1 + (pick % 3), claimMs: CLAIMS_MS[pick % 3] ?? 0 };
  const entry = (lane: string) => ({ lane, priority: 1 + (pick % 10), value: { pick } });
  switch (flow) {
    case 'append':
      return streams.append('s', [entry(id), entry(who)], CALL);
    case 'consume': {
      const found = await streams.consume('s', call);
      const later = found.map((held) => ({ ...held, afterMs: 0, reason: 'why' }));
      const [first, second, third] = [later.slice(0, 1), later.slice(1, 2), later.slice(2)];
      if (pick % 2 === 0) return [found, await streams.extend('s', found, call)];
      const said = [await streams.ack('s', first, CALL), await streams.retry('s', second, CALL)];
      return [found, said, await streams.bury('s', third, CALL)];
    }
    case 'say':
      return streams.ack('s', [{ lane: id, fence }], CALL);
    default: {
      const dead = await streams.dead('s', { ...CALL, most: 2 });
      const ids = ['garbage', ...dead.entries.map((each) => each.id)].slice(0, pick % 3);
      return [await streams.names(CALL), dead, await streams.drop('s', ids, CALL)];
    }
  }
}

const KINDS = ['step', 'call', 'sleep', 'signal'] as const;
const PHASES = ['running', 'suspended', 'suspended', 'retrying', 'done', 'failed'] as const;
const TIMES_MS = [null, 0, 5, TTL_MS];

/** Steps of a workflow function. */
async function run(
  { runs, workflows }: Store,
  { flow, id, who, target, pick }: FlowStep,
): Promise<unknown> {
  const [before] = await workflows.read([id], CALL);
  const leaseId = pick % 5 === 0 ? `${who}.${id}` : (before?.leaseId ?? `${who}.${id}`);
  const value = { pick, text: 'ünï\n\0😀' };
  const name = `s${pick % 4}`;
  switch (flow) {
    case 'start':
      return runs.start(id, { function: target, input: value }, CALL);
    case 'due': {
      const call = { ...CALL, most: pick % 3, graceMs: pick % 2 === 0 ? 5 : TTL_MS };
      return runs.due([target, 't3'], call);
    }
    case 'keep': {
      const kind = KINDS[pick % KINDS.length] ?? 'step';
      const receives = pick % 3 === 0 ? name : undefined;
      const step = { leaseId, name, kind, isDone: pick % 2 === 0, value, receives };
      return runs.keep(id, step, CALL);
    }
    case 'signal':
      return runs.signal(id, { id: name, name: 'approved', value }, CALL);
    case 'pause': {
      const signalCount =
        ((await runs.load(id, CALL))?.signalCount ?? 0) + (pick % 7 === 0 ? 1 : 0);
      const phase = PHASES[pick % PHASES.length] ?? 'running';
      const wakeInMs = TIMES_MS[pick % TIMES_MS.length] ?? null;
      const rest = { waits: name, value, forgets: pick % 3 === 0 ? [name, 's9'] : [] };
      const step = { leaseId, phase, signalCount, wakeInMs, tries: pick % 3, ...rest };
      return runs.pause(id, step, CALL);
    }
    case 'restart':
      return runs.restart(id, CALL);
    default:
      return [await runs.load(id, CALL), await runs.read([id, 'none'], CALL)];
  }
}
