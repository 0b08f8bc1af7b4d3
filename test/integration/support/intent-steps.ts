/** What may be asked of a store about intents: through its port, and as calls of the scripts. */

import { SESSION_STATES, startStream } from '../../../src/store/port/intent-store.ts';
import fc from '../../support/fast-check.ts';
import type { Twin } from './redis-twins.ts';

const START_STREAM = startStream('live');

const CALL = { timeoutMs: 5_000 };
/** Of everything, or of nothing: what ended a moment ago would be a race with the clock. */
const TIMES_MS = [0, 9e12];

const INTENTS = [
  ...['start', 'start', 'start', 'stop', 'advance', 'advance', 'republish', 'read', 'list'],
  ...['prune', 'consume', 'lose'],
] as const;

/** One step. `pick` decides what is left open. */
export const intentStep = fc.record({
  intent: fc.constantFrom(...INTENTS),
  id: fc.constantFrom('i1', 'i2', 'i3', 'i4'),
  keys: fc.uniqueArray(fc.constantFrom('k1', 'k2', 'k3'), { minLength: 1, maxLength: 2 }),
  who: fc.constantFrom('h1', 'h1', 'h2', 'h3'),
  pick: fc.nat({ max: 60 }),
});
export type IntentStep = typeof intentStep extends fc.Arbitrary<infer S> ? S : never;

export async function takeIntentStep(twin: Twin, step: IntentStep): Promise<unknown> {
  const { intents, streams } = twin.store;
  const { id, keys, who: client, pick } = step;
  const tenant = `t${pick % 2}`;
  switch (step.intent) {
    case 'start': {
      const what = { body: `{"text":"ünï😀\\n${pick}"}`, status: '{}', priority: 1 + (pick % 10) };
      const listed = { kind: 'live', label: `l${pick % 3}` };
      return intents.start({ id, tenant, ...listed, keys, client, ...what }, CALL);
    }
    case 'stop': {
      const how = { tenant: pick % 3 === 0 ? null : tenant, force: pick % 5 === 0 };
      return intents.stop({ id, client, ...how, ending: '"stopped"' }, CALL);
    }
    case 'advance': {
      const [before] = await intents.read([id], CALL);
      const ifRevision = (before?.revision ?? 0) + (pick % 7 === 0 ? 1 : 0);
      const state = SESSION_STATES[pick % SESSION_STATES.length] ?? 'NEW';
      return intents.advance(id, { ifRevision, state, status: `{"pick":${pick}}` }, CALL);
    }
    case 'republish':
      return intents.republish(['i1', 'i2', 'i3', 'i4', 'none'], CALL);
    case 'read':
      return intents.read([id, 'none'], CALL);
    case 'list': {
      const whose = pick % 3 === 0 ? {} : { tenant };
      const page = { ...CALL, ...whose, isOpen: pick % 2 === 0, most: 1 + (pick % 3) };
      const { sessions, cursor } = await intents.list(page);
      return [sessions, await intents.list({ ...page, cursor: cursor ?? 'garbage' })];
    }
    case 'prune':
      return intents.prune({ ...CALL, endedBeforeMs: TIMES_MS[pick % 2] ?? 0, most: 1 + pick });
    case 'consume': {
      const call = { ...CALL, consumer: client, most: 1, claimMs: pick % 2 === 0 ? 0 : 60_000 };
      const found = await streams.consume(START_STREAM, call);
      return [found, pick % 3 === 0 ? await streams.ack(START_STREAM, found, CALL) : null];
    }
    default:
      return twin.link.send(['DEL', lost(id)[pick % 8] ?? '']);
  }
}

/** Each can get lost without the others. */
function lost(id: string): string[] {
  const [intent, stream] = ['{holdfast}:intent:', '{holdfast}:stream:'];
  return [
    ...[`${intent}session:${id}`, `${intent}keys`, `${intent}all`, `${intent}open`],
    ...[`${stream}lane:{${START_STREAM}}:${id}`, `${stream}lanes:${START_STREAM}`],
    ...[`${stream}bus:5:${START_STREAM}`, `${stream}due:${START_STREAM}`],
  ];
}

const id = fc.constantFrom('i1', 'i2', 'i3');
const tenant = fc.constantFrom('t0', 't1');
const json = fc.constantFrom('{"a":"😀"}', '1', '');
const priority = fc.constantFrom('1', '5', '10');
const key = fc.constantFrom('k1', 'k2');
const client = fc.constantFrom('h1', 'h2');
const count = fc.constantFrom('1', '2', '500', '0');
const state = fc.constantFrom(...SESSION_STATES);
const place = fc.constantFrom('-inf', '-{F0}', '-{F1}', 'abc');
const index = fc.constantFrom('all', 'open', 'all:t0', 'open:t1');

function call(...each: (string | fc.Arbitrary<string | string[]>)[]) {
  const words = each.map((one) => (typeof one === 'string' ? fc.constant(one) : one));
  return fc.tuple(...words).map((all) => ({
    keys: ['{holdfast}:holdfast:bus'],
    args: ['signal:', ...all.flat()],
  }));
}

function some(words: fc.Arbitrary<string | string[]>): fc.Arbitrary<string[]> {
  return fc.array(words, { minLength: 1, maxLength: 3 }).map((all) => all.flat());
}

/** By the name of the script. */
export const intentCalls = {
  'intent/start': call(id, tenant, client, json, json, priority, json, some(key)),
  'intent/stop': call(
    id,
    client,
    fc.constantFrom('0', '0', '1'),
    json,
    fc.oneof(tenant, fc.constant<string[]>([])),
  ),
  'intent/advance': call(id, fc.constantFrom('1', '2', '3', 'abc'), state, json),
  'intent/republish': call(some(fc.tuple(id, json))),
  'intent/read': call(some(id)),
  'intent/list': call(index, place, count),
  'intent/prune': call(fc.constantFrom('0', '9000000000000', 'abc'), count),
};
