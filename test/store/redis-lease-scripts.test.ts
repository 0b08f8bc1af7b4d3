import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random.ts';
import { type Reply, ReplyError } from '../../src/store/redis/client/wire.ts';
import { type ScriptName, scripts } from '../../src/store/redis/scripts.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { compileLua } from '../../testing/sim-redis/lua.ts';
import { first } from '../../testing/sim-redis/lua-operators.ts';
import { LuaTable } from '../../testing/sim-redis/lua-value.ts';
import { fromLua, ScriptRun } from '../../testing/sim-redis/script-run.ts';
import { SimRedis } from '../../testing/sim-redis/server.ts';
import type { Value } from '../../testing/sim-redis/value.ts';

/** Each script of leases alone, as its header describes it: what it returns, and which keys it leaves behind. */
const MARKER = 'holdfast:marker';
const RECORD_MS = 86_400_000;
const WRONG_TYPE = expect.stringMatching(/^WRONGTYPE/);
const MAX_NUMBER = '9007199254740991';
/** A moment with microseconds: a fence has sixteen digits, and all of them count. */
const PAST_FULL_MS = 234.125;

const fenceOf = (lease: string) => `fence:{${lease}}`;
const lineOf = (lease: string) => `line:{${lease}}`;
const offerOf = (lease: string) => `offer:{${lease}}`;

function server(pastFullMs = PAST_FULL_MS) {
  const clock = new FakeClock();
  const wallMs = () => clock.wallMs() + pastFullMs;
  const parts = { wallMs, nowMs: () => clock.monotonicMs() };
  const redis = new SimRedis({ ...parts, random: seededRandom(1) });
  const client = redis.connect(() => {});
  const run = (...args: string[]) => redis.execute(client, args);
  const call = (name: ScriptName, keys: string[], args: (string | number)[]): Reply =>
    run('EVAL', scripts[name].source, String(keys.length), ...keys, ...args.map(String));
  const acquire = (lease: string, holder: string, options = '', ttl = 5_000) =>
    (call('lease/acquire', [MARKER, lease], ['', ttl, 'inbox', holder, options]) as Reply[])[0];
  /** What is published to a channel. */
  const listen = (channel: string) => {
    const heard: Reply[] = [];
    const listener = redis.connect((reply) => {
      const [kind, , message] = reply as [string, string, string];
      if (kind === 'message') heard.push(message);
    });
    redis.execute(listener, ['SUBSCRIBE', channel]);
    return heard;
  };
  const nowUs = () => wallMs() * 1_000;
  /** Runs a script on a server that refuses a command: `fault` is the beginning of it. */
  const callRefusing = (fault: string, name: ScriptName, keys: string[], args: string[]) => {
    const execute = (command: string[]) =>
      `${command.join(' ')} `.startsWith(`${fault} `)
        ? new ReplyError('OOM command not allowed')
        : (run(...command) as Value);
    const script = compileLua(scripts[name].source);
    const result = script(new ScriptRun(execute), new LuaTable(keys), new LuaTable(args));
    return fromLua(first(result));
  };
  return { clock, redis, client, run, call, callRefusing, acquire, listen, nowUs };
}

/** Everything a key is, to compare before and after. */
type Run = ReturnType<typeof server>['run'];
const stateOf = (run: Run, lease: string) => [
  run('GET', lease),
  run('PTTL', lease),
  run('GET', fenceOf(lease)),
  run('PTTL', fenceOf(lease)),
];

