import { beforeEach, describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random.ts';
import { type Reply, ReplyError } from '../../src/store/redis/client/wire.ts';
import { scripts } from '../../src/store/redis/scripts.ts';
import { LOSS_MS } from '../../testing/sim-redis/journal.ts';
import { type SimClient, SimRedis } from '../../testing/sim-redis/server.ts';
import fc from '../support/fast-check.ts';

const START_MS = Date.UTC(2026, 0, 1);

let nowMs: number;
/** How far the server's clock is off. */
let offsetMs: number;
let server: SimRedis;
let client: SimClient;
beforeEach(() => {
  nowMs = START_MS;
  offsetMs = 0;
  server = new SimRedis({
    wallMs: () => nowMs + offsetMs,
    nowMs: () => nowMs,
    random: seededRandom(1),
    appendOnly: true,
  });
  client = server.connect(() => {});
});

function send(...args: string[]): Reply {
  if (!client.isConnected) client = server.connect(() => {});
  return server.execute(client, args);
}

/** What a script answers; errors inside are caught. */
function run(source: string, ...keys: string[]): Reply {
  return send('EVAL', source, String(keys.length), ...keys);
}

function error(reply: Reply): string {
  return reply instanceof ReplyError ? reply.message : `no error: ${JSON.stringify(reply)}`;
}

const READERS: Record<string, readonly string[]> = {
  string: ['GET'],
  hash: ['HGETALL'],
  set: ['SMEMBERS'],
  list: ['LRANGE', '0', '-1'],
  zset: ['ZRANGE', '0', '-1', 'WITHSCORES'],
  stream: ['XRANGE', '-', '+'],
};

/** Everything there is and when it ends, in no particular order. */
function contents(): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const key of [...server.keys()].sort()) {
    const kind = String(send('TYPE', key));
    const [name = '', ...rest] = READERS[kind] ?? [];
    const reply = send(name, key, ...rest);
    const isOrdered = kind === 'zset' || kind === 'stream' || kind === 'string' || kind === 'list';
    const leftMs = Number(send('PTTL', key));
    found[key] = [
      kind,
      isOrdered ? reply : sorted(kind, reply as string[]),
      leftMs < 0 ? leftMs : nowMs + leftMs,
    ];
    if (kind === 'stream') found[`${key} (last id)`] = (send('XINFO', 'STREAM', key) as Reply[])[3];
  }
  return found;
}

function sorted(kind: string, list: readonly string[]): unknown {
  if (kind === 'set') return [...list].sort();
  return Object.fromEntries(list.flatMap((name, i) => (i % 2 === 0 ? [[name, list[i + 1]]] : [])));
}

describe('time', () => {
  it('is the wall clock, down to the µs', () => {
    nowMs = START_MS + 1_234.567;
    expect(send('TIME')).toEqual([String(START_MS / 1_000 + 1), '234567']);
  });

  it('ends a key behind the whole millisecond for which it was to live', () => {
    send('SET', 'k', 'v', 'PX', '100');
    nowMs += 99.9;
    expect(send('PTTL', 'k')).toBe(1);
    nowMs += 0.1;
    expect([send('PTTL', 'k'), send('GET', 'k')]).toEqual([0, 'v']);
    nowMs += 0.999;
    expect(send('GET', 'k')).toBe('v');
    nowMs += 0.001;
    expect([send('PTTL', 'k'), send('GET', 'k'), send('EXISTS', 'k')]).toEqual([-2, null, 0]);
  });

  it('ends at once what is to end now, or has', () => {
    for (const word of ['0', '-5']) {
      send('SET', 'k', 'v');
      expect([send('PEXPIRE', 'k', word), send('GET', 'k')]).toEqual([1, null]);
    }
    send('SET', 'k', 'v');
    expect([send('PEXPIREAT', 'k', String(nowMs)), send('GET', 'k')]).toEqual([1, null]);
    expect(send('PEXPIRE', 'k', '5')).toBe(0);
  });

  it('ends keys early or late when somebody sets the clock', () => {
    send('SET', 'k', 'v', 'PX', '1000');
    offsetMs = -5_000;
    expect(send('PTTL', 'k')).toBe(6_000);
    offsetMs = 2_000;
    expect(send('EXISTS', 'k')).toBe(0);
    offsetMs = 0;
    expect(send('EXISTS', 'k')).toBe(0);
  });

  it('shows in how long the server has been up', () => {
    nowMs += 61_000;
    expect(send('INFO')).toContain('uptime_in_seconds:61\r\n');
    offsetMs = 3_600_000;
    expect(send('INFO')).toContain('uptime_in_seconds:3661\r\n');
    server.failover(0);
    expect(send('INFO')).toContain('uptime_in_seconds:3661\r\n');
    server.restart({ lostMs: 0 });
    expect(send('INFO')).toContain('uptime_in_seconds:0\r\n');
  });
});

