// Measures how the source reads: names, constructors, comments, cycles, size.
// `npm run house -- --json` for machines.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const HELP = `Usage: npm run house -- [--acquire] [--json]

Measures src/: how many nouns its classes end in, how they are built, how its comments read, how long it is.

  --acquire  counts the files of one acquire, too: needs the build and redis-server, takes a minute
  --json     nothing but [{ name, value, unit, bar, ok }] on stdout
  --help     this

Exit code: 0; the bars are aims, and the tidy test holds those that were reached.`;

/** Comment lines may be this wide, as code may. */
const MAX_COLUMNS = 100;
const WINDOW_LINES = 6;
/** Subjects that name no actor: the sentence cannot be found by the name of what it is about. */
const HEADLESS =
  /\b(whoever|whomever|somebody|nobody|anybody|what (is|was|has|had|are|were|it|they)|who (is|was|has|had))\b/i;

if (process.argv.includes('--help')) {
  console.log(HELP);
  process.exit();
}

const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => `src/${path}`)
  .sort();
const texts = new Map(files.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]));
const sources = new Map(
  [...texts].map(([path, text]) => [
    path,
    ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true),
  ]),
);

const classes = classesOf();
const comments = [...texts.values()].flatMap(commentLines);
const lines = [...texts.values()].reduce((sum, text) => sum + text.split('\n').length - 1, 0);
const made = madeAt();
const single = classes.filter(({ name }) => made.get(name) === 1).length;
const headless = comments.filter((line) => HEADLESS.test(line)).length;
const rows = [
  row('lines in src', lines, 'lines', 46_000),
  row('classes that are no errors', classes.length, 'classes', null),
  row(
    'head nouns of classes',
    new Set(classes.map(({ name }) => headNoun(name))).size,
    'nouns',
    60,
  ),
  row('classes made at one place', percent(single, classes.length), '%', 45),
  row('constructors that take parts', partsConstructors(), 'constructors', 0),
  row('groups spread for layout', layoutSpreads(), 'groups', 0),
  row('comment lines without an actor', percent(headless, comments.length), '%', 1),
  row(
    `comment lines over ${MAX_COLUMNS} columns`,
    comments.filter((line) => line.length > MAX_COLUMNS).length,
    'lines',
    0,
  ),
  row('duplicate six-line windows', duplicateWindows(), 'windows', 21),
  row('files in runtime import cycles', cyclicFiles(), 'files', 0),
];

if (process.argv.includes('--acquire')) {
  const { filesOfOneAcquire } = await import('./house/acquire-walk.mjs');
  const walked = await filesOfOneAcquire();
  const tools = walked.filter((path) => path.startsWith('core/'));
  rows.push(row('files of one acquire', walked.length, 'files', 20));
  rows.push(row('of these, tools in core', tools.length, 'files', null));
}

if (process.argv.includes('--json')) console.log(JSON.stringify(rows));
else
  for (const { name, value, unit, bar, ok } of rows) console.log(told(name, value, unit, bar, ok));

function told(name, value, unit, bar, ok) {
  const aim = bar === null ? '' : `  aim ${bar}${ok ? '' : '  not yet'}`;
  return `${name.padEnd(36)} ${String(value).padStart(7)} ${unit.padEnd(12)}${aim}`;
}

function row(name, value, unit, bar) {
  return { name, value, unit, bar, ok: bar === null || value <= bar };
}

function percent(part, whole) {
  return whole === 0 ? 0 : Number(((100 * part) / whole).toFixed(1));
}

/** Every class but those of errors. */
function classesOf() {
  const found = [];
  for (const [path, source] of sources)
    visit(source, (node) => {
      if (!ts.isClassDeclaration(node) || node.name === undefined) return;
      if (isError(node)) return;
      found.push({ name: node.name.text, path, node });
    });
  return found;
}

function isError({ name, heritageClauses }) {
  const parents = (heritageClauses ?? []).flatMap(({ types }) =>
    types.map((type) => type.getText()),
  );
  return [name.text, ...parents].some((word) => /(Error|Refusal|Stopped)$/.test(word));
}

function headNoun(name) {
  return /[A-Z][a-z0-9]*$/.exec(name)?.[0] ?? name;
}

/** By class: at how many places of src it is made. */
function madeAt() {
  const counts = new Map();
  for (const source of sources.values())
    visit(source, (node) => {
      if (!ts.isNewExpression(node) || !ts.isIdentifier(node.expression)) return;
      counts.set(node.expression.text, (counts.get(node.expression.text) ?? 0) + 1);
    });
  return counts;
}

function partsConstructors() {
  return classes.filter(({ node }) => {
    const made = node.members.find(ts.isConstructorDeclaration);
    return made?.parameters.some(
      ({ name, type }) => /parts$/i.test(name.getText()) || /Parts\b/.test(type?.getText() ?? ''),
    );
  }).length;
}

/** `...{ a, b }` and `...['a', 'b']`: a literal spread into a literal changes nothing but the layout. */
function layoutSpreads() {
  let count = 0;
  for (const source of sources.values())
    visit(source, (node) => {
      if (!ts.isSpreadAssignment(node) && !ts.isSpreadElement(node)) return;
      const { expression } = node;
      if (ts.isObjectLiteralExpression(expression) || ts.isArrayLiteralExpression(expression))
        count++;
    });
  return count;
}

function commentLines(text) {
  return text.split('\n').filter((line) => /^\s*(\/\/|\/\*\*?|\*)/.test(line));
}

/** Runs of six lines of code that stand in two places, counted once for each repetition. */
function duplicateWindows() {
  const seen = new Set();
  let count = 0;
  for (const text of texts.values()) {
    const code = text
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line.length > 3 && !/^(import|export \{|\/\/|\*|\/\*|\} from)/.test(line));
    let until = 0;
    for (let at = 0; at + WINDOW_LINES <= code.length; at++) {
      const window = code.slice(at, at + WINDOW_LINES).join('\n');
      if (seen.has(window) && at >= until) {
        count++;
        until = at + WINDOW_LINES;
      }
      seen.add(window);
    }
  }
  return count;
}

/** Files that import each other when they run; types do not count. */
function cyclicFiles() {
  const imports = new Map(
    [...sources].map(([path, source]) => [path, runtimeImports(path, source)]),
  );
  const reaches = (from) => {
    const seen = new Set();
    const open = [...(imports.get(from) ?? [])];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (seen.has(next)) continue;
      seen.add(next);
      open.push(...(imports.get(next) ?? []));
    }
    return seen;
  };
  return files.filter((path) => reaches(path).has(path)).length;
}

function runtimeImports(path, source) {
  return source.statements.flatMap((statement) => {
    if (!ts.isImportDeclaration(statement) && !ts.isExportDeclaration(statement)) return [];
    const { moduleSpecifier } = statement;
    if (moduleSpecifier === undefined || !moduleSpecifier.text.startsWith('.')) return [];
    const clause = ts.isImportDeclaration(statement) ? statement.importClause : statement;
    const names = clause?.namedBindings?.elements ?? clause?.exportClause?.elements ?? [];
    const isTypeOnly =
      clause?.isTypeOnly || (names.length > 0 && names.every(({ isTypeOnly: only }) => only));
    return isTypeOnly ? [] : [join(dirname(path), moduleSpecifier.text)];
  });
}

function visit(node, on) {
  on(node);
  ts.forEachChild(node, (child) => visit(child, on));
}