describe('lease/acquire', () => {
  it('K-01 K-02 grants free keys for the TTL, and writes the store’s time as their fence', () => {
    const { run, call, nowUs } = server();
    const args = ['', 5_000, 'inbox', 'a', '', 'b', ''];
    expect(call('lease/acquire', [MARKER, 'x', 'y'], args)).toEqual([nowUs(), nowUs()]);
    expect(stateOf(run, 'x')).toEqual(['a', 5_000, String(nowUs()), RECORD_MS]);
    expect(stateOf(run, 'y')).toEqual(['b', 5_000, String(nowUs()), RECORD_MS]);
  });

  it('K-02 a fence of the first microseconds of a second has all its digits', () => {
    const { run, acquire, nowUs } = server(0.125);
    expect(acquire('x', 'a')).toBe(nowUs());
    expect(run('GET', fenceOf('x'))).toBe(String(nowUs()));
  });

  it('K-02 each grant of a key has a higher fence, even if the store’s clock stands still or is behind', () => {
    const { run, acquire, nowUs } = server();
    const first = acquire('x', 'a') as number;
    run('DEL', 'x');
    expect(acquire('x', 'b')).toBe(first + 1);
    run('DEL', 'x');
    run('SET', fenceOf('x'), String(nowUs() + 5_000_000));
    expect(acquire('x', 'c')).toBe(nowUs() + 5_000_001);
    expect(run('GET', fenceOf('x'))).toBe(String(nowUs() + 5_000_001));
    expect(run('PTTL', fenceOf('x'))).toBe(RECORD_MS);
  });

  it('K-02 a fence is not below the floor that the caller has seen', () => {
    const { run, acquire, nowUs } = server();
    const floor = nowUs() + 7_000;
    expect(acquire('x', 'a', `0 ${floor} -1`)).toBe(floor);
    run('DEL', 'x');
    expect(acquire('x', 'a', '0 5 -1')).toBe(floor + 1);
  });

  it('K-01 a key that another holder has is refused with the holder, its fence and the time left', async () => {
    const { clock, run, acquire } = server();
    const fence = acquire('x', 'a');
    await clock.advance(1_000);
    const before = stateOf(run, 'x');
    expect(acquire('x', 'b')).toEqual(['a', fence, 4_000]);
    expect(stateOf(run, 'x')).toEqual(before);
    run('DEL', fenceOf('x'));
    expect(acquire('x', 'b')).toEqual(['a', 0, 4_000]);
  });

  it('K-01 the same holder with its fence keeps it, and is never given less time', async () => {
    const { clock, run, acquire } = server();
    const fence = acquire('x', 'a') as number;
    await clock.advance(1_000);
    expect(acquire('x', 'a', `${fence} 0 -1`, 2_000)).toBe(fence);
    expect(run('PTTL', 'x')).toBe(4_000);
    expect(acquire('x', 'a', `${fence} 0 -1`, 9_000)).toBe(fence);
    expect(run('PTTL', 'x')).toBe(9_000);
  });

  it('K-01 the same holder without its fence, or with an old one, is given a new one', async () => {
    const { clock, acquire, nowUs } = server();
    const fence = acquire('x', 'a') as number;
    await clock.advance(1_000);
    expect(acquire('x', 'a')).toBe(nowUs());
    expect(acquire('x', 'a', `${fence} 0 -1`)).toBe(nowUs() + 1);
    expect(acquire('x', 'a', `${nowUs() + 1} 0 -1`)).toBe(nowUs() + 1);
    expect(acquire('x', 'a', `0 ${nowUs() + 9} -1`)).toBe(nowUs() + 9);
  });

  it('K-02 a record of another program that looks like an early fence is nobody’s fence', () => {
    const { run, acquire, nowUs } = server();
    run('SET', 'x', 'a');
    for (const record of ['0', '1']) {
      run('SET', fenceOf('x'), record);
      expect(acquire('x', 'a')).toBe(nowUs());
    }
    run('SET', fenceOf('x'), '0');
    expect(acquire('x', 'a', '0 0 -1')).toBe(nowUs());
  });

  it('K-10 a caller that waits is put in line by when it came, once, and its line outlasts the lease', async () => {
    const { clock, run, acquire, nowUs } = server();
    const fence = acquire('x', 'a');
    await clock.advance(1_000);
    expect(acquire('x', 'b', '0 0 500')).toEqual(['a', fence, 4_000]);
    expect(run('ZSCORE', lineOf('x'), 'inbox')).toBe(String(nowUs() - 500_000));
    expect(run('PTTL', lineOf('x'))).toBe(10_000);
    expect(run('GET', fenceOf('x'))).toBe(`${fence}+`);
    expect(run('PTTL', fenceOf('x'))).toBe(RECORD_MS - 1_000);
    expect(acquire('x', 'b', '0 0 0', 1_000)).toEqual(['a', fence, 4_000]);
    expect(run('ZSCORE', lineOf('x'), 'inbox')).toBe(String(nowUs() - 500_000));
    expect(run('PTTL', lineOf('x'))).toBe(8_000);
    expect(run('GET', fenceOf('x'))).toBe(`${fence}+`);
  });

  it('K-10 a caller that has waited for 0 ms waits, one that does not wait is not put in line', () => {
    const { run, acquire } = server();
    acquire('x', 'a');
    acquire('x', 'b', '0 0 -1');
    expect(run('EXISTS', lineOf('x'))).toBe(0);
    acquire('x', 'b', '0 0 0');
    expect(run('ZCARD', lineOf('x'))).toBe(1);
  });

  it('K-10 a wait without a fence record, or beside one of another program, changes no record', () => {
    const { run, acquire } = server();
    run('SET', 'x', 'a');
    acquire('x', 'b', '0 0 0');
    expect(run('EXISTS', fenceOf('x'))).toBe(0);
    run('SET', fenceOf('x'), 'theirs');
    expect(acquire('x', 'b', '0 0 0')).toEqual(['a', 0, -1]);
    expect(run('GET', fenceOf('x'))).toBe('theirs');
  });

  it('K-02 a new grant keeps the mark of the inboxes that wait, and drops that of a forced revocation', () => {
    const { run, acquire, nowUs } = server();
    run('SET', fenceOf('x'), '77!+');
    expect(acquire('x', 'a')).toBe(nowUs());
    expect(run('GET', fenceOf('x'))).toBe(`${nowUs()}+`);
    run('SET', fenceOf('y'), '77!');
    expect(acquire('y', 'a')).toBe(nowUs());
    expect(run('GET', fenceOf('y'))).toBe(String(nowUs()));
  });

  it.each(['theirs', '', '12 ', '1000000000theirs', MAX_NUMBER, '10000000000000000'])(
    'K-02 a fence record that another program wrote (%j) is an error, is not touched, and grants nothing',
    (record) => {
      const { run, acquire } = server();
      run('SET', fenceOf('x'), record);
      expect(acquire('x', 'a')).toEqual(['FOREIGN fence record']);
      expect(acquire('x', 'a', '0 0 0')).toEqual(['FOREIGN fence record']);
      expect([run('EXISTS', 'x'), run('GET', fenceOf('x'))]).toEqual([0, record]);
    },
  );

  it('K-02 a fence record of another type is an error, for a free key, its holder and another', () => {
    const { run, acquire } = server();
    run('RPUSH', fenceOf('x'), 'theirs');
    expect(acquire('x', 'a')).toEqual([WRONG_TYPE]);
    expect(run('EXISTS', 'x')).toBe(0);
    run('SET', 'x', 'a');
    expect(acquire('x', 'a')).toEqual([WRONG_TYPE]);
    expect(acquire('x', 'a', '77 0 -1')).toEqual([WRONG_TYPE]);
    expect(acquire('x', 'b')).toEqual([WRONG_TYPE]);
  });

  it.each(['', '0 0 -1'])(
    'K-02 a server without memory for the fence record grants nothing (options %j)',
    (options) => {
      const { run, callRefusing } = server();
      const args = ['', '5000', 'inbox', 'a', options];
      const fault = `SET ${fenceOf('x')}`;
      expect(callRefusing(fault, 'lease/acquire', [MARKER, 'x'], args)).toEqual([
        ['OOM command not allowed'],
      ]);
      expect([run('EXISTS', 'x'), run('EXISTS', fenceOf('x'))]).toEqual([0, 0]);
    },
  );

  it('K-01 one bad key costs the others of the request nothing', () => {
    const { run, call, nowUs } = server();
    run('RPUSH', 'bad', 'theirs');
    run('SET', 'held', 'b');
    const args = ['', 5_000, 'inbox', 'a', '', 'a', '', 'a', '', 'a', ''];
    expect(call('lease/acquire', [MARKER, 'x', 'bad', 'held', 'y'], args)).toEqual([
      nowUs(),
      [WRONG_TYPE],
      ['b', 0, -1],
      nowUs(),
    ]);
    expect([run('GET', 'x'), run('GET', 'y')]).toEqual(['a', 'a']);
  });

  it('K-01 a key with a hash tag of its own has its record beside it', () => {
    const { run, acquire, nowUs } = server();
    acquire('lease:{t}:x', 'a');
    expect(run('GET', 'fence:lease:{t}:x')).toBe(String(nowUs()));
    acquire('lease:{t}:y', 'a', '0 0 -1');
    expect(run('GET', 'fence:lease:{t}:y')).toBe(String(nowUs()));
    acquire('lease:{t}:z', '1000000000000000');
    expect(run('GET', 'lease:{t}:z')).toBe('1000000000000000');
  });

  it('K-15 grants nothing in another era than the one that was examined', () => {
    const { run, call, nowUs } = server();
    const ask = (era: string, options = '') =>
      call('lease/acquire', [MARKER, 'x'], [era, 5_000, 'inbox', 'a', options]);
    expect(ask('abc')).toBe('ERA');
    run('HSET', MARKER, 'era', 'abc');
    expect(ask('abd')).toBe('ERA');
    expect(ask('abd', '0 0 -1')).toBe('ERA');
    expect(run('EXISTS', 'x')).toBe(0);
    expect(ask('abc')).toEqual([nowUs()]);
    expect(ask('abc', '0 0 -1')).toEqual([nowUs() + 1]);
  });

  it('K-15 on a Cluster the witness of the server shows the era', () => {
    const { run, call, nowUs } = server();
    const keys = ['x', 'x', fenceOf('x')];
    const ask = () => call('lease/acquire', keys, ['abc witness', 5_000, 'inbox', 'a', '']);
    expect(ask()).toBe('ERA');
    run('SET', 'witness', 'abd');
    expect(ask()).toBe('ERA');
    run('SET', 'witness', 'abc');
    expect(ask()).toEqual([nowUs()]);
    run('DEL', 'witness');
    run('RPUSH', 'witness', 'theirs');
    expect(ask()).toBe('ERA');
  });

  it('K-15 a server that lets no script read the witness, because of its slot, is not asked for the era', () => {
    const { redis, client, nowUs } = server();
    const refuse = (why: string) => {
      const execute = (command: string[]) =>
        command.join(' ') === 'GET witness'
          ? new ReplyError(why)
          : (redis.execute(client, command) as Value);
      const keys = new LuaTable(['x', 'x', fenceOf('x')]);
      const args = new LuaTable(['abc witness', '5000', 'inbox', 'a', '']);
      const script = compileLua(scripts['lease/acquire'].source);
      return fromLua(first(script(new ScriptRun(execute), keys, args)));
    };
    expect(refuse('MOVED 1 elsewhere')).toBe('ERA');
    expect(refuse('ERR keys do not hash to the same slot')).toEqual([nowUs()]);
  });
});

