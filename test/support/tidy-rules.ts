import ts from 'typescript';
import { type Finding, finding, nodesOf, parse, type SourceText } from './source-tree.ts';

const BELOW_TOP = 'core store lease fleet workflow intents worker telemetry incident'.split(' ');

/**
 * Who may import whom: data flows downhill. `top` is the files directly in src. `testing` lies beside src.
 */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  core: [],
  store: ['core'],
  lease: ['core', 'store'],
  telemetry: ['core', 'store'],
  incident: ['core', 'store', 'telemetry'],
  fleet: ['core', 'store', 'lease', 'telemetry'],
  workflow: ['core', 'store', 'lease'],
  intents: ['core', 'store', 'lease', 'fleet'],
  worker: ['core', 'store', 'lease', 'intents'],
  client: ['core'],
  redlock: ['core', 'store', 'lease', 'top'],
  nest: ['core', 'lease', 'top'],
  'node-cron': ['core', 'lease', 'top'],
  top: [...BELOW_TOP],
  server: [...BELOW_TOP, 'top'],
  cli: [...BELOW_TOP, 'top', 'server'],
  testing: [...BELOW_TOP, 'top'],
};

/** Imports go down the layers, by relative path, and never out of src. */
export function layerFindings(sources: readonly SourceText[]): Finding[] {
  const findings: Finding[] = [];
  for (const source of sources) {
    const layer = layerOf(source.path);
    const allowed = LAYERS[layer];
    if (allowed === undefined) {
      const what = `belongs to no known layer: add '${layer}' to LAYERS with what it may import`;
      findings.push({ path: source.path, line: 1, what });
      continue;
    }
    for (const { node, specifier } of importsOf(source)) {
      const problem = importProblem(source.path, layer, allowed, specifier);
      if (problem !== undefined) findings.push(finding(source, node, problem));
    }
  }
  return findings;
}

function importProblem(
  path: string,
  layer: string,
  allowed: readonly string[],
  specifier: string,
): string | undefined {
  if (/^holdfast(\/|$)/.test(specifier)) return `imports '${specifier}': use the relative path`;
  if (!specifier.startsWith('.')) {
    const isPortable = layer === 'client';
    return isPortable ? `imports '${specifier}': it has to run where there is no Node` : undefined;
  }
  const target = new URL(specifier, `file:///${path}`).pathname.slice(1);
  const isInside = target.startsWith('src/') || (layer === 'testing' && layerOf(target) === layer);
  if (!isInside) return `imports ${target}: src must not reach outside itself`;
  const below = layerOf(target);
  if (below === layer || allowed.includes(below)) return undefined;
  const may = allowed.length === 0 ? 'nothing of ours' : allowed.join(', ');
  return `imports ${target}: ${layer} may import ${may}. Move the code down, or pass it in`;
}

function layerOf(path: string): string {
  const [top, folder = '', ...rest] = path.split('/');
  if (top === 'testing') return top;
  return rest.length === 0 ? 'top' : folder;
}

export function* importsOf(source: SourceText): Generator<{ node: ts.Node; specifier: string }> {
  for (const node of nodesOf(source)) {
    const module = moduleOf(node);
    if (module !== undefined && ts.isStringLiteralLike(module)) {
      yield { node, specifier: module.text };
    }
  }
}

function moduleOf(node: ts.Node): ts.Node | undefined {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return node.moduleSpecifier;
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument))
    return node.argument.literal;
  const isDynamic =
    ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword;
  return isDynamic ? node.arguments[0] : undefined;
}

const TIMERS = ['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask'];
const CLOCK_MODULES = ['node:timers', 'node:timers/promises', 'node:perf_hooks'];
const CLOCK_CALLS = [
  'Date.now',
  'performance.now',
  'Math.random',
  'process.hrtime',
  'process.nextTick',
  'process.uptime',
  'AbortSignal.timeout',
];

