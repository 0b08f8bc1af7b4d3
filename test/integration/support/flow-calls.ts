/** Calls of the scripts about streams and workflows. */
import fc from '../../support/fast-check.ts';

interface Call {
  readonly keys: string[];
  readonly args: string[];
}
type Words = fc.Arbitrary<string[]>;
type Word = string | fc.Arbitrary<string>;

const id = fc.constantFrom('w1', 'w2');
const leaseId = fc.constantFrom('h1', 'h2');
const target = fc.constantFrom('t1', 't2');
const stream = fc.constantFrom('s', 'action:t1');
const lane = fc.constantFrom('w1', 'w2', 'l1');
const action = fc.constantFrom('a1', 'a2', 'a3');
const epoch = fc.constantFrom('0', '1', '2', '3', '-1', 'abc');
const fence = fc.constantFrom('{F0}', '{F1}', '{F2}', '{F3}', '7', 'abc', '');
const priority = fc.constantFrom('1', '5', '10');
const json = fc.constantFrom('{"a":"😀"}', '1', '"x\\n"', '');
/** Over at once, or not within the test. */
const claimMs = fc.constantFrom('0', '60000', '60000');
const most = fc.constantFrom('1', '2', '10');
const outcome = fc.constantFrom('succeeded', 'failed', 'retry', 'dead');
const about = fc.constantFrom('', '17 SHIP');
const name = fc.constantFrom('n1', 'n2');
const fn = fc.constantFrom('f1', 'f2');
const phase = fc.constantFrom('suspended', 'retrying', 'done', 'failed');
const inbox = fc.constantFrom('signal:h1', 'signal:h2');

function words(...each: Word[]): Words {
  return fc.tuple(...each.map((one) => (typeof one === 'string' ? fc.constant(one) : one)));
}

function many(...each: Word[]): Words {
  return fc.array(words(...each), { minLength: 1, maxLength: 3 }).map((all) => all.flat());
}

/** Nearly always on the bus, with what channels begin with. */
function call(...parts: Words[]): fc.Arbitrary<Call> {
  return fc.tuple(...parts).map((all) => ({
    keys: ['{holdfast}:holdfast:bus'],
    args: ['signal:', ...all.flat()],
  }));
}

const reading = fc.oneof(words('0'), words('1', '1-1'));
const step = [words(id, leaseId, epoch), reading];

/** By the name of the script. */
export const flowCalls = {
  'stream/append': call(words(stream), many(lane, priority, json)),
  'stream/consume': call(words('s', leaseId, most, claimMs)),
  'stream/extend': call(words(stream, claimMs), many(lane, fence)),
  'stream/ack': call(words('s'), many(lane, fence)),
  'stream/retry': call(words('s'), many(lane, fence, claimMs)),
  'stream/bury': call(words('s'), many(lane, fence, fc.constantFrom('why', ''))),
  'workflow/begin': call(
    words(id, leaseId, fence, inbox, fc.constantFrom('0', '1'), '"initialized"'),
  ),
  'workflow/emit': call(
    ...step,
    many(action, target, priority, json, about, fc.constantFrom('', '', '{"h":1}'), name),
  ),
  'workflow/update': call(...step, words(json)),
  'workflow/mark-read': call(words(id, leaseId), reading),
  'workflow/unpark': call(...step),
  'workflow/handoff': call(...step, words(leaseId, '60000')),
  'workflow/revoke': call(words(leaseId, 'why')),
  'workflow/take': call(words(target, leaseId, most, claimMs)),
  'workflow/reserve': call(
    words(target, id, action, leaseId, epoch, leaseId, claimMs, fc.constantFrom('0', '1')),
  ),
  'workflow/settle': call(
    words(target, fc.constantFrom('1000', '1')),
    many(id, fence, outcome, json, claimMs, fc.constantFrom('', 'why')),
  ),
  'workflow/revive': call(words(target, fc.constantFrom('1-1', 'abc'))),
  'workflow/read': call(many(id)),
  'workflow/remove': call(words(id)),
  'run/start': call(words(id, fn, json, '"initialized"')),
  'run/due': call(words(most, '60000'), many(fn)),
  'run/load': call(words(id)),
  'run/read': call(many(id)),
  'run/keep': call(
    words(id, leaseId, name, fc.constantFrom('step', 'sleep'), fc.constantFrom('0', '1'), json),
    words(fc.constantFrom('', 'g1')),
  ),
  'run/signal': call(words(id, fc.constantFrom('g1', 'g2'), name, json)),
  'run/pause': call(
    words(id, leaseId, phase, fc.constantFrom('0', '1', 'abc'), fc.constantFrom('', '60000')),
    fc.oneof(words('0', 'null', json, 'why'), words('1', '[]', json, '', name)),
  ),
  'run/restart': call(words(id)),
};