describe('lease/renew', () => {
  it('K-03 lengthens what the holder has, shortens nothing, and names what it has not renewed', async () => {
    const { clock, run, call, acquire } = server();
    for (const lease of ['x', 'y']) acquire(lease, 'a');
    acquire('z', 'b');
    run('RPUSH', 'bad', 'theirs');
    await clock.advance(1_000);
    const keys = ['x', 'gone', 'z', 'bad', 'y'];
    expect(call('lease/renew', keys, [5_000, '', 'a', 'a', 'a', 'a', 'a'])).toEqual([
      [2, null],
      [3, 'b'],
      [4, WRONG_TYPE, 'error'],
    ]);
    expect([run('PTTL', 'x'), run('PTTL', 'z'), run('PTTL', 'y')]).toEqual([5_000, 4_000, 5_000]);
    expect(call('lease/renew', ['x'], [3_000, '', 'a'])).toEqual([]);
    expect(run('PTTL', 'x')).toBe(5_000);
    expect(run('PTTL', fenceOf('x'))).toBe(RECORD_MS - 1_000);
    expect(run('EXISTS', 'gone')).toBe(0);
  });

  it('K-03 keeps fence records where it is told to, and none of another program', async () => {
    const { clock, run, call, acquire } = server();
    acquire('x', 'a');
    await clock.advance(1_000);
    expect(call('lease/renew', ['x'], [5_000, '1', 'a'])).toEqual([]);
    expect(run('PTTL', fenceOf('x'))).toBe(RECORD_MS);
    run('DEL', fenceOf('x'));
    run('RPUSH', fenceOf('x'), 'theirs');
    expect(call('lease/renew', ['x'], [5_000, '1', 'a'])).toEqual([]);
    expect(run('PTTL', fenceOf('x'))).toBe(-1);
    run('DEL', fenceOf('x'));
    expect(call('lease/renew', ['x'], [5_000, '1', 'a'])).toEqual([]);
    expect(run('EXISTS', fenceOf('x'))).toBe(0);
    run('SET', fenceOf('x'), MAX_NUMBER);
    call('lease/renew', ['x'], [5_000, '1', 'a']);
    expect(run('PTTL', fenceOf('x'))).toBe(-1);
  });
});

