/** What may be asked of a Redis, as commands and as calls of the scripts: sensible, odd and wrong. */

import { type ScriptName, scripts } from '../../../src/store/redis/scripts.ts';
import fc from '../../support/fast-check.ts';
import { flowCalls } from './flow-calls.ts';
import { intentCalls } from './intent-steps.ts';

const KEYS = [
  ...['lease:a', 'lease:b', '{t}c', 'fence:{lease:a}', 'line:{lease:a}', 'fence:{t}c', 'line:{t}c'],
  ...['index:c', 'removed:{index:c}', 'meta:{index:c}', 'c:r1', 'c:r2', 'meta:{c:r1}'],
  ...['l:list', '{holdfast}:workflow:lease:w1', 'fence:{holdfast}:workflow:lease:w1'],
  ...['poll:nodes', 'poll:node:h1', 'poll:node:h2', 'holdfast:log', 'holdfast:marker'],
];
const MEMBERS = ['h1', 'h2', 'r1', 'r2', 'signal:h1', 'signal:h3', 'era', 'digest', 'revision'];
const TEXTS = [
  ...['', 'h1', 'h2', '0', '1', '7', '-3', '1.5', 'abc', ' 12 ', '0x10', '1e3', '5!+', '6!', '7+'],
  ...['{F0}', '{F1}', '{F2}', '{F3}', '{F1}+', '{F2}!', '{F0}!+', '{F4+1000000000000}', '{F0+1}'],
  ...[
    'ünï{cödé',
    '{"a":1}',
    '{"a":"😀"}',
    '!revoked',
    '+',
    '!',
    '-',
    '{F0} 0 -1',
    '{F1} {F2} 20000',
  ],
  ...['0 0 5000', '0 0 -1', '{F1} {F0+1000000000000} -1', 'x y z', '1 2', 'era', 'signal:h1'],
];
const INTEGERS = ['0', '1', '2', '3', '-1', '-2', '-5', '5', '100', 'abc', '1.5', '', '01', '+1'];
/** Far enough from each other for a moment not to matter. */
const TTLS = ['20000', '60000', '3600000'];
const ODD_TTLS = [...TTLS, ...TTLS, '0', '-5', 'abc', '1.5', '', '99999999999999999999'];
const SCORES = ['1', '2', '2.5', '-1', '1e3', 'inf', '-inf', 'abc', '', '{F0}', '{F1}', '{F2+9}'];
const BOUNDS = ['-inf', '+inf', '(1', '2', '(', '(abc', '(2.5', '{F0}', '({F1}', '({F2+9}', '(0'];
const STREAM_IDS = ['0-0', '1-1', '5', '5-9', '{P0}', '{P1}', '{P2}', 'abc', '-1', '1-', '1-x'];
const STREAM_BOUNDS = [...STREAM_IDS, '-', '+', '({P0}', '({P1}', '(5-9', '(0-0', '(', '(-'];

/** How one may write the same word. */
const word = (text: string) => fc.constantFrom(text, text, text, text.toLowerCase());
const key = fc.constantFrom(...KEYS);
const member = fc.constantFrom(...MEMBERS);
const text = fc.constantFrom(...TEXTS);
const integer = fc.constantFrom(...INTEGERS);
const ttl = fc.constantFrom(...ODD_TTLS);
const score = fc.constantFrom(...SCORES);
const bound = fc.constantFrom(...BOUNDS);
const nameBound = fc.oneof(
  fc.constantFrom('-', '-', '+', '+', 'abc', ''),
  fc.tuple(fc.constantFrom('(', '['), text).map((parts) => parts.join('')),
);
const streamBound = fc.constantFrom(...STREAM_BOUNDS);

type Words = fc.Arbitrary<string[]>;

function some(words: fc.Arbitrary<string>, most: number): Words {
  return fc.array(words, { minLength: 1, maxLength: most });
}

function pairs(one: fc.Arbitrary<string>, other: fc.Arbitrary<string>, most = 3): Words {
  return fc.array(fc.tuple(one, other), { minLength: 1, maxLength: most }).map((all) => all.flat());
}

function line(...parts: (string | fc.Arbitrary<string> | Words)[]): Words {
  const each = parts.map((part) => (typeof part === 'string' ? word(part) : part));
  return fc.tuple(...(each as fc.Arbitrary<string | string[]>[])).map((words) => words.flat());
}

const maybe = (...words: Words[]): Words =>
  fc.oneof(fc.constant<string[]>([]), fc.constant<string[]>([]), ...words);

