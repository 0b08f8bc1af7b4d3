import ts from 'typescript';
import { type Finding, nodesOf, type SourceText } from './source-tree.ts';

/** Everything in the repository that a page may name. */
export interface House {
  readonly files: ReadonlyMap<string, SourceText>;
}

/** A name in backticks, and what was named before it in the same line of a table, item or paragraph. */
interface Mention {
  readonly text: string;
  readonly line: number;
  readonly folder: string | null;
  readonly file: string | null;
}

const PATH = /^(?:src|testing|test|docs|sim|chaos|dashboard|bench|scripts|examples)\/[\w./-]*$/;
const BARE_FILE = /^[\w*-]+\.(?:ts|tsx|mjs)$/;
const LUA_FILE = /^(?:[\w-]+\/)?[\w-]+\.lua$/;
const DOTTED = /^[a-z]+\.[a-zA-Z_]+$/;
const SHOUTED = /^[A-Z]+(?:_[A-Z]+)*$/;
const NAME = /^#?[A-Za-z]\w*(?:\.#?[A-Za-z]\w*)?(?:\(\))?$/;
const LUA_FOLDER = 'src/store/redis/lua/';
const STORE = 'src/store/port/store.ts';
const EVENTS = 'src/core/events.ts';

/**
 * What a page says of files and names, held against these. A path has to be there; a file without a folder, in the folder named last; a name is
 * declared in the file named last before it, or, where none is named, anywhere in src. `leases.acquire` is a verb of the store,
 * `lease.lost` an event, `lease/acquire.lua` a script; `STARTING` may also be a text that the source has. What is no name (a key, a command) is passed over.
 */
export function walkFindings(page: SourceText, house: House): Finding[] {
  return mentionsOf(page, house).flatMap((mention) => {
    const problem = problemOf(mention, house);
    if (problem === undefined) return [];
    return [{ path: page.path, line: mention.line, what: `\`${mention.text}\` ${problem}` }];
  });
}

interface Block {
  readonly line: number;
  readonly text: string;
}