describe('a server without memory', () => {
  beforeEach(() => {
    send('SET', 'k', 'v');
    server.isOutOfMemory = true;
  });

  it('refuses what may need some, and nothing else', () => {
    expect(error(send('SET', 'k', 'w'))).toMatch(/^OOM command not allowed/);
    expect(error(send('HSET', 'h', 'f', 'v'))).toMatch(/^OOM/);
    expect([send('PEXPIRE', 'k', '5000'), send('PUBLISH', 'c', 'm'), send('DEL', 'k')]).toEqual([
      1, 0, 1,
    ]);
  });

  it('lets a script that has written go on', () => {
    expect(error(run(`return redis.call('SET', 'a', 1)`))).toMatch(/^OOM .* on @user_script:1\.$/);
    expect(run(`return {redis.pcall('SET', 'a', 1).err}`)).toEqual([expect.stringMatching(/^OOM/)]);
    expect(run(`redis.call('DEL', 'none') return redis.call('SET', 'a', 1)`)).toBe('OK');
  });
});

describe('a replica', () => {
  it('can be read and says what it is', () => {
    send('SET', 'k', 'v');
    server.isReadOnly = true;
    expect(send('GET', 'k')).toBe('v');
    expect(send('INFO')).toContain('role:slave\r\n');
    expect(error(send('DEL', 'k'))).toMatch(/^READONLY/);
    expect(error(run(`return redis.call('DEL', 'k')`))).toMatch(/^READONLY/);
  });
});

describe('a server that loads its data', () => {
  it('says so, and answers no more than what it is', () => {
    server.isLoading = true;
    expect(error(send('GET', 'k'))).toMatch(/^LOADING/);
    expect(error(send('PING'))).toMatch(/^LOADING/);
    expect(error(run('return 1'))).toMatch(/^LOADING/);
    expect(send('INFO')).toContain('role:master\r\n');
  });
});

describe('scripts', () => {
  it('are known by their digest until they are forgotten', () => {
    const { sha, source } = scripts['server/format'];
    expect(error(send('EVALSHA', sha, '1', 'm', '1'))).toMatch(/^NOSCRIPT/);
    expect(send('EVAL', source, '1', 'm', '1')).toBe('1');
    expect(send('EVALSHA', sha, '1', 'm', '2')).toBe('1');
    server.flushScripts();
    expect(error(send('EVALSHA', sha, '1', 'm', '1'))).toMatch(/^NOSCRIPT/);
  });
});

