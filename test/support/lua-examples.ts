/**
 * What small scripts answer: Lua as a Redis has it, by example. A real one is asked too, so these are facts and not
 * opinions. An error is without the names of variables, and its line stands at its end.
 */
export type Answer = string | number | null | { readonly error: string } | readonly Answer[];

export const LUA_EXAMPLES: readonly (readonly [source: string, answer: Answer])[] = [
  ['return nil', null],
  ['return false', null],
  ['return true', 1],
  ['return 3.99', 3],
  ['return -3.99', -3],
  ["return 'x'", 'x'],
  ['return {}', []],
  ['return {1, 2, nil, 4}', [1, 2]],
  ["return {1, false, true, 'a', {2, {3}}}", [1, null, 1, 'a', [2, [3]]]],
  ["return {ok = 'FINE'}", 'FINE'],
  ["return {err = 'BAD thing'}", { error: 'BAD thing' }],
  ["return {1, {err = 'BAD thing'}, {ok = 'FINE'}}", [1, { error: 'BAD thing' }, 'FINE']],
  ["return redis.error_reply('BAD thing')", { error: 'BAD thing' }],
  ["return redis.error_reply('-BAD thing')", { error: 'BAD thing' }],
  ["return redis.status_reply('FINE')", 'FINE'],
  ['return 1, 2, 3', 1],
  ['return', null],
  ['local a = 1', null],
  ["return 0 and 'zero is true'", 'zero is true'],
  ["return '' and 'so is nothing'", 'so is nothing'],
  ['return nil and 1', null],
  ["return false or 'other'", 'other'],
  ['return nil == false', null],
  ['return not nil', 1],
  ['return {not 0}', [null]],
  ["return {1 == '1', 1 == 1, 'a' ~= 'b'}", [null, 1, 1]],
  ["return 1 .. ''", '1'],
  [
    "return 1.5 .. '|' .. 1e15 .. '|' .. 123456789012345 .. '|' .. 12345678901234 .. '|' .. 0.1 .. '|' .. 1e100 .. '|' .. -0.0001 .. '|' .. 1e-5 .. '|' .. 1/3",
    '1.5|1e+15|1.2345678901234e+14|12345678901234|0.1|1e+100|-0.0001|1e-05|0.33333333333333',
  ],
  ["return '10' + 5", 15],
  ["return '0x10' * 2", 32],
  ["return ' 7 ' - 1", 6],
  [
    "return 'x' + 1",
    { error: 'ERR user_script:1: attempt to perform arithmetic on a string value on line 1' },
  ],
  [
    'return nil + 1',
    { error: 'ERR user_script:1: attempt to perform arithmetic on a nil value on line 1' },
  ],
  [
    "return {} .. 'a'",
    { error: 'ERR user_script:1: attempt to concatenate a table value on line 1' },
  ],
  [
    "return 'a' .. nil",
    { error: 'ERR user_script:1: attempt to concatenate a nil value on line 1' },
  ],
  [
    "return 1 < 'a'",
    { error: 'ERR user_script:1: attempt to compare number with string on line 1' },
  ],
  ['return {} < {}', { error: 'ERR user_script:1: attempt to compare two table values on line 1' }],
  ['return nil < 1', { error: 'ERR user_script:1: attempt to compare nil with number on line 1' }],
  ["return 'a' < 'b' and 2 < 10 and not ('2' < '10')", 1],
  ["return 7 % 3 .. ',' .. -7 % 3 .. ',' .. 7 % -3 .. ',' .. 5.5 % 2", '1,2,-2,1.5'],
  ["return 7 / 2 .. ''", '3.5'],
  ["return 1 / 0 .. ',' .. -1 / 0", 'inf,-inf'],
  ["return -2 .. ''", '-2'],
  ['return 2 >= 2 and 3 > 2 and 2 <= 2', 1],
  [
    "return 3 > '2'",
    { error: 'ERR user_script:1: attempt to compare string with number on line 1' },
  ],
  ['return tonumber(nil) == nil', 1],
  [
    "return {tonumber('12'), tonumber('1e3'), tonumber('0x1f'), tonumber(' 8 '), tonumber('.5') * 2, tonumber('5.') , tonumber(9)}",
    [12, 1000, 31, 8, 1, 5, 9],
  ],
  [
    "return {tonumber('') == nil, tonumber('1x') == nil, tonumber('x') == nil, tonumber('1 2') == nil, tonumber({}) == nil, tonumber(true) == nil, tonumber('--1') == nil, tonumber('1e') == nil}",
    [1, 1, 1, 1, 1, 1, 1, 1],
  ],
  [
    'return tonumber()',
    { error: "ERR user_script:1: bad argument #1 to 'tonumber' (value expected) on line 1" },
  ],
  ["return tonumber('inf') == 1/0", 1],
  ["return tonumber('12abc') or 'none'", 'none'],
  [
    "return type(nil) .. type(1) .. type('') .. type({}) .. type(true) .. type(function() end)",
    'nilnumberstringtablebooleanfunction',
  ],
  [
    'return type()',
    { error: "ERR user_script:1: bad argument #1 to 'type' (value expected) on line 1" },
  ],
  ['return tostring(12.0) .. tostring(nil) .. tostring(false)', '12nilfalse'],
  ["return #'abc' .. #'é' .. #''", '320'],
  [
    'return #{} .. #{1, 2} .. #{1, nil, 3} .. #{1, nil, 3, nil} .. #{nil}  .. #{nil, nil, 3}',
    '023103',
  ],
  ['return #nil', { error: 'ERR user_script:1: attempt to get length of a nil value on line 1' }],
  ["local t = {} t[#t + 1] = 'a' t[#t + 1] = 'b' return t", ['a', 'b']],
  ["local t = {1, 2} t[2] = 'x' return t", [1, 'x']],
  ["local t = {} t.a = 1 t.b = 'x' return {t.a, t.b, t.c == nil}", [1, 'x', 1]],
  ['local t = {1} t[2] = nil return #t', 1],
  ['local t return t.x', { error: 'ERR user_script:1: attempt to index a nil value on line 1' }],
  ["return ('x').y == nil", 1],
  ['local t = {{1, 2}, {3}} return t[2][1] + t[1][2]', 5],
  ['return KEYS[1] == nil and ARGV[1.5] == nil and ARGV[0] == nil and ARGV[-1] == nil', 1],
  ['local f f()', { error: 'ERR user_script:1: attempt to call a nil value on line 1' }],
  [
    'local t = {} t.x.y = 1',
    { error: 'ERR user_script:1: attempt to index a nil value on line 1' },
  ],
  [
    "local t = 'x' t.y = 1",
    { error: 'ERR user_script:1: attempt to index a string value on line 1' },
  ],
  ['local a, b, c = 1, 2 return {a, b, c == nil}', [1, 2, 1]],
  ['local a, b = 1, 2 a, b = b, a return {a, b}', [2, 1]],
  ['local function f() return 1, 2, 3 end local a, b = f() return {a, b}', [1, 2]],
  [
    'local function f() return 1, 2, 3 end local a, b, c, d = 0, f() return {a, b, c, d}',
    [0, 1, 2, 3],
  ],
  ['local function f() return 1, 2 end return {f(), f()}', [1, 1, 2]],
  ['local function f() return 1, 2 end return {(f())}', [1]],
  ['local function f() end return {f(), 5}', []],
  ['local function f() end return {5, f()}', [5]],
  [
    'local function f() end return tonumber(f())',
    { error: "ERR user_script:1: bad argument #1 to 'tonumber' (value expected) on line 1" },
  ],
  ["local function f() return 1, 2 end local a = {f(), 'x'} return a", [1, 'x']],
  ['local function f(a, b) return b == nil and a end return f(1)', 1],
  ['local function f(a) return a end return f(1, 2)', 1],
  ['local function f() return 1, 2 end return f()', 1],
  ['local function f() return 1, 2 end return f() + f()', 2],
  ['local function f(n) if n == 0 then return 0 end return n + f(n - 1) end return f(10)', 55],
  ['local x = 1 do local x = 2 end return x', 1],
  ['local x = 1 local x = x + 1 return x', 2],
  [
    'local t = {} for i = 1, 3 do t[i] = function() return i end end return {t[1](), t[2](), t[3]()}',
    [1, 2, 3],
  ],
  ['local n = 0 for i = 1, 10, 3 do n = n + i end return n', 22],
  ['local n = 0 for i = 5, 1 do n = 1 end return n', 0],
  [
    "for i = 'x', 2 do end",
    { error: "ERR user_script:1: 'for' initial value must be a number on line 1" },
  ],
  ['for i = 1, nil do end', { error: "ERR user_script:1: 'for' limit must be a number on line 1" }],
  ["local n = 0 for i = '1', '3' do n = n + i end return n", 6],
  ['local n = 0 for i = 1, 3 do i = i * 2 n = n + i end return n', 12],
  ["local s = '' for i, v in ipairs({'a', 'b', nil, 'd'}) do s = s .. i .. v end return s", '1a2b'],
  [
    'for i in ipairs(nil) do end',
    { error: "ERR user_script:1: bad argument #1 to 'ipairs' (table expected, got nil) on line 1" },
  ],
  ['local n = 0 while n < 5 do n = n + 1 if n == 3 then break end end return n', 3],
  ['if nil then return 1 elseif 0 then return 2 else return 3 end', 2],
  ["local a = nil if a == nil and (a or true) then return 'both' end", 'both'],
  ["local function f() return nil end return f() or 'none'", 'none'],
  [
    "return string.format('%.0f|%.0f|%.0f|%.0f|%.0f', 0.5, 1.5, 2.5, -0.5, 1790000000000000)",
    '0|2|2|-0|1790000000000000',
  ],
  ["return string.format('%d|%d|%s|%%', 3.7, -3.7, 'x')", '3|-3|x|%'],
  ["return string.format('%.0f', '12')", '12'],
  ["return string.format('%s', 12)", '12'],
  [
    "return string.format('%.0f')",
    { error: "ERR user_script:1: bad argument #2 to 'format' (no value) on line 1" },
  ],
  [
    "return string.format('%.0f', 'x')",
    {
      error:
        "ERR user_script:1: bad argument #2 to 'format' (number expected, got string) on line 1",
    },
  ],
  ["return string.format('%.0f-%.0f', 1, 2)", '1-2'],
  [
    "return string.sub('hello', 2, 3) .. string.sub('hello', -2) .. string.sub('hello', 9) .. string.sub('hello', -9, 1) .. string.sub('hello', 2, -2) .. string.sub('hello', 4, 2)",
    'ellohell',
  ],
  ["return string.sub('aé', 1, 1)", 'a'],
  ["return string.sub('a+', -1) == '+'", 1],
  [
    'return string.sub(nil, 1)',
    { error: "ERR user_script:1: bad argument #1 to 'sub' (string expected, got nil) on line 1" },
  ],
  ['return string.sub(123, 2)', '23'],
  ["return {string.find('a{b', '{', 1, true)}", [2, 2]],
  ["return {string.find('éa', 'a', 1, true)}", [3, 3]],
  ["return string.find('ab', '{', 1, true)", null],
  ["return {string.match('12-34', '^(%d+)-(%d+)$')}", ['12', '34']],
  ["return string.match('12a', '^%d+$')", null],
  ["return string.match('12!+', '^(%d+)!?%+?$')", '12'],
  ["return string.match('12+!', '^(%d+)!?%+?$')", null],
  ["return {string.match('a b  c', '^(%S+) (%S+)')}", ['a', 'b']],
  ["return string.match('ttl:x:y\\nz', '^ttl:(.+)$')", 'x:y\nz'],
  ["return string.match('a!b', '!')", '!'],
  ["return string.match('é', '^..$')", 'é'],
  ["return string.match('aaa', 'a-b')", null],
  ["return string.match('xaab', 'a-b')", 'aab'],
  [
    "return string.match(nil, 'x')",
    { error: "ERR user_script:1: bad argument #1 to 'match' (string expected, got nil) on line 1" },
  ],
  ["return string.match('a.b', '%.')", '.'],
  ["return string.match('\\194\\160x', '^%S+')", ' x'],
  ["return string.match('a-b', '^(%a)-(%a)$')", 'a'],
  [
    'return {math.max(1, 3, 2), math.min(4, 2, 8), math.floor(2.7), math.floor(-2.2)}',
    [3, 2, 2, -3],
  ],
  ["return math.max('3', 1)", 3],
  [
    'return math.max(1, nil)',
    { error: "ERR user_script:1: bad argument #2 to 'max' (number expected, got nil) on line 1" },
  ],
  [
    'return math.max()',
    {
      error:
        "ERR user_script:1: bad argument #1 to 'max' (number expected, got no value) on line 1",
    },
  ],
  [
    "return math.floor('x')",
    {
      error:
        "ERR user_script:1: bad argument #1 to 'floor' (number expected, got string) on line 1",
    },
  ],
  ['local t = {3, 1, 2} table.sort(t) return t', [1, 2, 3]],
  [
    "local t = {{2, 'b'}, {1, 'a'}} table.sort(t, function(a, b) return a[1] < b[1] end) return {t[1][2], t[2][2]}",
    ['a', 'b'],
  ],
  [
    "local t = {} for i = 1, 60 do t[i] = {i * 7 % 5, i} end table.sort(t, function(a, b) return a[1] < b[1] end) local s = '' for _, e in ipairs(t) do s = s .. e[2] .. ' ' end return s",
    '60 35 25 20 15 40 50 45 55 10 30 5 43 23 8 33 28 38 3 48 18 53 58 13 11 6 56 51 41 46 1 36 31 16 26 21 44 24 4 54 59 19 34 14 9 49 39 29 2 57 52 22 47 27 37 17 7 32 42 12 ',
  ],
  [
    'local t = {} for i = 1, 30 do t[i] = i % 3 end table.sort(t, function(a, b) return a <= b end) return t',
    { error: 'ERR user_script:1: attempt to compare number with nil on line 1' },
  ],
  [
    'table.sort(nil)',
    { error: "ERR user_script:1: bad argument #1 to 'sort' (table expected, got nil) on line 1" },
  ],
  ["return {select(2, 'a', 'b', 'c')}", ['b', 'c']],
  ["return select('#', 1, nil, 3)", 3],
  ['return {unpack({1, 2, 3})}', [1, 2, 3]],
  ["return redis.sha1hex('')", 'da39a3ee5e6b4b0d3255bfef95601890afd80709'],
  ["return redis.sha1hex('é')", 'bf15be717ac1b080b4f1c456692825891ff5073d'],
  ['return redis.sha1hex()', { error: 'ERR wrong number of arguments on line 1' }],
  ['return redis.sha1hex(12)', '7b52009b64fd0a2a49e6d8a939753077792b0554'],
  ["return redis.call('SET', 'x', 1.5)", 'OK'],
  ["local r = redis.call('SET', 'x', 'v') return {type(r), r.ok}", ['table', 'OK']],
  ["return type(redis.call('GET', 'none'))", 'boolean'],
  [
    "return redis.pcall('HGET', 'x', 'f')",
    { error: 'WRONGTYPE Operation against a key holding the wrong kind of value' },
  ],
  [
    "redis.call('SET', 'x', 'v')\nreturn redis.call('HGET', 'x', 'f')",
    { error: 'WRONGTYPE Operation against a key holding the wrong kind of value on line 2' },
  ],
  [
    "redis.call('SET', 'x', 'v') return {redis.pcall('HGET', 'x', 'f').err}",
    ['WRONGTYPE Operation against a key holding the wrong kind of value'],
  ],
  [
    "return redis.call('GET')",
    { error: 'ERR Wrong number of args calling Redis command from script on line 1' },
  ],
  [
    'return redis.call()',
    { error: 'ERR Please specify at least one argument for this redis lib call on line 1' },
  ],
  [
    "return redis.call('GET', nil)",
    { error: 'ERR Lua redis lib command arguments must be strings or integers on line 1' },
  ],
  [
    "return redis.call('GET', {})",
    { error: 'ERR Lua redis lib command arguments must be strings or integers on line 1' },
  ],
  [
    "return redis.call('GET', true)",
    { error: 'ERR Lua redis lib command arguments must be strings or integers on line 1' },
  ],
  [
    "return redis.call('EVAL', 'return 1', 0)",
    { error: 'ERR This Redis command is not allowed from script on line 1' },
  ],
  [
    "return redis.pcall('SUBSCRIBE', 'x')",
    { error: 'ERR This Redis command is not allowed from script' },
  ],
  [
    "redis.call('SET', 'n', 12345678901234567890) return redis.call('GET', 'n')",
    '1.2345678901234567e+19',
  ],
  ["redis.call('SET', 'n', 0.1) return redis.call('GET', 'n')", '0.10000000000000001'],
  ["redis.call('SET', 'n', -5) return redis.call('GET', 'n')", '-5'],
  [
    "redis.call('DEL', 'z') redis.call('ZADD', 'z', 1.5, 'a', 2, 'b') return redis.call('ZRANGE', 'z', 0, -1, 'WITHSCORES')",
    ['a', '1.5', 'b', '2'],
  ],
  ["return redis.call('set', 'x', 'y')", 'OK'],
  ["return redis.call('PTTL', 'none')", -2],
  ["return {redis.call('MGET', 'none', 'x')}", [[null, 'y']]],
  ["return redis.error_reply('x', 'y')", { error: 'ERR wrong number or type of arguments' }],
  ["return 'é😀'", 'é😀'],
  ['return ARGV[1]', null],
  ['return "a\\"b\\\\c\\n"', 'a"b\\c\n'],
  ['return [[long\ntext]]', 'long\ntext'],
];

/** A reply, as the examples have it. */
export function answerOf(reply: unknown): unknown {
  if (Array.isArray(reply)) return reply.map(answerOf);
  if (!(reply instanceof Error)) return reply;
  const plain = reply.message.replace(
    /(?:local|global|field|upvalue|method) '[^']*' \((a \w+ value)\)/g,
    '$1',
  );
  return { error: plain.replace(/ script: [\da-f]{40}, on @user_script:(\d+)\.$/, ' on line $1') };
}
