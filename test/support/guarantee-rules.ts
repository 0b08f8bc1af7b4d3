import ts from 'typescript';
import { type Finding, nodesOf, type SourceText } from './source-tree.ts';

/** Gives a file by its path from the root of the repository, or nothing where there is none. */
export type Lookup = (path: string) => SourceText | undefined;

const PROMISES = 'What is promised';
const STORES = 'Per store';

/** Whose links name something inside of them, and how that is found there. */
const AUDITOR = 'testing/sim/audit.ts';
const FAULTS = 'testing/sim/faults.ts';

interface PageLink {
  /** From the root of the repository, without anchor; '' for the web, which is somebody else's. */
  readonly path: string;
  /** What of that file is meant: the title of the link, or else its text. */
  readonly names: string;
}

interface Row {
  readonly line: number;
  readonly cells: readonly string[];
}

/** Every link leads to a file; one to tests, to the auditor or to the faults names something that is there. */
export function linkFindings(page: SourceText, lookup: Lookup): Finding[] {
  return page.text.split('\n').flatMap((content, i) => {
    const links = linksIn(page.path, content);
    const problems = links.flatMap(({ path, names }) => linkProblem(path, names, lookup) ?? []);
    // One that is not read is not checked, and looks like one that is right.
    if (links.length < content.split('](').length - 1)
      problems.push(
        'a link is not of the form [text](address "title"), without brackets in its text',
      );
    return problems.map((what) => ({ path: page.path, line: i + 1, what }));
  });
}

/** Promises are numbered G1, G2 and so on; the page of evidence has a row for each, with something that shows it. */
export function promiseFindings(page: SourceText, evidence: SourceText): Finding[] {
  const rows = rowsOf(page, PROMISES);
  if (rows.length === 0) return [missing(page, PROMISES)];
  const shown = rowsOf(evidence, PROMISES);
  const numbers = new Set(rows.map(({ cells: [number = ''] }) => number));
  return [
    ...rows.flatMap(({ line, cells: [number = ''] }, i) =>
      number === `G${i + 1}`
        ? []
        : [{ path: page.path, line, what: `'${number}' stands where G${i + 1} is due` }],
    ),
    ...[...numbers]
      .filter((number) => !shown.some(({ cells: [of] }) => of === number))
      .map((number) => ({
        path: evidence.path,
        line: 1,
        what: `${number} is shown by nothing: add a row with a test`,
      })),
    ...shown.flatMap(({ line, cells: [number = '', shownBy = ''] }) => {
      if (!numbers.has(number))
        return [{ path: evidence.path, line, what: `there is no ${number}` }];
      if (hasEvidence(evidence, shownBy)) return [];
      return [{ path: evidence.path, line, what: `${number} is shown by nothing: link a test` }];
    }),
  ];
}

/** Every bug of the page names a public thread, and a test of ours. */
export function bugFindings(page: SourceText): Finding[] {
  const lines = page.text.split('\n');
  const starts = lines.flatMap((line, i) => (line.startsWith('## ') ? [i] : []));
  return starts.flatMap((start, i) => {
    const section = lines.slice(start, starts[i + 1]).join(' ');
    const what: string[] = [];
    if (!/\]\(https:\/\/github\.com\/[^/)]+\/[^/)]+\/(?:issues|pull)\/\d+\)/.test(section))
      what.push('names no thread: link an issue or a pull request');
    if (!hasEvidence(page, section)) what.push('is shown by nothing: link a test');
    return what.map((text) => ({ path: page.path, line: start + 1, what: text }));
  });
}

/** Every claim about a store is linked to what shows it, or is none: '—', or not promised, and why. */
export function storeFindings(page: SourceText): Finding[] {
  const rows = rowsOf(page, STORES);
  if (rows.length === 0) return [missing(page, STORES)];
  return rows.flatMap(({ line, cells: [store = '', ...claims] }) =>
    claims
      .filter((claim) => !isNoClaim(claim) && !hasEvidence(page, claim))
      .map((claim) => ({
        path: page.path,
        line,
        what: `${store}: '${claim}' is shown by nothing: link a test, or say that it is not promised, and why`,
      })),
  );
}