describe('lease/release', () => {
  it('K-03 K-08 ends the tenure that is named, and no other', () => {
    const { run, call, acquire } = server();
    const fence = acquire('x', 'a') as number;
    expect(call('lease/release', ['x'], ['b', fence])).toEqual([[1, 'a', fence]]);
    expect(call('lease/release', ['x'], ['a', fence - 1])).toEqual([[1, 'a', fence]]);
    expect(run('GET', 'x')).toBe('a');
    expect(call('lease/release', ['x'], ['a', fence])).toEqual([]);
    expect([run('EXISTS', 'x'), run('GET', fenceOf('x'))]).toEqual([0, String(fence)]);
    expect(call('lease/release', ['x'], ['a', fence])).toEqual([[1, null, fence]]);
  });

  it('K-08 of several tenures each has its own answer', () => {
    const { run, call, acquire } = server();
    const fences = ['x', 'y', 'z'].map((lease) => acquire(lease, 'a') as number);
    const [x = 0, y = 0, z = 0] = fences;
    const args = ['a', x, 'b', y, 'a', z];
    expect(call('lease/release', ['x', 'y', 'z'], args)).toEqual([[2, 'a', y]]);
    expect(['x', 'y', 'z'].map((lease) => run('EXISTS', lease))).toEqual([0, 1, 0]);
  });

  it('K-08 several plain tenures are all ended', () => {
    const { run, call, acquire } = server();
    const [x, y] = [acquire('x', 'a') as number, acquire('y', 'a') as number];
    expect(call('lease/release', ['x', 'y'], ['a', x, 'a', y])).toEqual([]);
    expect([run('EXISTS', 'x'), run('EXISTS', 'y')]).toEqual([0, 0]);
  });

  it('K-08 holders and fences that look alike are not taken for each other', () => {
    const { run, call } = server();
    const holds = (lease: string, holder: string, record: string) => {
      run('SET', lease, holder);
      run('SET', lease.includes('{') ? `fence:${lease}` : fenceOf(lease), record);
    };
    holds('x', '77', '77');
    expect(call('lease/release', ['x'], ['zz', 77])).toEqual([[1, '77', 77]]);
    holds('x', 'zz', '77');
    expect(call('lease/release', ['x'], ['77', 77])).toEqual([[1, 'zz', 77]]);
    holds('{t}:x', '77', '78');
    expect(call('lease/release', ['{t}:x'], ['77', 77])).toEqual([[1, '77', 78]]);
    holds('x', 'b', '77');
    holds('y', 'b', '78');
    expect(call('lease/release', ['x', 'y'], ['a', 77, 'b', 79])).toEqual([
      [1, 'b', 77],
      [2, 'b', 78],
    ]);
    holds('x', 'a', '77');
    expect(call('lease/release', ['x', 'y'], ['a', 5, '77', 5])).toEqual([
      [1, 'a', 77],
      [2, 'b', 78],
    ]);
  });

  it('K-10 where publishing is forbidden, the first in line counts as woken', () => {
    const { run, callRefusing } = server();
    run('SET', 'x', 'a');
    run('ZADD', lineOf('x'), '1', 'inbox');
    run('ZADD', lineOf('x'), '2', 'second');
    expect(callRefusing('PUBLISH', 'lease/release', ['x'], ['a', '77'])).toEqual([[1]]);
    expect(run('ZCARD', lineOf('x'))).toBe(1);
  });

  it('K-10 wakes the first in line, and forgets the line when it is empty', () => {
    const { run, call, acquire, listen } = server();
    const fence = acquire('x', 'a') as number;
    acquire('x', 'b', '0 0 0');
    run('ZADD', lineOf('x'), '9e15', 'second');
    const heard = [listen('inbox'), listen('second')];
    expect(call('lease/release', ['x'], ['a', fence])).toEqual([[1]]);
    expect(heard).toEqual([['x'], []]);
    expect(run('GET', fenceOf('x'))).toBe(`${fence}+`);
    run('SET', 'x', 'b');
    expect(call('lease/release', ['x'], ['b', fence])).toEqual([[1]]);
    expect(heard).toEqual([['x'], ['x']]);
    expect(stateOf(run, 'x')).toEqual([null, -2, String(fence), RECORD_MS]);
  });

  it('K-10 says that it woke nobody where no inbox listens, and drops those', () => {
    const { run, call, acquire } = server();
    const fence = acquire('x', 'a') as number;
    acquire('x', 'b', '0 0 0');
    expect(call('lease/release', ['x'], ['a', fence])).toEqual([]);
    expect([run('EXISTS', lineOf('x')), run('GET', fenceOf('x'))]).toEqual([0, String(fence)]);
  });

  it('K-02 a tenure longer than its fence record leaves a fresh one, and wakes who waits', () => {
    const { run, call, listen } = server();
    run('SET', 'x', 'a');
    run('ZADD', lineOf('x'), '1', 'inbox');
    const heard = listen('inbox');
    expect(call('lease/release', ['x'], ['a', 77])).toEqual([[1]]);
    expect(stateOf(run, 'x')).toEqual([null, -2, '77', RECORD_MS]);
    expect(heard).toEqual(['x']);
  });

  it('K-02 a value of another program in place of the key counts as absent', () => {
    const { run, call } = server();
    run('RPUSH', 'x', 'theirs');
    expect(call('lease/release', ['x'], ['a', 77])).toEqual([[1, null, 0]]);
    expect(run('EXISTS', 'x')).toBe(1);
    run('SET', 'y', 'a');
    run('SET', fenceOf('y'), 'theirs');
    expect(call('lease/release', ['y'], ['a', 77])).toEqual([[1, 'a', 0]]);
  });

  it('K-08 a key with a hash tag of its own is released by the record beside it', () => {
    const { run, call, acquire } = server();
    const fence = acquire('{t}:x', 'a') as number;
    expect(call('lease/release', ['{t}:x'], ['a', fence])).toEqual([]);
    expect(run('EXISTS', '{t}:x')).toBe(0);
  });
});