const setOptions = fc
  .array(
    fc.oneof(
      fc.constantFrom(['NX'], ['XX'], ['GET'], ['KEEPTTL'], ['nx'], ['FOO'], ['PX']),
      ttl.map((ms) => ['PX', ms]),
    ),
    { maxLength: 3 },
  )
  .map((options) => options.flat());

/** A key of a kind, most often; and any. */
const oneOf = (...names: string[]) =>
  fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...names) }, key);
const hash = oneOf('meta:{c:r1}', 'holdfast:marker', 'meta:{index:c}');
const set = oneOf('poll:nodes');
const sortedSet = oneOf('index:c', 'removed:{index:c}', 'line:{lease:a}');
const stream = oneOf('holdfast:log');
const list = oneOf('l:list');
/** Its ids are made by the server, and are nobody else's: which of two streams has the higher ones may be chance. */
const timed = fc.constant('timed:stream');
/** Nothing else is done to it: names are in order where all scores are the same. */
const NAMES = 'names:of';

const commands: Words[] = [
  line('SET', key, text, setOptions),
  line('SET', key, text, setOptions),
  line('GET', key),
  line('MGET', some(key, 3)),
  line('DEL', some(key, 2)),
  line('EXISTS', some(key, 3)),
  line('TYPE', key),
  line('PTTL', key),
  line('PEXPIRE', key, ttl),
  line('PEXPIREAT', key, fc.constantFrom('0', '1', '1700000000000', 'abc', '-1', '4100000000000')),
  line('PERSIST', key),
  line('HSET', hash, pairs(member, text)),
  line('HGET', hash, member),
  line('HMGET', hash, some(member, 3)),
  line('HDEL', hash, some(member, 2)),
  line('HGETALL', hash),
  line('HSETNX', hash, member, text),
  line('HKEYS', hash),
  line('HVALS', hash),
  line('HLEN', hash),
  line('SADD', set, some(member, 3)),
  line('SREM', set, some(member, 3)),
  line('SMEMBERS', set),
  line('SCARD', set),
  line('RPUSH', list, some(text, 3)),
  line('RPUSH', list, some(text, 3)),
  line('LPOP', list),
  line('LINDEX', list, integer),
  line('LRANGE', list, integer, integer),
  line('LREM', list, fc.constant('1'), text),
  line('ZADD', fc.constant(NAMES), fc.constant('0'), text),
  line(
    ...['ZRANGEBYLEX', fc.constant(NAMES), nameBound, nameBound],
    maybe(line('LIMIT', integer, integer), line('LIMIT', integer), line('FOO')),
  ),
  line('ZADD', sortedSet, maybe(fc.constant(['NX'])), pairs(score, member)),
  line('ZREM', sortedSet, some(member, 3)),
  line('ZPOPMIN', sortedSet),
  line('ZRANGE', sortedSet, integer, integer, maybe(line('WITHSCORES'))),
  line('ZREVRANGE', sortedSet, integer, integer, maybe(line('WITHSCORES'))),
  line(
    ...['ZRANGEBYSCORE', sortedSet, bound, bound, maybe(line('WITHSCORES'))],
    maybe(line('LIMIT', integer, integer), line('LIMIT', integer), line('FOO')),
  ),
  line('ZREMRANGEBYRANK', sortedSet, integer, integer),
  line('ZSCORE', sortedSet, member),
  line('ZCARD', sortedSet),
  line('XADD', stream, fc.constantFrom(...STREAM_IDS), pairs(member, text, 2)),
  line('XADD', timed, fc.constant('*'), pairs(member, text, 2)),
  line(
    ...['XADD', timed, 'MAXLEN', fc.constantFrom('0', '1', '3', '-1', 'abc'), fc.constant('*')],
    pairs(member, text, 2),
  ),
  line('XDEL', stream, some(fc.constantFrom(...STREAM_IDS), 2)),
  line('XLEN', fc.oneof(stream, timed)),
  line('XRANGE', timed, fc.constant('-'), fc.constant('+')),
  line('XTRIM', stream, fc.constantFrom('MAXLEN', 'minid', 'FOO'), fc.constant('~'), integer),
  line('XRANGE', stream, streamBound, streamBound, maybe(line('COUNT', integer))),
  line('XREVRANGE', stream, streamBound, streamBound, maybe(line('COUNT', integer))),
  line('PUBLISH', fc.constantFrom('signal:h1', 'signal:h3'), text),
  line('PING', maybe(some(text, 2))),
  line('SCAN', fc.constantFrom('abc', '0'), fc.constantFrom('COUNT', 'FOO'), integer),
];

/** One command, now and then without its last word. */
export const command: Words = fc
  .tuple(fc.oneof(...commands), fc.nat({ max: 19 }))
  .map(([words, luck]) => {
    // One that would trim exactly is not simulated.
    const mayLack = luck === 0 && words.length > 1 && words[0]?.toUpperCase() !== 'XTRIM';
    return mayLack ? words.slice(0, -1) : words;
  });

