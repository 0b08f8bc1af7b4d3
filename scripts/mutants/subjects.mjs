/** What is mutated, and which tests judge it. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** The scripts of leases, as an argument of the command. */
export const LUA = 'lua';
const LUA_ROOT = 'src/store/redis/lua';

/**
 * A folder or a file, and the unit tests that judge its mutants; the first that fits counts. Tests of other folders import
 * the same files, but only pass through them.
 */
export const JUDGES = [
  [
    'src/lease/pool',
    ['test/lease/pool*.test.ts', 'test/lease/pool/*.test.ts', 'test/lease/bad-input.test.ts'],
  ],
  ['src/lease', ['test/lease/**/*.test.ts', 'test/core/validity.test.ts']],
  ['src/core/validity.ts', ['test/core/validity.test.ts']],
  ['src/fleet', ['test/fleet/**/*.test.ts']],
  ['src/worker', ['test/worker/**/*.test.ts']],
  ['src/workflow', ['test/workflow/**/*.test.ts']],
  [LUA, ['test/store/redis-lease*.test.ts']],
];

/** No unit test loads these: tests with real processes and HTTP judge them. */
export const NOT_JUDGED = new Set(['src/lease/remote-leases.ts']);

/** The tests that judge a place; throws if none is known. */
export function judgesOf(place) {
  const found = JUDGES.find(([known]) => place === known || place.startsWith(`${known}/`));
  if (found === undefined) {
    const places = JUDGES.map(([known]) => known).join(', ');
    throw new Error(`no tests are known that judge ${place}. Known: ${places}`);
  }
  return found[1];
}

/** The TypeScript files of a folder without those of its folders, the file itself, or the Lua files of leases. */
export function filesOf(root, place) {
  if (place === LUA) return luaFiles(root);
  const path = join(root, place);
  if (statSync(path).isFile()) return [place];
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => `${place}/${entry.name}`)
    .sort();
}

/** The verbs of leases, and all that these need. */
function luaFiles(root) {
  const found = new Set();
  const add = (name) => {
    const file = `${LUA_ROOT}/${name}.lua`;
    if (found.has(file)) return;
    found.add(file);
    const [, needs = ''] = /^-- Needs +(.+)$/m.exec(readFileSync(join(root, file), 'utf8')) ?? [];
    for (const need of needs.split(/, */).filter(Boolean)) add(need);
  };
  for (const name of readdirSync(join(root, LUA_ROOT, 'lease'))) add(`lease/${name.slice(0, -4)}`);
  return [...found].sort();
}