/** Time and chance are injected: a bare clock, timer or random source can not be stepped or replayed. */
export function clockFindings(sources: readonly SourceText[]): Finding[] {
  const isExempt = ({ path }: SourceText) => /^(src\/core|testing)\//.test(path);
  return sources
    .filter((source) => !isExempt(source))
    .flatMap((source) =>
      [...nodesOf(source)].flatMap((node) => {
        const name = bareClockOf(node);
        const what = `uses ${name}: take the clock or the random source as a parameter (src/core)`;
        return name === undefined ? [] : [finding(source, node, what)];
      }),
    );
}

function bareClockOf(node: ts.Node): string | undefined {
  if (ts.isIdentifier(node) && node.text === 'randomUUID') return node.text;
  if (ts.isIdentifier(node) && TIMERS.includes(node.text) && isGlobal(node)) return node.text;
  if (ts.isPropertyAccessExpression(node)) {
    const call = node
      .getText()
      .replace(/^globalThis\./, '')
      .replaceAll('?.', '.');
    return CLOCK_CALLS.find((known) => known === call);
  }
  if (ts.isNewExpression(node) || ts.isCallExpression(node)) {
    const isNow = node.expression.getText() === 'Date' && !node.arguments?.length;
    return isNow ? 'the current Date' : undefined;
  }
  if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
    return CLOCK_MODULES.find((known) => known === (node.moduleSpecifier as ts.StringLiteral).text);
  }
  return undefined;
}

/** Whether a name is the global one: not a property of something else, nor the name of a declared one. */
function isGlobal(name: ts.Identifier): boolean {
  const { parent } = name;
  if (ts.isPropertyAccessExpression(parent) && parent.name === name) {
    return parent.expression.getText() === 'globalThis';
  }
  const isMemberName =
    (ts.isPropertyAssignment(parent) ||
      ts.isPropertySignature(parent) ||
      ts.isPropertyDeclaration(parent) ||
      ts.isMethodSignature(parent) ||
      ts.isMethodDeclaration(parent)) &&
    parent.name === name;
  return !isMemberName;
}

/**
 * Every error code has a heading of its own in the reference page, and no heading is left over. A code
 * is a string literal that a property called `code` is set to, or the first argument of `defineError`; a heading may have
 * it in backticks.
 */
export function errorDocFindings(errors: readonly SourceText[], docs: SourceText): Finding[] {
  const codes = errors.flatMap((source) =>
    [...nodesOf(source)].flatMap((node) => {
      const isCode =
        (ts.isPropertyDeclaration(node) || ts.isPropertyAssignment(node)) &&
        node.name.getText() === 'code' &&
        node.initializer !== undefined &&
        ts.isStringLiteral(node.initializer);
      if (isCode) return [{ source, node, name: (node.initializer as ts.StringLiteral).text }];
      const isDefined = ts.isCallExpression(node) && node.expression.getText() === 'defineError';
      const [first] = isDefined ? node.arguments : [];
      return first !== undefined && ts.isStringLiteral(first)
        ? [{ source, node, name: first.text }]
        : [];
    }),
  );
  const headings = docs.text.split('\n').flatMap((text, index) => {
    const name = /^#{2,6} `?([A-Z][A-Z_]*[A-Z])`?\s*$/.exec(text)?.[1];
    return name === undefined ? [] : [{ name, line: index + 1 }];
  });
  return [
    ...errors.flatMap((source) => {
      const count = codes.filter((code) => code.source === source).length;
      return emptyFinding(source, count, 'has no error code');
    }),
    ...codes
      .filter(({ name }) => !headings.some((heading) => heading.name === name))
      .map(({ source, node, name }) =>
        finding(source, node, `${name}: add '## ${name}' to ${docs.path}`),
      ),
    ...headings
      .filter(({ name }) => !codes.some((code) => code.name === name))
      .map(({ name, line }) => {
        return { path: docs.path, line, what: `${name} is no error code (any more): remove it` };
      }),
  ];
}

/**
 * Every name in `interface Events` stands in the reference page in backticks, and no line of it that
 * begins with a name (as a heading, an item or a table row) is about something else.
 */
