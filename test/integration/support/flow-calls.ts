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
  enqueue: call(words(stream), many(lane, priority, json)),
  consume: call(words('s', leaseId, most, claimMs)),
  extend: call(words(stream, claimMs), many(lane, fence)),
  ack: call(words('s'), many(lane, fence)),
  retry: call(words('s'), many(lane, fence, claimMs)),
  bury: call(words('s'), many(lane, fence, fc.constantFrom('why', ''))),
  begin: call(words(id, leaseId, fence, inbox, fc.constantFrom('0', '1'), '"initialized"')),
  emit: call(...step, many(action, target, priority, json)),
  update: call(...step, words(json)),
  mark: call(words(id, leaseId), reading),
  unpark: call(...step),
  handoff: call(...step, words(leaseId, '60000')),
  depose: call(words(leaseId, 'why')),
  take: call(words(target, leaseId, most, claimMs)),
  reserve: call(
    words(target, id, action, leaseId, epoch, leaseId, claimMs, fc.constantFrom('0', '1')),
  ),
  settle: call(
    words(target, fc.constantFrom('1000', '1')),
    many(id, fence, outcome, json, claimMs),
  ),
  revive: call(words(target, fc.constantFrom('1-1', 'abc'))),
  snapshot: call(many(id)),
  forget: call(words(id)),
};