describe('lease/revoke', () => {
  it('K-09 without force a tombstone stays for as long as the holder may act, with a higher fence', async () => {
    const { clock, run, call, acquire, nowUs } = server();
    const fence = acquire('x', 'a') as number;
    await clock.advance(1_000);
    const revoke = (expected: number, force = '') =>
      call('lease/revoke', ['x'], ['(revoked)', force, 30_000, expected]);
    expect(revoke(fence)).toEqual(['a', nowUs(), 4_000, 0]);
    expect(stateOf(run, 'x')).toEqual(['(revoked)', 4_000, String(nowUs()), RECORD_MS]);
    expect(revoke(nowUs())).toEqual(['(revoked)', nowUs()]);
    expect(revoke(nowUs(), '1')).toEqual(['(revoked)', nowUs() + 1, 4_000, 0]);
    expect(run('EXISTS', 'x')).toBe(0);
  });

  it('K-09 with force the key is free, its record is marked, and the next in line is woken', () => {
    const { run, call, acquire, listen } = server();
    const fence = acquire('x', 'a') as number;
    acquire('x', 'b', '0 0 0');
    run('ZADD', lineOf('x'), '9e15', 'second');
    const heard = [listen('inbox'), listen('second')];
    const reply = call('lease/revoke', ['x'], ['(revoked)', '1', 30_000, fence]);
    expect(reply).toEqual(['a', fence + 1, 5_000, 1]);
    expect(heard).toEqual([['x'], []]);
    expect(stateOf(run, 'x')).toEqual([null, -2, `${fence + 1}!+`, RECORD_MS]);
    acquire('y', 'a');
    call('lease/revoke', ['y'], ['(revoked)', '1', 30_000, fence]);
    expect(run('GET', fenceOf('y'))).toBe(`${fence + 1}!`);
  });

  it('K-09 another tenure than the one that is meant is left alone, and named', () => {
    const { run, call, acquire } = server();
    const fence = acquire('x', 'a') as number;
    const before = stateOf(run, 'x');
    const args = ['(revoked)', '', 30_000, fence - 1];
    expect(call('lease/revoke', ['x'], args)).toEqual(['a', fence]);
    expect(call('lease/revoke', ['free'], args)).toEqual([null, 0]);
    expect(stateOf(run, 'x')).toEqual(before);
  });

  it('K-09 a lease without expiry leaves a tombstone for the time that is given, one that just ends for a millisecond', async () => {
    const { clock, run, call } = server();
    for (const lease of ['x', 'y']) {
      run('SET', lease, 'a');
      run('SET', fenceOf(lease), '7');
    }
    const revoke = (lease: string) => call('lease/revoke', [lease], ['(revoked)', '', 30_000, 7]);
    expect(revoke('x')).toMatchObject({ 0: 'a', 2: 30_000 });
    expect(run('PTTL', 'x')).toBe(30_000);
    run('PEXPIRE', 'y', '500');
    await clock.advance(500);
    expect(revoke('y')).toMatchObject({ 2: 0 });
    expect(run('PTTL', 'y')).toBe(1);
    await clock.advance(2);
    expect(run('EXISTS', 'y')).toBe(0);
  });
});