export function eventDocFindings(events: SourceText, docs: SourceText): Finding[] {
  const names = [...nodesOf(events)].flatMap((node) =>
    ts.isPropertySignature(node) &&
    ts.isInterfaceDeclaration(node.parent) &&
    node.parent.name.text === 'Events' &&
    ts.isStringLiteral(node.name)
      ? [{ node, name: node.name.text }]
      : [],
  );
  const entries = docs.text.split('\n').flatMap((text, index) => {
    const name = /^(?:#+|[-*]|\|) *`([a-z]+\.[a-z_]+)`/.exec(text)?.[1];
    return name === undefined ? [] : [{ name, line: index + 1 }];
  });
  return [
    ...emptyFinding(events, names.length, "has no 'noun.verb' in interface Events"),
    ...names
      .filter(({ name }) => !/^[a-z]+\.[a-z_]+$/.test(name))
      .map(({ node, name }) => finding(events, node, `${name}: event names are 'noun.verb'`)),
    ...names
      .filter(({ name }) => !docs.text.includes(`\`${name}\``))
      .map(({ node, name }) => finding(events, node, `${name}: describe it in ${docs.path}`)),
    ...entries
      .filter((entry) => !names.some(({ name }) => name === entry.name))
      .map(({ name, line }) => {
        return { path: docs.path, line, what: `${name} is no event (any more): remove it` };
      }),
  ];
}

function emptyFinding({ path }: SourceText, count: number, what: string): Finding[] {
  return count === 0 ? [{ path, line: 1, what: `${what}: has this rule lost its subject?` }] : [];
}

const MAX_FILE_LINES = 700;
const MAX_LUA_LINES = 100;
const MAX_FUNCTION_LINES = 70;

/** A file, or a function (`path#name`), that may be longer, up to which length, and why. */
export interface SizeException {
  what: string;
  maxLines: number;
  why: string;
}

/** What is too long to be read in one go, and exceptions that nothing needs any more. */
export function sizeFindings(
  sources: readonly SourceText[],
  exceptions: readonly SizeException[],
): Finding[] {
  const measured = sources.flatMap((source) => [fileSize(source), ...functionSizes(source)]);
  const tooLong = measured.flatMap(({ what, lines, maxLines, at }) => {
    const limit = exceptions.find((exception) => exception.what === what)?.maxLines ?? maxLines;
    const advice = `has ${lines} lines, more than ${limit}: split it by what it does`;
    return lines > limit ? [{ ...at, what: `${what} ${advice}` }] : [];
  });
  const stale = exceptions
    .filter(
      ({ what }) => !measured.some((size) => size.what === what && size.lines > size.maxLines),
    )
    .map(({ what }) => {
      const [path = ''] = what.split('#');
      return { path, line: 1, what: `${what} needs no exception any more: remove it` };
    });
  return [...tooLong, ...stale];
}

interface Size {
  what: string;
  lines: number;
  maxLines: number;
  at: { path: string; line: number };
}

function fileSize({ path, text }: SourceText): Size {
  const maxLines = path.endsWith('.lua') ? MAX_LUA_LINES : MAX_FILE_LINES;
  return { what: path, lines: lineCount(text), maxLines, at: { path, line: 1 } };
}

function functionSizes(source: SourceText): Size[] {
  if (source.path.endsWith('.lua')) return [];
  return [...nodesOf(source)].filter(hasBody).map((node) => {
    const { path, line } = finding(source, node, '');
    const lines = lineCount(node.getText(parse(source)));
    const what = `${path}#${functionName(node)}`;
    return { what, lines, maxLines: MAX_FUNCTION_LINES, at: { path, line } };
  });
}

function hasBody(node: ts.Node): node is ts.FunctionLikeDeclaration {
  return ts.isFunctionLike(node) && 'body' in node && node.body !== undefined;
}

/** Its own name, else the one of the variable or property it is given to. */
function functionName(node: ts.FunctionLikeDeclaration): string {
  if (node.name !== undefined) return node.name.getText();
  if (ts.isConstructorDeclaration(node)) return 'constructor';
  const { parent } = node;
  const isNamed = ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent);
  return isNamed ? parent.name.getText() : '(anonymous)';
}