/** Numbers stand for something: promises (G) everywhere; assumptions (A) and non-promises (N) on the pages of guarantees. */
export function mentionFindings(texts: readonly SourceText[], page: SourceText): Finding[] {
  const known = new Set([...page.text.matchAll(/^\| ([AGN]\d+) \|/gm)].map(([, number]) => number));
  return texts.flatMap(({ path, text }) => {
    const isOurs = path.startsWith(page.path.replace('.md', ''));
    const numbers = isOurs ? /\b[AGN]\d+\b/g : /\bG\d+\b/g;
    return text
      .split('\n')
      .flatMap((content, i) =>
        [...content.matchAll(numbers)]
          .filter(([number]) => !known.has(number))
          .map(([number]) => ({ path, line: i + 1, what: `${page.path} has no ${number}` })),
      );
  });
}

function missing({ path }: SourceText, heading: string): Finding {
  return { path, line: 1, what: `has no table under '## ${heading}'` };
}

function isNoClaim(cell: string): boolean {
  return cell === '—' || /^not promised\b[^:]*: \w/.test(cell);
}

function hasEvidence(page: SourceText, cell: string): boolean {
  return linksIn(page.path, cell).some(({ path }) => path === AUDITOR || holdsTests(path));
}

function holdsTests(path: string): boolean {
  return path.endsWith('.test.ts') || /^testing\/conformance\/[\w-]*\.ts$/.test(path);
}

function linkProblem(path: string, names: string, lookup: Lookup): string | undefined {
  if (path === '') return undefined;
  const source = lookup(path);
  if (source === undefined) return `${path} does not exist`;
  if (path === AUDITOR && !invariantsOf(source).has(names))
    return `'${names}' is no invariant of ${path}`;
  if (path === FAULTS && !faultsOf(source).has(names)) return `'${names}' is no fault of ${path}`;
  if (holdsTests(path) && !textsOf(source).has(names)) return `${path} has no test '${names}'`;
  return undefined;
}

/** `[text](address)` or `[text](address "title")`. */
function linksIn(from: string, content: string): PageLink[] {
  const links = content.matchAll(/\[([^[\]]+)\]\(([^()\s]+)(?: "([^"]+)")?\)/g);
  return [...links].map(([, text = '', address = '', title]) => {
    const { protocol, pathname } = new URL(address, `file:///${from}`);
    const path = protocol === 'file:' ? pathname.slice(1) : '';
    return { path, names: title ?? text.replaceAll('`', '') };
  });
}

/** The first table below a heading, without its head. */
function rowsOf({ text }: SourceText, heading: string): Row[] {
  const lines = text.split('\n').map((content, i) => ({ content, line: i + 1 }));
  const from = lines.findIndex(({ content }) => content === `## ${heading}`);
  if (from < 0) return [];
  const rest = lines.slice(from + 1);
  const end = rest.findIndex(({ content }) => content.startsWith('#'));
  const section = end < 0 ? rest : rest.slice(0, end);
  const begin = section.findIndex(({ content }) => content.startsWith('|'));
  if (begin < 0) return [];
  const table = section.slice(begin);
  const length = table.findIndex(({ content }) => !content.startsWith('|'));
  return table
    .slice(2, length < 0 ? undefined : length)
    .map(({ content, line }) => ({ line, cells: content.split('|').slice(1, -1).map(trimmed) }));
}

function trimmed(cell: string): string {
  return cell.trim();
}

/** The members of `type Invariant`. */
function invariantsOf(source: SourceText): Set<string> {
  const found = new Set<string>();
  for (const node of nodesOf(source)) {
    if (!ts.isTypeAliasDeclaration(node) || node.name.text !== 'Invariant') continue;
    const types = ts.isUnionTypeNode(node.type) ? node.type.types : [node.type];
    for (const type of types)
      if (ts.isLiteralTypeNode(type) && ts.isStringLiteral(type.literal))
        found.add(type.literal.text);
  }
  return found;
}

/** The keys of `const KINDS`. */
function faultsOf(source: SourceText): Set<string> {
  const found = new Set<string>();
  for (const node of nodesOf(source)) {
    if (!ts.isPropertyAssignment(node)) continue;
    const list = ts.findAncestor(node, ts.isVariableDeclaration);
    if (list?.name.getText() !== 'KINDS') continue;
    if (ts.isIdentifier(node.name) || ts.isStringLiteral(node.name)) found.add(node.name.text);
  }
  return found;
}

const texts = new WeakMap<SourceText, Set<string>>();

/** Every string of the file: titles are given to `it`, to `describe`, and to functions of the tests' own. */
function textsOf(source: SourceText): Set<string> {
  const known = texts.get(source);
  if (known) return known;
  const found = new Set<string>();
  for (const node of nodesOf(source)) if (ts.isStringLiteralLike(node)) found.add(node.text);
  texts.set(source, found);
  return found;
}
