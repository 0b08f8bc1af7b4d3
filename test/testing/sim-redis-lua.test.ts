import { beforeEach, describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random.ts';
import { scripts } from '../../src/store/redis/scripts.ts';
import { compileLua } from '../../testing/sim-redis/lua.ts';
import { type SimClient, SimRedis } from '../../testing/sim-redis/server.ts';
import { answerOf, LUA_EXAMPLES } from '../support/lua-examples.ts';

let server: SimRedis;
let client: SimClient;
beforeEach(() => {
  const at = Date.UTC(2026, 0, 1);
  server = new SimRedis({ wallMs: () => at, nowMs: () => at, random: seededRandom(1) });
  client = server.connect(() => {});
});

function run(source: string, ...args: string[]): unknown {
  return answerOf(server.execute(client, ['EVAL', source, '0', ...args]));
}

describe('Lua, translated', () => {
  it('gives what a Redis gives', () => {
    const given = LUA_EXAMPLES.map(([source]) => [source, run(source)]);
    expect(given).toEqual(LUA_EXAMPLES);
  });

  it.each([
    ['repeat until true', 'RepeatStatement, line 1'],
    ['return\n2 ^ 3', '^, line 2'],
    ['x = 1', 'a global that is set, line 1'],
    ['return x', "the global 'x' as a value, line 1"],
    ['return string', "the global 'string' as a value, line 1"],
    ['return string.upper("a")', 'string.upper, line 1'],
    ['return cjson.encode({})', 'cjson.encode, line 1'],
    ['for k in pairs({}) do end', 'a for over anything but ipairs, line 1'],
    ['for i = 3, 1, -1 do end', 'a step that is no positive number, line 1'],
    ['local function f(...) end', 'a function with ..., line 1'],
    ['function f() end', 'a global function, line 1'],
    ['return ("x"):rep(2)', 'a method, line 1'],
    ['return {[1] = 2}', 'TableKey, line 1'],
    ['return string.match("a", "[a-z]")', "the pattern '[a-z]'"],
    ['return string.match("a", "%b()")', "the pattern '%b()'"],
    ['return string.match("a", "()a")', "the pattern '()a'"],
    ['return string.format("%5.2f", 1)', "'%5.2f' of string.format, line 1"],
    ['return string.find("a", "a")', 'string.find but of plain text from 1 on, line 1'],
    ['local t = {} t[3] = 1', 'a key 3 in a table, line 1'],
    ['local t = {1, 2} t[1] = nil', 'a hole in a table, line 1'],
    ['return redis.call("LPUSH", "x", "y")', 'LPUSH in a script'],
    ['return redis.call("SET", "x", "y", "EX", 5)', 'SET … EX'],
  ])('refuses what our scripts do not use: %s', (source, what) => {
    expect(() => run(source)).toThrow(`not simulated: ${what}`);
  });

  it('says in which script that is', () => {
    const before = '-- before: something that others need\n';
    expect(() => run(`${before}-- shout: says it aloud\nreturn string.upper('x')`)).toThrow(
      'not simulated: string.upper, line 3, in the script shout',
    );
    expect(() => run(`${before}-- crack: makes a hole\nlocal t = {}\nt[2] = 1`)).toThrow(
      'not simulated: a key 2 in a table, line 4, in the script crack',
    );
  });

  it('refuses what is no Lua', () => {
    expect(() => run('return return')).toThrow();
  });

  it('translates a script once', () => {
    for (const { source } of Object.values(scripts))
      expect(compileLua(source)).toBe(compileLua(source));
  });
});