function lineCount(text: string): number {
  return text.replace(/\n$/, '').split('\n').length;
}

const VAGUE_WORDS = ['util', 'utils', 'helper', 'helpers', 'common', 'misc', 'types', 'manager'];
const MISSION_NAMES = ['lease-manager'];

/** File and folder names are kebab-case, and say what is inside. */
export function nameFindings(paths: readonly string[]): Finding[] {
  return paths.flatMap((path) =>
    path.split('/').flatMap((part) => {
      const [stem = '', ...suffixes] = part.replace(/^\./, '').split('.');
      const words = stem.split('-');
      const vague = words.find((word) => VAGUE_WORDS.includes(word));
      const at = { path, line: 1 };
      if (![stem, ...suffixes].every((piece) => /^[a-z0-9]+(-[a-z0-9]+)*$/.test(piece))) {
        return [{ ...at, what: `'${part}' is not kebab-case: rename it` }];
      }
      if (vague === undefined || MISSION_NAMES.includes(stem)) return [];
      return [{ ...at, what: `'${part}' says '${vague}': name it after what it holds` }];
    }),
  );
}

/** No `any`, and no cast by way of `unknown`: both make the compiler believe what it has not seen. */
export function castFindings(sources: readonly SourceText[]): Finding[] {
  return sources.flatMap((source) =>
    [...nodesOf(source)].flatMap((node) => {
      const problem = castProblem(node);
      return problem === undefined ? [] : [finding(source, node, problem)];
    }),
  );
}

function castProblem(node: ts.Node): string | undefined {
  if (node.kind === ts.SyntaxKind.AnyKeyword) return "says 'any': say what it is, or 'unknown'";
  if (!ts.isAsExpression(node)) return undefined;
  let inner: ts.Node = node.expression;
  while (ts.isParenthesizedExpression(inner)) inner = inner.expression;
  const isForced = ts.isAsExpression(inner) && inner.type.kind === ts.SyntaxKind.UnknownKeyword;
  return isForced ? "casts by way of 'unknown': check the value instead" : undefined;
}

const TEST_CALLS = ['it', 'test', 'describe', 'suite'];
const SWITCHES = ['skip', 'only', 'todo', 'skipIf', 'runIf', 'fails'];

/** Every test that is written is run, and has to pass. */
export function switchedOffFindings(sources: readonly SourceText[]): Finding[] {
  return sources.flatMap((source) =>
    [...nodesOf(source)].flatMap((node) => {
      if (!ts.isPropertyAccessExpression(node) || !SWITCHES.includes(node.name.text)) return [];
      let root: ts.Node = node.expression;
      while (ts.isPropertyAccessExpression(root) || ts.isCallExpression(root))
        root = root.expression;
      const isTest = ts.isIdentifier(root) && TEST_CALLS.includes(root.text);
      const what = `has ${node.getText()}: every test runs, or goes`;
      return isTest ? [finding(source, node, what)] : [];
    }),
  );
}

/** A script begins with a comment that says its keys, arguments and reply; a library file, what it defines. */
export function luaHeaderFindings(sources: readonly SourceText[]): Finding[] {
  return sources.flatMap(({ path, text }) => {
    const lines = text.split('\n');
    const end = lines.findIndex((line) => !line.startsWith('--'));
    const header = lines.slice(0, end === -1 ? lines.length : end);
    const words = path.includes('/lua/lib/') ? ['Defines'] : ['KEYS', 'ARGV', 'Returns'];
    return words
      .filter((word) => !header.some((line) => new RegExp(`^-- ${word}\\b`).test(line)))
      .map((word) => ({
        path,
        line: 1,
        what: `begin the file with a comment that has '-- ${word}'`,
      }));
  });
}