describe('a fence that cannot be written', () => {
  const OOM = 'OOM command not allowed';

  it('K-09 revokes nothing, nor does a record of another program', () => {
    const { run, call, callRefusing, acquire } = server();
    const fence = acquire('x', 'a') as number;
    const args = ['(revoked)', '', '30000', String(fence)];
    expect(callRefusing(`SET ${fenceOf('x')}`, 'lease/revoke', ['x'], args)).toMatchObject({
      message: expect.stringContaining(OOM),
    });
    expect(run('GET', 'x')).toBe('a');
    run('SET', fenceOf('x'), 'theirs');
    expect(call('lease/revoke', ['x'], ['(revoked)', '', 30_000, 0])).toMatchObject({
      message: expect.stringContaining('FOREIGN fence record'),
    });
    expect(run('GET', 'x')).toBe('a');
  });

  it('K-10 hands nothing over', () => {
    const { run, callRefusing, acquire } = server();
    const fence = acquire('x', 'a') as number;
    const args = ['2000', 'abc', '60000', 'a', String(fence), 'b', 'inbox'];
    expect(callRefusing(`SET ${fenceOf('x')}`, 'lease/transfer', ['x'], args)).toEqual([[OOM]]);
    expect(run('GET', 'x')).toBe('a');
  });

  it('K-15 gives a successor nothing', () => {
    const { run, call, callRefusing, acquire } = server();
    const fence = acquire('x', 'a') as number;
    call('lease/transfer', ['x'], [2_000, 'abc', 60_000, 'a', fence, 'b', 'inbox']);
    const args = ['', 'abc', '5000', 'b', '0'];
    const reply = callRefusing(`SET ${fenceOf('x')}`, 'lease/claim', [MARKER, 'x'], args);
    expect(reply).toEqual([[OOM]]);
    expect(run('PTTL', 'x')).toBe(2_000);
  });
});

