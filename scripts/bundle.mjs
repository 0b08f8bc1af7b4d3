/** Bundles what is published: few files, names and comments kept, each class once for all entries. */
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, posix, relative } from 'node:path';
import { rolldown } from 'rolldown';

/** What users import, and the command. */
const ENTRIES = [
  'index',
  'client/index',
  'nest/index',
  'node-cron/index',
  'redlock/index',
  'redlock/redlock4',
  'server/index',
  'testing/index',
];
const COMMAND = 'cli/bin';
const COMMAND_MAIN = 'cli/main';
const COMMAND_MAIN_CHUNK = 'chunks/main';
/**
 * The command's first file, `holdfast run`, and the supervisor are CommonJS and share nothing with the rest: so Node starts
 * them with a few files, and without its loader of modules. The supervisor lies beside the command.
 */
const RUN_CHUNKS = [
  ['supervisor-process', ['worker/supervisor/supervisor-process']],
  ['run', ['cli/main-run', 'cli/commands/run/run', 'opening']],
  ['run-redis', ['store/redis/redis-store']],
  ['run-sqlite', ['store/sqlite/sqlite-store']],
  ['run-postgres', ['store/postgres/postgres-store']],
];
/** Names stay, so that a stack trace says where. */
const ONE_LINE = { compress: false, mangle: false, codegen: { removeWhitespace: true } };
const SUPERVISOR = 'worker/supervisor/supervisor';
const SUPERVISOR_BUNDLE = 'cli/supervisor';
/** All that one of these loads is one file, without what an earlier one has. */
const CHUNKS = [
  ['client', 'client/index'],
  ['lease-runtime', 'opening'],
  ['holdfast', 'index'],
  ['redis-store', 'store/redis/redis-store'],
  ['sqlite-store', 'store/sqlite/sqlite-store'],
  ['postgres-store', 'store/postgres/postgres-store'],
  ['config-schema', 'config-schema'],
  ['redlock', 'redlock/redlock'],
  ['server', 'server/index'],
  ['testing', 'testing/index'],
  ['command', COMMAND_MAIN],
];
/** Packages whose objects no user ever meets: they come along, with their licences. */
const BUNDLED = ['commander', 'prom-client'];
const IMPORT = /^(?:import|export)\b(?:[^;'"()]*?\bfrom)?\s*['"](\.[^'"]+\.js)['"]/gm;
const HERE = 'holdfast-module:';

/** Bundles the modules in `from` into `to`. */
export async function bundle({ from, to, version }) {
  const at = (name) => join(from, `${name}.js`);
  const sets = new Map(CHUNKS.map(([name, entry]) => [name, reachable(at(entry), IMPORT)]));
  // `holdfast run` loads no more than leases, and no store loads another for what they share.
  const command = [at('cli/commands/run/run'), at(COMMAND_MAIN)].map((id) => reachable(id, IMPORT));
  const stores = ['redis-store', 'sqlite-store', 'postgres-store'].map((name) => sets.get(name));
  const isShared = (id) =>
    [...command, ...stores].some((set) => set.has(id) && sets.get('holdfast').has(id)) ||
    stores.filter((set) => set.has(id)).length > 1;
  for (const id of [...command, ...stores].flatMap((set) => [...set]))
    if (isShared(id)) sets.get('lease-runtime').add(id);
  // The command loads no server before it needs one.
  const shared = [...sets.get('server')].filter((id) => sets.get('command').has(id));
  sets.set('shared', new Set(shared));
  const names = ['client', 'lease-runtime', 'holdfast', 'shared', ...sets.keys()];
  const groups = [...new Set(names)].map((name, i, all) => {
    return { name, test: (id) => sets.get(name).has(id), priority: all.length - i };
  });
  const licences = new Map();
  const plugins = [ownPlaces(from, version), collectLicences(licences)];
  const input = Object.fromEntries(ENTRIES.map((name) => [name, at(name)]));
  input[COMMAND_MAIN_CHUNK] = at(COMMAND_MAIN);
  await write({ from, input, plugins, to, codeSplitting: { groups } });
  const own = { from, plugins: [elsewhere(from), ...plugins], to, format: 'cjs' };
  await write({
    ...own,
    input: { [COMMAND]: at(COMMAND) },
    codeSplitting: { groups: runGroups(at) },
  });
  await write({ ...own, input: { [SUPERVISOR_BUNDLE]: at(SUPERVISOR) }, codeSplitting: false });
  writeFileSync(join(to, dirname(COMMAND), 'package.json'), '{ "type": "commonjs" }\n');
  chmodSync(join(to, `${COMMAND}.js`), 0o755);
  copyDeclarations(from, to);
  copyOthers(from, to);
  writeFileSync(join(to, 'LICENSES.txt'), [...licences.values()].join('\n\n'));
}

/** What `holdfast run` needs in any case is one file, and each store another. */
function runGroups(at) {
  const sets = RUN_CHUNKS.map(([name, entries]) => {
    const found = new Set();
    for (const entry of entries) reachable(at(entry), IMPORT, found);
    return [name, found];
  });
  const [, [, run], ...stores] = sets;
  for (const id of stores.flatMap(([, set]) => [...set]))
    if (stores.filter(([, set]) => set.has(id)).length > 1) run.add(id);
  return sets.map(([name, set], i) => {
    return { name, test: (id) => set.has(id), priority: sets.length - i };
  });
}

async function write({ from, input, plugins, to, codeSplitting, format = 'esm' }) {
  const isBundled = (id) => BUNDLED.includes(id);
  const build = await rolldown({
    input,
    plugins,
    cwd: from,
    platform: 'node',
    external: (id, importer) =>
      !/^[./]/.test(id) && !isBundled(id) && !/node_modules/.test(importer ?? ''),
    // A bundle that is not what it should be is no bundle.
    onLog: (_level, { code, message }) => {
      // Two commands of one file: where each is loaded costs nothing. A slow machine is no fault either.
      if (!['INEFFECTIVE_DYNAMIC_IMPORT', 'PLUGIN_TIMINGS'].includes(code))
        throw new Error(message);
    },
    treeshake: { moduleSideEffects: false },
  });
  await build.write({
    dir: to,
    format,
    codeSplitting,
    entryFileNames: '[name].js',
    chunkFileNames: format === 'cjs' ? `${dirname(COMMAND)}/[name].js` : 'chunks/[name].js',
    minify: format === 'cjs' && ONE_LINE,
    minifyInternalExports: false,
    keepNames: true,
    comments: { legal: true, annotation: true, jsdoc: format === 'esm' },
  });
  await build.close();
}

/** The files that one loads, over the imports that the expression finds. */
function reachable(file, expression, found = new Set()) {
  if (found.has(file) || !existsSync(file)) return found;
  found.add(file);
  for (const [, path] of readFileSync(file, 'utf8').matchAll(expression))
    reachable(join(dirname(file), path), expression, found);
  return found;
}

/** What the bundles in CommonJS name, and do not have. */
function elsewhere(from) {
  return {
    name: 'elsewhere',
    resolveId: (source, importer) =>
      source === './main.js' && importer === join(from, `${COMMAND}.js`)
        ? { id: `../${COMMAND_MAIN_CHUNK}.js`, external: true }
        : null,
  };
}

/** Modules find files beside them. In a chunk, each still finds those of its own folder. */
function ownPlaces(from, version) {
  return {
    name: 'own-places',
    transform(code, id) {
      if (id === join(from, 'core/version.js'))
        return `export function packageVersion() { return '${version}'; }`;
      if (!id.startsWith(from) || !code.includes('import.meta.url')) return null;
      const own = relative(from, id);
      const placed = code.replaceAll('import.meta.url', `'${HERE}${own}'`);
      return placed
        .replace("'./supervisor.js'", `'../../${SUPERVISOR_BUNDLE}.js'`)
        .replace('files = new Map()', () => `files = new Map(${luaFiles(from)})`);
    },
    renderChunk(code, { fileName }, { format }) {
      const quoted = new RegExp(`['"]${HERE}([^'"]+)['"]`, 'g');
      const here =
        format === 'cjs' ? "require('node:url').pathToFileURL(__filename)" : 'import.meta.url';
      return code.replace(quoted, (_, own) => {
        const path = posix.relative(posix.dirname(fileName), own);
        return `new URL('${path}', ${here})`;
      });
    },
  };
}

/** All Lua files by their names, as a literal: so a process reads no file, and never one of a later version. */
function luaFiles(from) {
  const folder = join(from, 'store/redis/lua');
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const names = paths.filter((path) => path.endsWith('.lua')).map((path) => path.slice(0, -4));
  return JSON.stringify(
    names.map((name) => [name, readFileSync(join(folder, `${name}.lua`), 'utf8')]),
  );
}

/** The licence of each package that something is taken from. */
function collectLicences(licences) {
  return {
    name: 'licences',
    load(id) {
      const [folder] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id) ?? [];
      if (folder === undefined || licences.has(folder)) return;
      const { name, version, license } = createRequire(import.meta.url)(`${folder}/package.json`);
      const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
      const text = file === undefined ? license : readFileSync(join(folder, file), 'utf8').trim();
      licences.set(folder, `${name} ${version}\n\n${text}`);
    },
  };
}

/** Those that an entry leads to. */
function copyDeclarations(from, to) {
  const found = new Set();
  const expression = /(?:from |import\()['"](\.[^'"]+?)\.[jt]s['"]/g;
  const visit = (path) => {
    const file = `${path}.d.ts`;
    if (found.has(file)) return;
    found.add(file);
    for (const [, next] of readFileSync(file, 'utf8').matchAll(expression))
      visit(join(dirname(file), next));
  };
  for (const entry of ENTRIES) visit(join(from, entry));
  for (const file of found) copy(file, join(to, relative(from, file)));
}

/** SQL and the page. */
function copyOthers(from, to) {
  for (const path of readdirSync(from, { recursive: true, encoding: 'utf8' }))
    if (/\.sql$|^dashboard\/.*\.\w+$/.test(path) && !path.startsWith('lib/'))
      copy(join(from, path), join(to, path));
}

function copy(file, target) {
  mkdirSync(dirname(target), { recursive: true });
  cpSync(file, target);
}