const lease = oneOf('lease:a', 'lease:b', '{t}c', '{holdfast}:workflow:lease:w1');
const holder = fc.constantFrom('h1', 'h1', 'h2', 'h3', '!revoked', '');
const fence = fc.constantFrom('{F0}', '{F1}', '{F2}', '{F3}', '{F4}', '{F5}', '7', 'abc', '');
const waiting = fc.constantFrom(
  ...[
    '',
    '',
    '{F0} 0 -1',
    '{F1} {F2} 20000',
    '0 0 5000',
    '{F3} {F0+1000000000000} -1',
    '{F2} 0 7200000.0005',
  ],
);
const inbox = fc.constantFrom('signal:h1', 'signal:h2', 'signal:h3');
const sensibleTtl = fc.constantFrom(...TTLS);
const record = oneOf('c:r1', 'c:r2');
const id = fc.constantFrom('r1', 'r2', 'r3');
const json = fc.constantFrom('{"a":1}', '{"a":"😀"}', '1', '"x"', '');
const kept = fc.constantFrom('1000', '1', '2', '0', '');
const revision = fc.constantFrom('', '', '0', '1', '2', '-1');
const position = fc.constantFrom('', '{P0}', '{P1}', '{P2}', '{P9}', '1700000000000-5', '1-1');

/** The keys of a script and what is said of each, in two lists of the same length. */
function per(keys: fc.Arbitrary<string>, ...args: fc.Arbitrary<string>[]) {
  return fc
    .array(fc.tuple(keys, fc.tuple(...args)), { minLength: 1, maxLength: 4 })
    .map((all) => ({ keys: all.map(([name]) => name), args: all.flatMap(([, words]) => words) }));
}

interface Call {
  readonly keys: string[];
  readonly args: string[];
}

function behind(keys: Words, args: Words, rest: fc.Arbitrary<Call>): fc.Arbitrary<Call> {
  return fc
    .tuple(keys, args, rest)
    .map(([k, a, more]) => ({ keys: [...k, ...more.keys], args: [...a, ...more.args] }));
}

function words(...each: (string | fc.Arbitrary<string>)[]): Words {
  return fc.tuple(...each.map((one) => (typeof one === 'string' ? fc.constant(one) : one)));
}

function given(keys: Words, args: Words): fc.Arbitrary<Call> {
  return fc.tuple(keys, args).map(([k, a]) => ({ keys: k, args: a }));
}

const marker = words(oneOf('holdfast:marker'));
const index = words(oneOf('index:c'));
const log = words(oneOf('holdfast:log'));
/** The last of these keep nothing, and have no beginning: what is kept for a moment would be a race with the clock. */
const keptMs = fc.constantFrom('86400000', '86400000', '-60000', '99999999999999');
const maxTtl = fc.constantFrom('', '30000', '30000', '30000', '5000');
const server = words(
  fc.constantFrom('', 'x:'),
  fc.constantFrom('run1', 'run2'),
  fc.constantFrom('rep1', 'rep2'),
  fc.constantFrom('60000', '0', 'abc'),
);