describe('lease/transfer and lease/claim', () => {
  const ERA = 'abc';
  const give = ({ call }: ReturnType<typeof server>, fence: number, era = ERA) =>
    call('lease/transfer', ['x'], [2_000, era, 60_000, 'a', fence, 'b', 'inbox-b']);
  const claim = ({ call }: ReturnType<typeof server>, holder: string, era = ERA, floor = 0) =>
    call('lease/claim', [MARKER, 'x'], ['', era, 5_000, holder, floor]);

  it('K-10 names the successor for the window, with a higher fence, and tells it', async () => {
    const world = server();
    const heard = world.listen('inbox-b');
    const fence = world.acquire('x', 'a') as number;
    expect(give(world, fence, '')).toEqual([fence + 1]);
    expect(stateOf(world.run, 'x')).toEqual(['b', 2_000, String(fence + 1), RECORD_MS]);
    expect(heard).toEqual(['x']);
    expect(world.run('EXISTS', offerOf('x'))).toBe(0);
    expect(give(world, fence, '')).toEqual([['b', fence + 1]]);
    await world.clock.advance(2_001);
    expect(world.run('EXISTS', 'x')).toBe(0);
  });

  it('K-10 hands nothing over that is another holder’s, has another fence, or is not readable', () => {
    const world = server();
    const { run, acquire } = world;
    const fence = acquire('x', 'a') as number;
    const before = stateOf(run, 'x');
    expect(give(world, fence - 1)).toEqual([['a', fence]]);
    run('SET', 'x', 'c', 'KEEPTTL');
    expect(give(world, fence)).toEqual([['c', fence]]);
    run('SET', 'x', 'a', 'KEEPTTL');
    expect(stateOf(run, 'x')).toEqual(before);
    run('SET', fenceOf('x'), 'theirs');
    expect(give(world, fence)).toEqual([['a', 0]]);
    run('DEL', fenceOf('x'));
    run('RPUSH', fenceOf('x'), 'theirs');
    expect(give(world, fence)).toEqual([[WRONG_TYPE]]);
    run('DEL', fenceOf('x'), 'x');
    run('RPUSH', 'x', 'theirs');
    expect(give(world, fence)).toEqual([[WRONG_TYPE]]);
    run('DEL', 'x');
    expect(give(world, fence)).toEqual([[null, 0]]);
  });

  it('K-02 without a fence record the successor’s fence is above the giver’s', () => {
    const world = server();
    world.run('SET', 'x', 'a');
    const ahead = world.nowUs() + 9_000;
    expect(give(world, ahead)).toEqual([ahead + 1]);
  });

  it('K-15 remembers in which era a lease was handed over, for the successor to claim it there', () => {
    const world = server();
    const { run } = world;
    const fence = world.acquire('x', 'a') as number;
    give(world, fence);
    expect(run('HGET', offerOf('x'), ERA)).toBe(String(fence + 1));
    expect(run('PTTL', offerOf('x'))).toBe(60_000);
    expect(claim(world, 'c')).toEqual([null]);
    expect(claim(world, 'b', 'abd')).toEqual([null]);
    expect(claim(world, 'b')).toEqual([fence + 2]);
    expect(run('EXISTS', offerOf('x'))).toBe(0);
    expect(stateOf(run, 'x')).toEqual(['b', 5_000, String(fence + 2), RECORD_MS]);
    expect(claim(world, 'b')).toEqual([null]);
  });

  it('K-15 after the window any client may claim it, above a floor, and not after another grant', async () => {
    const world = server();
    const fence = world.acquire('x', 'a') as number;
    give(world, fence);
    await world.clock.advance(2_001);
    const floor = world.nowUs() + 5_000;
    expect(claim(world, 'c', ERA, floor)).toEqual([floor]);
    const again = server();
    give(again, again.acquire('x', 'a') as number);
    again.run('DEL', 'x');
    again.acquire('x', 'd');
    again.run('DEL', 'x');
    expect(claim(again, 'c')).toEqual([null]);
  });

  it('K-15 claims nothing where key, record or offer are another program’s, or gone', () => {
    const world = server();
    const { run } = world;
    const fence = world.acquire('x', 'a') as number;
    give(world, fence);
    run('DEL', fenceOf('x'));
    expect(claim(world, 'b')).toEqual([null]);
    run('RPUSH', fenceOf('x'), 'theirs');
    expect(claim(world, 'b')).toEqual([null]);
    run('DEL', fenceOf('x'), offerOf('x'));
    run('SET', fenceOf('x'), String(fence + 1));
    run('SET', offerOf('x'), 'theirs');
    expect(claim(world, 'b')).toEqual([null]);
    run('DEL', 'x');
    run('RPUSH', 'x', 'theirs');
    expect(claim(world, 'b')).toEqual([null]);
  });

  it('K-15 claims nothing in another era of the store', () => {
    const { call } = server();
    expect(call('lease/claim', [MARKER, 'x'], ['abc', 'abc', 5_000, 'b', 0])).toBe('ERA');
  });

  it('K-10 several leases of one request have an answer each', () => {
    const { call, acquire } = server();
    const [x, y] = [acquire('x', 'a') as number, acquire('y', 'a') as number];
    const handovers = ['a', x, 'b', 'inbox', 'c', y, 'b', 'inbox', 'a', y, 'b', 'inbox'];
    const reply = call('lease/transfer', ['x', 'y', 'y'], [2_000, ERA, 60_000, ...handovers]);
    expect(reply).toEqual([x + 1, ['a', y], y + 1]);
    const claims = ['c', 0, 'b', 0];
    expect(call('lease/claim', [MARKER, 'x', 'y'], ['', ERA, 5_000, ...claims])).toEqual([
      null,
      y + 2,
    ]);
  });
});