/** The lockfile names no download addresses: everyone's own registry serves, and none is given away. */
export function lockfileFindings({ path, text }: SourceText): Finding[] {
  const what =
    'names a download address: npm install with omit-lockfile-registry-resolved (.npmrc)';
  return text.split('\n').flatMap((line, index) => {
    return /"resolved":\s*"[^"]*:/.test(line) ? [{ path, line: index + 1, what }] : [];
  });
}

interface Lockfile {
  packages: Record<string, { version?: string; optionalDependencies?: Record<string, string> }>;
}

/** Where Node looks for what a package uses: `node_modules/a/node_modules/b/`, `node_modules/a/`, and the root. */
function foldersAbove(user: string): string[] {
  const names = `/${user}`.split('/node_modules/').slice(1);
  const folder = (depth: number) => names.slice(0, depth).map((name) => `node_modules/${name}/`);
  return [...names, ''].map((_, i) => folder(names.length - i).join(''));
}

/**
 * The lockfile knows the binaries of every platform. npm leaves out what the registry did not serve
 * when it was written, and `npm ci` then fails, here or on somebody else's machine.
 */
export function platformFindings({ path, text }: SourceText): Finding[] {
  const { packages } = JSON.parse(text) as Lockfile;
  return Object.entries(packages).flatMap(([user, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => {
        const isThere = (folder: string) =>
          packages[`${folder}node_modules/${name}`]?.version !== undefined;
        return !foldersAbove(user).some(isThere);
      })
      .map((name) => {
        const what = `lacks ${name}, which ${user} needs on its platform: lock a version of it`;
        return { path, line: 1, what: `${what} that the registry has for every platform` };
      }),
  );
}

/**
 * The nouns that class names may end in, beside the words of docs/glossary.md: the roles of the
 * house and the names that users know. A new role is first looked for here.
 */
export const ROLE_NOUNS: readonly string[] = `
  Batcher Cache Client Clock Connection Emitter Gate Heap Loop Output Queue Reader Releaser
  Renewer Request Retention Run Scheduler Server Set State Subscription Watch Writer
  Attempt Election Handover Heartbeat History Holdfast Lock Log Manager Metrics Module Passes Poller Redlock Runner
  Service
`
  .trim()
  .split(/\s+/);

/** The bold words of the glossary, as the last word of a class name may spell them. */
export function glossaryNouns({ text }: SourceText): string[] {
  return [...text.matchAll(/\*\*([a-z ]+)\*\*/gi)].flatMap(([, words = '']) => {
    const word = words.split(' ').at(-1) ?? '';
    const noun = (word[0] ?? '').toUpperCase() + word.slice(1);
    return [noun, noun.endsWith('y') ? `${noun.slice(0, -1)}ies` : `${noun}s`];
  });
}

/** A class ends in a noun of the glossary or of the list of roles; every role is in use. */
export function classNounFindings(
  sources: readonly SourceText[],
  glossary: readonly string[],
  roles: readonly string[],
): Finding[] {
  const classes = sources.flatMap((source) =>
    classesOf(source).map((node) => ({ source, node, noun: headNoun(node.name.text) })),
  );
  const used = new Set(classes.map(({ noun }) => noun));
  const unknown = classes
    .filter(({ noun }) => !glossary.includes(noun) && !roles.includes(noun))
    .map(({ source, node, noun }) => {
      const what = `${node.name.text} ends in ${noun}: end it in a word of docs/glossary.md or ROLE_NOUNS`;
      return finding(source, node, what);
    });
  const stale = roles
    .filter((noun) => !used.has(noun) || glossary.includes(noun))
    .map((noun) => ({ path: 'test/support/tidy-rules.ts', line: 1, what: `${noun} is no role` }));
  return [...unknown, ...stale];
}

type NamedClass = ts.ClassDeclaration & { readonly name: ts.Identifier };

/** The classes of a file that are no errors. */
function classesOf(source: SourceText): NamedClass[] {
  return [...nodesOf(source)].filter(
    (node): node is NamedClass =>
      ts.isClassDeclaration(node) && node.name !== undefined && !isErrorClass(node),
  );
}

function isErrorClass({ name, heritageClauses = [] as never }: ts.ClassDeclaration): boolean {
  const parents = [...heritageClauses].flatMap(({ types }) => types.map((type) => type.getText()));
  return [name?.text ?? '', ...parents].some((word) => /(Error|Refusal|Stopped)$/.test(word));
}

function headNoun(name: string): string {
  return /[A-Z][a-z0-9]*$/.exec(name)?.[0] ?? name;
}

/** Files that are called after their subject, because their class is only a part of it. */
const SUBJECT_FILES = [
  'src/core/events.ts',
  'src/fleet/targets/target-record.ts',
  'src/fleet/targets/target-source.ts',
  'src/lease/release.ts',
  'src/lease/timings.ts',
  'src/store/redis/client/wire.ts',
  'src/store/redis/topology/servers.ts',
];

/** `RedisLeases` is in `leases.ts` or `redis-leases.ts`, `BackoffState` in `backoff.ts`. */
export function classFileFindings(sources: readonly SourceText[]): Finding[] {
  return sources.flatMap((source) => {
    const exported = classesOf(source).filter(({ modifiers }) =>
      modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword),
    );
    const [first] = exported;
    if (first === undefined || SUBJECT_FILES.includes(source.path)) return [];
    const stem = (source.path.split('/').at(-1) ?? '').replace('.ts', '').replaceAll('-', '');
    const isNamed = exported
      .map(({ name }) => name.text.toLowerCase())
      .some((name) => name.startsWith(stem) || name.endsWith(stem));
    return isNamed ? [] : [finding(source, first, `${first.name.text}: name the file after it`)];
  });
}