describe('publishing', () => {
  it('reaches who listens, and counts them', () => {
    const heard: Reply[] = [];
    const ear = server.connect((reply) => heard.push(reply));
    const other = server.connect((reply) => heard.push(reply));
    expect(server.execute(ear, ['SUBSCRIBE', 'c'])).toEqual(['subscribe', 'c', 1]);
    expect(server.execute(ear, ['SUBSCRIBE', 'd'])).toEqual(['subscribe', 'd', 2]);
    server.execute(other, ['SUBSCRIBE', 'c']);
    expect([
      send('PUBLISH', 'c', 'one'),
      send('PUBLISH', 'd', 'two'),
      send('PUBLISH', 'e', ''),
    ]).toEqual([2, 1, 0]);
    server.execute(ear, ['UNSUBSCRIBE', 'c']);
    server.disconnect(other);
    server.disconnect(other);
    expect([send('PUBLISH', 'c', 'three'), send('PUBLISH', 'd', 'four')]).toEqual([0, 1]);
    expect(heard.map((reply) => (reply as string[])[2])).toEqual(['one', 'one', 'two', 'four']);
  });

  it('leaves who listens nothing else to say', () => {
    send('SUBSCRIBE', 'c');
    expect(error(send('GET', 'k'))).toMatch(/^ERR Can't execute 'get'/);
    expect(send('PING')).toEqual(['pong', '']);
    send('UNSUBSCRIBE', 'c');
    expect(send('PING')).toBe('PONG');
  });
});

describe('walking', () => {
  it('meets all that is there from begin to end, whatever comes and goes', () => {
    for (let i = 0; i < 30; i++) send('SET', `k${i}`, 'v');
    const met = new Set<string>();
    let cursor = '0';
    do {
      const [next, names] = send('SCAN', cursor, 'COUNT', '4') as [string, string[]];
      for (const name of names) met.add(name);
      send('DEL', `k${met.size}`);
      send('SET', `new${met.size}`, 'v');
      if (met.size === 8) server.failover(0);
      cursor = met.size > 200 ? '0' : next;
    } while (cursor !== '0');
    for (const key of server.keys()) if (/^k/.test(key)) expect([...met]).toContain(key);
  });

  it('gives only what matches', () => {
    for (const key of ['a:1', 'a:22', 'b:1', 'a[x]']) send('SET', key, 'v');
    send('SADD', 'a:3', 'm');
    const found = (...more: string[]) => (send('SCAN', '0', ...more) as [string, string[]])[1];
    expect(found('MATCH', 'a:*', 'TYPE', 'string')).toEqual(['a:1', 'a:22']);
    expect(found('MATCH', 'a:?')).toEqual(['a:1', 'a:3']);
    expect(found('MATCH', '[ab]:1')).toEqual(['a:1', 'b:1']);
    expect(found('MATCH', '[^a-a]:1')).toEqual(['b:1']);
    expect(found('MATCH', 'a\\[x\\]')).toEqual(['a[x]']);
  });
});

describe('what is lost', () => {
  it('in a restart without data is all, and it is another server', () => {
    send('SET', 'k', 'v');
    const before = [server.runId, server.replicationId];
    server.restart('empty');
    expect([server.size, client.isConnected]).toEqual([0, false]);
    expect([server.runId, server.replicationId]).not.toEqual(before);
    expect(send('INFO')).toContain(`run_id:${server.runId}\r\n`);
    nowMs += 5_000;
    server.restart({ lostMs: 9_000 });
    expect(server.size).toBe(0);
  });

  it('in a restart with its data is nothing, or what happened last', () => {
    send('SET', 'early', 'v');
    nowMs += 1_000;
    send('SET', 'late', 'v');
    server.restart({ lostMs: 0 });
    expect([...server.keys()]).toEqual(['early', 'late']);
    server.restart({ lostMs: 1 });
    expect([...server.keys()]).toEqual(['early']);
  });

  it('may be everything at once, or some keys, and comes back with an older replica', () => {
    send('SET', 'a', '1');
    send('SET', 'b', '2');
    nowMs += 100;
    server.lose((key) => key === 'a');
    expect([...server.keys()]).toEqual(['b']);
    nowMs += 100;
    send('FLUSHALL');
    expect(server.size).toBe(0);
    server.failover(50);
    expect([...server.keys()]).toEqual(['b']);
    server.failover(150);
    expect([...server.keys()].sort()).toEqual(['a', 'b']);
  });

  it('is no more than is remembered', () => {
    expect(() => server.failover(LOSS_MS + 1)).toThrow(RangeError);
  });
});

const key = fc.constantFrom('a', 'b', 'c');
const name = fc.constantFrom('x', 'y', 'z');
const amount = fc.nat({ max: 9 }).map(String);
const write: fc.Arbitrary<readonly string[]> = fc.oneof(
  fc.tuple(fc.constant('SET'), key, name),
  fc.tuple(fc.constant('SET'), key, name, fc.constant('PX'), fc.constantFrom('300', '3000')),
  fc.tuple(fc.constant('SET'), key, name, fc.constant('KEEPTTL')),
  fc.tuple(fc.constantFrom('DEL', 'PERSIST'), key),
  fc.tuple(fc.constant('PEXPIRE'), key, fc.constantFrom('0', '200', '5000')),
  fc.tuple(fc.constant('HSET'), key, name, amount),
  fc.tuple(fc.constantFrom('HDEL', 'SADD', 'SREM', 'ZREM'), key, name, name),
  fc.tuple(fc.constant('ZADD'), key, amount, name),
  fc.tuple(fc.constant('ZPOPMIN'), key),
  fc.tuple(fc.constant('ZREMRANGEBYRANK'), key, fc.constant('0'), fc.constantFrom('0', '-2')),
  fc.tuple(
    fc.constant('XADD'),
    key,
    fc.nat({ max: 99 }).map((n) => `5-${n}`),
    name,
    amount,
  ),
  fc.tuple(fc.constant('XADD'), key, fc.constant('*'), name, amount),
  fc.tuple(fc.constant('XADD'), key, fc.constant('MAXLEN'), amount, fc.constant('*'), name, amount),
  fc.tuple(
    fc.constant('XDEL'),
    key,
    fc.nat({ max: 99 }).map((n) => `5-${n}`),
  ),
  fc.tuple(fc.constant('RPUSH'), key, name, name),
  fc.tuple(fc.constant('LPOP'), key),
  fc.tuple(fc.constant('LREM'), key, fc.constant('1'), name),
  fc.tuple(fc.constant('HSETNX'), key, name, amount),
  fc.tuple(fc.constant('XTRIM'), key, fc.constant('MAXLEN'), fc.constant('~'), fc.constant('0')),
  fc.constant(['FLUSHALL']),
);

describe('a replica that takes over', () => {
  it('has exactly what there was when it was last in step', () => {
    const steps = fc.array(fc.tuple(write, fc.nat({ max: 400 })), { maxLength: 60, size: 'max' });
    const property = fc.property(steps, fc.nat(), fc.boolean(), (all, pick, isAtOnce) => {
      server.restart('empty');
      const moments: [atMs: number, had: Record<string, unknown>][] = [];
      for (const [words, passedMs] of all) {
        send(...words);
        moments.push([nowMs, contents()]);
        nowMs += 1 + passedMs;
      }
      const endMs = nowMs;
      const known = moments.filter(([atMs]) => endMs - atMs <= LOSS_MS);
      const from = pick % Math.max(1, known.length);
      // Back at once, or moment by moment.
      const back = known.slice(from, isAtOnce ? from + 1 : undefined).reverse();
      for (const [atMs, had] of back) {
        nowMs = endMs;
        server.failover(endMs - atMs);
        // Seen with the clock of that moment: what has ended since was there then.
        nowMs = atMs;
        expect(contents()).toEqual(had);
      }
      nowMs = endMs;
    });
    fc.assert(property, { numRuns: 300 });
  });
});