describe('lease/reassert', () => {
  const put = ({ call }: ReturnType<typeof server>, era: string, fence: number | string) =>
    call('lease/reassert', [MARKER, 'x'], [era, 5_000, 'a', fence]);

  it('K-15 puts back what vanished where the record is still the holder’s, waited for or not', () => {
    const world = server();
    const { run } = world;
    run('SET', fenceOf('x'), '77');
    expect(put(world, '', 77)).toEqual([1]);
    expect(stateOf(run, 'x')).toEqual(['a', 5_000, '77', -1]);
    run('DEL', 'x');
    run('SET', fenceOf('x'), '77+');
    expect(put(world, '', 77)).toEqual([1]);
    expect(run('GET', fenceOf('x'))).toBe('77+');
    run('DEL', 'x');
    expect(put(world, '', 78)).toEqual([0]);
    expect(run('EXISTS', 'x')).toBe(0);
  });

  it('K-15 never takes a key that is held, whoever holds it', () => {
    const world = server();
    world.run('SET', fenceOf('x'), '77');
    world.run('SET', 'x', 'b');
    expect(put(world, '', 77)).toEqual([0]);
    expect(world.run('GET', 'x')).toBe('b');
  });

  it('K-15 without a record it puts back in the examined era only, and writes the record again', () => {
    const world = server();
    const { run } = world;
    expect(put(world, '', 77)).toEqual([0]);
    expect(put(world, 'abc', 77)).toBe('ERA');
    run('HSET', MARKER, 'era', 'abc');
    expect(put(world, 'abc', 77)).toEqual([1]);
    expect(stateOf(run, 'x')).toEqual(['a', 5_000, '77', RECORD_MS]);
    run('DEL', 'x', fenceOf('x'));
    expect(put(world, '*', 77)).toEqual([1]);
  });

  it('K-15 a record of another program, and a key of another type, put nothing back', () => {
    const world = server();
    world.run('RPUSH', fenceOf('x'), 'theirs');
    expect(put(world, '*', 77)).toEqual([0]);
    expect(world.run('EXISTS', 'x')).toBe(0);
  });

  it('K-15 several tenures of one request have an answer each', () => {
    const { run, call } = server();
    run('SET', fenceOf('x'), '7');
    run('SET', fenceOf('y'), '8');
    const args = ['', 5_000, 'a', 9, 'b', 8];
    expect(call('lease/reassert', [MARKER, 'x', 'y'], args)).toEqual([0, 1]);
    expect([run('GET', 'x'), run('GET', 'y')]).toEqual([null, 'b']);
  });
});

describe('lease/read', () => {
  it('K-14 says holder, fence, time left and forced revocation of each key', () => {
    const { run, call, acquire } = server();
    const fence = acquire('x', 'a') as number;
    run('SET', fenceOf('revoked'), '78!+');
    run('RPUSH', 'bad', 'theirs');
    run('SET', 'odd', 'a');
    run('RPUSH', fenceOf('odd'), 'theirs');
    run('SET', 'plain', 'a');
    const keys = ['x', 'free', 'revoked', 'bad', 'odd', 'plain'];
    expect(call('lease/read', keys, [])).toEqual([
      ['a', fence, 5_000, ''],
      [null, 0, -2, ''],
      [null, 78, -2, '!'],
      [WRONG_TYPE],
      [WRONG_TYPE],
      ['a', 0, -1, ''],
    ]);
  });
});

describe('lease/wake-next', () => {
  const wake = (
    { call }: ReturnType<typeof server>,
    keys: string[],
    { leaving = '', apart = 0, most = 1 } = {},
  ) => call('lease/wake-next', keys, [leaving, apart, ...keys.map(() => most)]);

  function line() {
    const world = server();
    const inboxes = ['one', 'two', 'three'];
    for (const [place, inbox] of inboxes.entries()) {
      world.run('ZADD', lineOf('x'), String(place), inbox);
    }
    return { ...world, heard: inboxes.map((inbox) => world.listen(inbox)) };
  }

  it('K-10 wakes the first of a free key, and nobody of a held one', () => {
    const world = line();
    expect(wake(world, ['x'])).toEqual([1]);
    expect(world.heard).toEqual([['x'], [], []]);
    world.run('SET', 'x', 'a');
    expect(wake(world, ['x'])).toEqual([0]);
    expect(wake(world, ['y'])).toEqual([0]);
    expect(world.heard).toEqual([['x'], [], []]);
  });

  it('K-10 wakes several, each told how much later it asks than the one before', () => {
    const world = line();
    expect(wake(world, ['x'], { most: 3, apart: 50 })).toEqual([3]);
    expect(world.heard).toEqual([['x'], ['x\n50'], ['x\n100']]);
    expect(wake(world, ['x'], { most: 3, apart: 50 })).toEqual([0]);
  });

  it('K-10 an inbox that leaves is not woken, one that does not listen is dropped', () => {
    const world = line();
    world.run('ZADD', lineOf('x'), '-1', 'deaf');
    expect(wake(world, ['x'], { leaving: 'one' })).toEqual([1]);
    expect(world.heard).toEqual([[], ['x'], []]);
    expect(world.run('ZCARD', lineOf('x'))).toBe(1);
  });

  it('K-10 who leaves a held key leaves its line all the same', () => {
    const world = line();
    world.run('SET', 'x', 'a');
    expect(wake(world, ['x'], { leaving: 'two' })).toEqual([0]);
    expect(world.run('ZCARD', lineOf('x'))).toBe(2);
  });
});