/** A row, an item, a heading or a paragraph, each in one line. What stands between fences is code. */
function blocksOf({ text }: SourceText): Block[] {
  const blocks: Block[] = [];
  let isCode = false;
  let isOpen = false;
  for (const [i, line] of text.split('\n').entries()) {
    const isFence = line.startsWith('```');
    if (isFence) isCode = !isCode;
    const isText = !isCode && !isFence && line.trim() !== '';
    const last = isOpen && !/^(?:\||[-*] |#)/.test(line) ? blocks.pop() : undefined;
    isOpen = isText;
    if (last !== undefined) blocks.push(isText ? { ...last, text: `${last.text} ${line}` } : last);
    else if (isText) blocks.push({ line: i + 1, text: line });
  }
  return blocks;
}

function mentionsOf(page: SourceText, house: House): Mention[] {
  const mentions: Mention[] = [];
  for (const block of blocksOf(page)) {
    let folder: string | null = null;
    let file: string | null = null;
    for (const [, text = ''] of block.text.matchAll(/`([^`]+)`/g)) {
      if (PATH.test(text)) {
        const isFile = house.files.has(text);
        file = isFile ? text : null;
        folder = isFile ? text.slice(0, text.lastIndexOf('/') + 1) : text.replace(/\/?$/, '/');
      } else if (BARE_FILE.test(text) && folder !== null) file = folder + text;
      mentions.push({ text, line: block.line, folder, file });
    }
  }
  return mentions;
}

function problemOf(mention: Mention, house: House): string | undefined {
  const { text } = mention;
  const paths = [...house.files.keys()];
  if (PATH.test(text)) {
    const isThere = paths.some(
      (path) => path === text || path.startsWith(text.replace(/\/?$/, '/')),
    );
    return isThere ? undefined : 'is not there';
  }
  if (BARE_FILE.test(text)) return bareProblem(mention, paths);
  if (LUA_FILE.test(text))
    return house.files.has(LUA_FOLDER + text) ? undefined : `is not in ${LUA_FOLDER}`;
  if (SHOUTED.test(text) && isLiteral(text, house)) return undefined;
  if (DOTTED.test(text)) return dottedProblem(text, house);
  return NAME.test(text) ? nameProblem(mention, house) : undefined;
}

function bareProblem({ text, folder }: Mention, paths: readonly string[]): string | undefined {
  if (folder === null) return 'has no folder before it: name it';
  const pattern = new RegExp(`^${folder}${text.replace('.', '\\.').replace('*', '[\\w-]*')}$`);
  return paths.some((path) => pattern.test(path)) ? undefined : `is not in ${folder}`;
}

function isLiteral(text: string, { files }: House): boolean {
  return [...files.values()].some(
    (source) => source.path.startsWith('src/') && source.text.includes(`'${text}'`),
  );
}

/** An event, or a verb of a part of the store. */
function dottedProblem(text: string, { files }: House): string | undefined {
  const events = declared(files.get(EVENTS)).get('Events');
  if (events?.has(text)) return undefined;
  const [part = '', verb = ''] = text.split('.');
  const port = partOf(files.get(STORE), part);
  const isVerb = [...files.values()].some(
    ({ path }) =>
      /^src\/store\/port\/[\w-]*store\.ts$/.test(path) &&
      port !== undefined &&
      declared(files.get(path)).get(port)?.has(verb),
  );
  return isVerb ? undefined : 'is neither an event nor a verb of the store';
}

/** The type of a part of the store: `LeaseStore` for `leases`. */
function partOf(store: SourceText | undefined, part: string): string | undefined {
  if (store === undefined) return undefined;
  for (const node of nodesOf(store)) {
    const isPart =
      ts.isPropertySignature(node) &&
      ts.isInterfaceDeclaration(node.parent) &&
      ['CoordinationStore', 'WorkStore'].includes(node.parent.name.text) &&
      node.name.getText() === part;
    if (isPart) return node.type?.getText();
  }
  return undefined;
}

function nameProblem({ text, file }: Mention, { files }: House): string | undefined {
  const [owner = '', member] = text.replace('()', '').split('.');
  const isIn = (source: SourceText | undefined) => {
    const names = declared(source);
    if (member !== undefined) return names.get(owner)?.has(member) === true;
    return names.has(owner) || [...names.values()].some((members) => members.has(owner));
  };
  if (file !== null) return isIn(files.get(file)) ? undefined : `is not declared in ${file}`;
  const isAnywhere = [...files.values()].some(
    (source) => /^src\/.*\.ts$/.test(source.path) && isIn(source),
  );
  return isAnywhere ? undefined : 'is not declared in src';
}

const NOBODY: ReadonlyMap<string, ReadonlySet<string>> = new Map();
const known = new WeakMap<SourceText, ReadonlyMap<string, ReadonlySet<string>>>();

/** What a file declares outside of functions, each with the names of its members. */
function declared(source: SourceText | undefined): ReadonlyMap<string, ReadonlySet<string>> {
  if (source === undefined || !/\.(?:ts|tsx|mjs)$/.test(source.path)) return NOBODY;
  const found = known.get(source) ?? declarations(source);
  known.set(source, found);
  return found;
}

function declarations(source: SourceText): ReadonlyMap<string, ReadonlySet<string>> {
  const names = new Map<string, ReadonlySet<string>>();
  for (const node of nodesOf(source)) {
    if (ts.isClassDeclaration(node) || ts.isInterfaceDeclaration(node)) {
      const members = [...node.members].flatMap(({ name }) => (name ? [textOf(name)] : []));
      names.set(node.name?.text ?? '', new Set(members));
    } else if (ts.isFunctionDeclaration(node) || ts.isTypeAliasDeclaration(node)) {
      names.set(node.name?.text ?? '', new Set());
    } else if (ts.isVariableDeclaration(node) && ts.isSourceFile(node.parent.parent.parent)) {
      names.set(node.name.getText(), new Set());
    }
  }
  return names;
}

function textOf(name: ts.PropertyName): string {
  return ts.isStringLiteral(name) ? name.text : name.getText();
}
