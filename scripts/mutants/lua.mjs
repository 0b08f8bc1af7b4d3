/**
 * Mutants of Lua scripts: changes of their text, made by the places of their syntax. The simulated server translates a script
 * when it is shown it; a copy of it that is made here translates the script with the mutant that is on.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import luaparse from 'luaparse';
import { isText } from './texts.mjs';

const TRANSLATOR = 'testing/sim-redis/lua.ts';
const PARSER = { luaVersion: '5.1', encodingMode: 'pseudo-latin1', ranges: true, locations: true };

/** What an operator becomes. */
const OPERATORS = new Map([
  ['<', ['<=', '>=']],
  ['<=', ['<', '>']],
  ['>', ['>=', '<=']],
  ['>=', ['>', '<']],
  ['==', ['~=']],
  ['~=', ['==']],
  ['+', ['-']],
  ['-', ['+']],
  ['*', ['/']],
  ['/', ['*']],
  ['%', ['*']],
  ['and', ['or']],
  ['or', ['and']],
]);

export function mutateLua(root, files) {
  const mutants = [];
  const texts = {};
  for (const file of files) {
    const text = readFileSync(join(root, file), 'latin1');
    texts[file] = text;
    for (const change of changesOf(text)) {
      const id = String(mutants.length);
      if (parses(applied(text, change)))
        mutants.push({ id, file, ...factsOf(text, change), change });
    }
  }
  const translator = readFileSync(join(root, TRANSLATOR), 'utf8');
  return { sources: [[TRANSLATOR, switched(translator, texts, mutants)]], mutants };
}

/** The translator, with `compileLua` around what it was. */
function switched(translator, texts, mutants) {
  const marker = 'export function compileLua(source: string): CompiledScript {';
  if (!translator.includes(marker)) throw new Error(`${TRANSLATOR} has no compileLua any more`);
  const edits = mutants.map(({ id, file, change }) => ({ id, file, change }));
  return `${translator.replace(marker, marker.replace('export function compileLua', 'function translated'))}
const TEXTS = ${JSON.stringify(texts)} as Record<string, string>;
const EDITS = ${JSON.stringify(edits)} as { id: string; file: string; change: [number, number, string] }[];
const world = ((globalThis as any).__stryker__ ??= {});

export function compileLua(source: string): CompiledScript {
  const plain = translated(source);
  const here = new Map(EDITS.filter(({ file }) => source.includes(TEXTS[file] ?? '')).map((edit) => [edit.id, edit]));
  return (redis, keys, args) => {
    const cover = (world.mutantCoverage ??= { static: {}, perTest: {} });
    const counts = world.currentTestId === undefined ? cover.static : (cover.perTest[world.currentTestId] ??= {});
    for (const id of here.keys()) counts[id] = (counts[id] ?? 0) + 1;
    const edit = here.get(world.activeMutant ?? process.env.__STRYKER_ACTIVE_MUTANT__);
    if (edit === undefined) return plain(redis, keys, args);
    const [from, to, becomes] = edit.change;
    const text = TEXTS[edit.file] ?? '';
    const mutated = text.slice(0, from) + becomes + text.slice(to);
    return translated(source.split(text).join(mutated))(limited(redis), keys, args);
  };
}

/** A server that ends a loop without end. */
function limited(redis: ScriptHost): ScriptHost {
  let calls = 0;
  const counted = <A extends unknown[]>(run: (...args: A) => LuaValue) => (...args: A) => {
    if (++calls > 1_000) throw new Error('loops');
    return run(...args);
  };
  return {
    call: counted((...args) => redis.call(...args)),
    pcall: counted((...args) => redis.pcall(...args)),
    errorReply: counted((...args) => redis.errorReply(...args)),
    statusReply: counted((...args) => redis.statusReply(...args)),
    sha1hex: counted((...args) => redis.sha1hex(...args)),
  };
}
`;
}

/** Every change of a text: from where, to where, and what stands there then. */
function changesOf(text) {
  const changes = [];
  const add = (from, to, becomes) => changes.push([from, to, becomes]);
  walk(luaparse.parse(text, PARSER), (node, parent) => {
    const [from, to] = node.range ?? [];
    const own = (part) => text.slice(...part.range);
    switch (node.type) {
      case 'BinaryExpression':
      case 'LogicalExpression': {
        const at = text.indexOf(node.operator, node.left.range[1]);
        const others = OPERATORS.get(node.operator) ?? [];
        for (const other of others) add(at, at + node.operator.length, other);
        return;
      }
      case 'UnaryExpression':
        if (node.operator === 'not') add(from, to, own(node.argument));
        return;
      case 'IfClause':
      case 'ElseifClause':
      case 'WhileStatement':
        for (const value of ['true', 'false']) add(...node.condition.range, value);
        return;
      case 'CallStatement':
      case 'AssignmentStatement':
      case 'ReturnStatement':
      case 'BreakStatement':
        add(from, to, '');
        return;
      case 'CallExpression': {
        const [first, second] = node.arguments;
        if (second === undefined || isCommand(node)) return;
        add(first.range[0], second.range[1], `${own(second)}, ${own(first)}`);
        return;
      }
      case 'BooleanLiteral':
        add(from, to, String(!node.value));
        return;
      case 'NumericLiteral':
        add(from, to, String(node.value + 1));
        return;
      case 'StringLiteral':
        if (isNameOfCommand(node, parent) || isText({ type: node.type, value: node.raw })) return;
        add(from, to, node.raw.length === 2 ? "'mutant'" : "''");
    }
  });
  return changes.filter(([from, to, becomes]) => text.slice(from, to) !== becomes);
}

function isCommand({ base }) {
  return base.type === 'MemberExpression' && base.base.name === 'redis';
}

/** A command that is not one fails every test: that shows nothing. */
function isNameOfCommand(node, parent) {
  return parent?.type === 'CallExpression' && isCommand(parent) && parent.arguments[0] === node;
}

function walk(node, visit, parent) {
  if (node === null || typeof node !== 'object') return;
  if (Array.isArray(node)) {
    for (const one of node) walk(one, visit, parent);
    return;
  }
  if (typeof node.type === 'string') visit(node, parent);
  const next = typeof node.type === 'string' ? node : parent;
  for (const [name, part] of Object.entries(node)) {
    if (name !== 'range' && name !== 'loc') walk(part, visit, next);
  }
}

function applied(text, [from, to, becomes]) {
  return text.slice(0, from) + becomes + text.slice(to);
}

function parses(text) {
  try {
    luaparse.parse(text, PARSER);
    return true;
  } catch {
    return false;
  }
}

function factsOf(text, [from, to, becomes]) {
  const start = text.lastIndexOf('\n', from - 1) + 1;
  const [code] = text.slice(start).split('\n');
  const flat = (part) => part.replace(/\s+/g, ' ').trim();
  return {
    line: text.slice(0, from).split('\n').length,
    kind: 'Lua',
    code: flat(code),
    was: flat(text.slice(from, to)),
    becomes: flat(becomes),
  };
}