const MAX_ARGUMENTS = 4;

/** A constructor takes the runtime and what is its own: at most four arguments, and no `XParts`. */
export function constructorFindings(sources: readonly SourceText[]): Finding[] {
  return sources.flatMap((source) =>
    classesOf(source).flatMap((node) => {
      const { parameters = [] as never } = node.members.find(ts.isConstructorDeclaration) ?? {};
      const isTooLong = parameters.length > MAX_ARGUMENTS;
      const hasParts = parameters.some(({ type }) => /Parts\b/.test(type?.getText() ?? ''));
      const what = `${node.name.text} takes ${parameters.length} arguments, or parts: at most four, by name`;
      return isTooLong || hasParts ? [finding(source, node, what)] : [];
    }),
  );
}

/** A literal that is spread into a literal, `...{ a, b }`, changes nothing but the layout. */
export function spreadFindings(sources: readonly SourceText[]): Finding[] {
  return sources.flatMap((source) =>
    [...nodesOf(source)].flatMap((node) => {
      if (!ts.isSpreadAssignment(node) && !ts.isSpreadElement(node)) return [];
      let { expression } = node;
      while (ts.isParenthesizedExpression(expression) || ts.isAsExpression(expression))
        ({ expression } = expression);
      const { kind } = expression;
      const isLiteral =
        kind === ts.SyntaxKind.ObjectLiteralExpression ||
        kind === ts.SyntaxKind.ArrayLiteralExpression;
      return isLiteral ? [finding(source, node, 'spreads a literal: write its members')] : [];
    }),
  );
}

const MAX_COLUMNS = 100;

/** Comments are as wide as code may be. */
export function columnFindings(sources: readonly SourceText[]): Finding[] {
  return sources.flatMap(({ path, text }) => {
    const comment = path.endsWith('.lua') ? /^\s*--/ : /^\s*(\/\/|\/\*\*?|\*)/;
    return text.split('\n').flatMap((line, index) => {
      const what = `has a comment of ${line.length} columns: at most ${MAX_COLUMNS}`;
      const isTooWide = comment.test(line) && line.length > MAX_COLUMNS;
      return isTooWide ? [{ path, line: index + 1, what }] : [];
    });
  });
}