/** Calls as the store makes them, by the name of the script. */
const calls: Record<ScriptName, fc.Arbitrary<Call>> = {
  'lease/acquire': behind(
    marker,
    words(fc.constantFrom('', '', '', 'e1', 'e2', 'e1 w1'), sensibleTtl, inbox),
    per(lease, holder, waiting),
  ),
  'lease/claim': behind(
    marker,
    words(fc.constantFrom('', '', 'e1'), fc.constantFrom('e1', 'e2'), sensibleTtl),
    per(lease, holder, fc.constantFrom('0', '5')),
  ),
  'lease/renew': behind(
    fc.constant([]),
    words(sensibleTtl, fc.constantFrom('0', '1')),
    per(lease, holder),
  ),
  'lease/reassert': behind(
    marker,
    words(fc.constantFrom('', '*', 'e1'), sensibleTtl),
    per(lease, holder, fence),
  ),
  'lease/release': per(lease, holder, fence),
  'lease/transfer': behind(
    fc.constant([]),
    words(sensibleTtl, fc.constantFrom('', 'e1', 'e1', 'e2'), sensibleTtl),
    per(lease, holder, fence, holder, inbox),
  ),
  'lease/revoke': given(words(lease), words('!revoked', fc.constantFrom('0', '1'), '60000', fence)),
  'lease/read': per(lease),
  'lease/wake-next': behind(
    fc.constant([]),
    words(inbox, fc.constantFrom('0', '75')),
    per(lease, fc.constantFrom('1', '2')),
  ),
  'member/beat': given(
    words(oneOf('poll:node:h1', 'poll:node:h2'), oneOf('poll:nodes')),
    words(json, ttl, id),
  ),
  'member/list': given(words(oneOf('poll:nodes')), words('poll:node:')),
  'member/read': per(oneOf('poll:node:h1', 'poll:node:h2')),
  'record/get': per(record),
  'record/put': behind(index, words(kept), per(record, id, json, fence, revision)),
  'record/remove': behind(index, words(kept), per(record, id, fence, revision)),
  'record/announce': behind(
    index,
    words(kept),
    per(fc.constant(''), fc.constantFrom('+', '-'), id).map(({ args }) => ({ keys: [], args })),
  ),
  'record/retire': behind(
    index,
    words(kept, fence, fc.constantFrom('0', '60000')),
    some(id, 3).map((args) => ({ keys: [], args })),
  ),
  'record/discover': behind(
    index,
    words(kept),
    per(record, id, fc.constantFrom('', '-', '1', '2')),
  ),
  'record/changes': given(
    index,
    words(
      ...[fc.oneof(fence, fc.constant('0')), fc.oneof(fence, fc.constant('0'))],
      fc.constantFrom('1', '2', '500'),
    ),
  ),
  'log/append': behind(
    log,
    words(fc.constantFrom('100000', '0', '3', '150')),
    fc
      .oneof(some(json, 3), fc.constant(new Array<string>(70).fill('1')))
      .map((args) => ({ keys: [], args })),
  ),
  'log/read': given(log, words(position, fc.constantFrom('1', '2', '500', '0'))),
  'log/recall': given(log, words(position, fc.constantFrom('1', '2', '500', '0'))),
  'log/trim': given(log, words(keptMs)),
  'server/examine': behind(
    marker,
    words(
      ...[fc.constantFrom('e1', 'e2'), fc.constantFrom('', 'e1'), fc.constantFrom('', 'lost')],
      ...[fence, fc.constantFrom('0', '1', '3')],
      ...[maxTtl, maxTtl, maxTtl, fc.constantFrom('1', '1', '')],
    ),
    fc
      .array(server, { minLength: 1, maxLength: 2 })
      .map((servers) => ({ keys: [], args: servers.flat() })),
  ),
  'server/change-bounds': given(marker, words(maxTtl, maxTtl, maxTtl)),
  'server/format': given(marker, words(fc.constantFrom('1', '2'), fc.constantFrom('1', '1', ''))),
  'server/record-witness': given(
    marker,
    words(
      fc.constantFrom('', 'x:'),
      fc.constantFrom('e1', 'e2'),
      oneOf('', 'w1'),
      oneOf('w1', 'w2'),
    ),
  ),
  'server/retain': given(marker, words(fc.constantFrom('0', '-1', '3600000'), oneOf('x:', 'y:'))),
  ...flowCalls,
  ...intentCalls,
};

export interface ScriptCall extends Call {
  readonly verb: ScriptName;
}

/** Which argument of a script is for how many ms a key is to live: what ends within the test is a race. */
const TTL_AT: { [verb in ScriptName]?: number } = {
  'lease/acquire': 1,
  'lease/claim': 2,
  'lease/renew': 0,
  'lease/reassert': 1,
  'lease/transfer': 0,
  'lease/revoke': 2,
  'member/beat': 1,
};

function anything(name: ScriptName): fc.Arbitrary<ScriptCall> {
  const keys = fc.array(key, { maxLength: 3 });
  const args = fc.array(fc.oneof(text, integer, sensibleTtl), { maxLength: 8 });
  return fc.tuple(keys, args, ttl).map(([some, all, ms]) => ({
    verb: name,
    keys: some,
    args: all.map((arg, i) => (i === TTL_AT[name] ? ms : arg)),
  }));
}

const verb = fc.constantFrom(...(Object.keys(scripts) as ScriptName[]));

/** One call of a script: as it should be, mostly; else with too little, too much or anything. */
export const scriptCall: fc.Arbitrary<ScriptCall> = verb.chain((name) =>
  fc.oneof(
    { weight: 12, arbitrary: calls[name].map((call) => ({ verb: name, ...call })) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(calls[name], fc.nat({ max: 3 }), fc.nat({ max: 3 }))
        .map(([{ keys, args }, fewerKeys, fewerArgs]) => ({
          verb: name,
          keys: keys.slice(fewerKeys),
          args: args.slice(0, Math.max(0, args.length - fewerArgs)),
        })),
    },
    { weight: 1, arbitrary: anything(name) },
  ),
);
