import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = new URL('../../', import.meta.url);

export interface SourceText {
  /** From the root of the repository, with slashes. */
  path: string;
  text: string;
}

/** Something that is not as it should be, and what to do about it. */
export interface Finding {
  path: string;
  line: number;
  what: string;
}

/** The files under these folders whose names end so. A folder that does not exist has none. */
export function readTree(folders: readonly string[], extensions: readonly string[]): SourceText[] {
  return folders
    .flatMap((folder) => pathsUnder(folder))
    .filter((path) => extensions.some((extension) => path.endsWith(extension)))
    .map((path) => readSource(path));
}

export function readSource(path: string): SourceText {
  return { path, text: readFileSync(new URL(path, ROOT), 'utf8') };
}

function pathsUnder(folder: string): string[] {
  const options = { recursive: true, withFileTypes: true } as const;
  try {
    return readdirSync(fileURLToPath(new URL(folder, ROOT)), options)
      .filter((entry) => entry.isFile())
      .map((entry) => `${entry.parentPath}/${entry.name}`.replaceAll('\\', '/'))
      .map((path) => path.slice(fileURLToPath(ROOT).length))
      .sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

const parsed = new WeakMap<SourceText, ts.SourceFile>();

export function parse(source: SourceText): ts.SourceFile {
  const known = parsed.get(source);
  if (known) return known;
  const tree = ts.createSourceFile(source.path, source.text, ts.ScriptTarget.Latest, true);
  parsed.set(source, tree);
  return tree;
}

/** Every node of the file, from the top down. */
export function* nodesOf(source: SourceText): Generator<ts.Node> {
  const pending: ts.Node[] = [parse(source)];
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    yield node;
    const children: ts.Node[] = [];
    ts.forEachChild(node, (child) => {
      children.push(child);
    });
    pending.push(...children.reverse());
  }
}

export function finding(source: SourceText, node: ts.Node, what: string): Finding {
  const { line } = parse(source).getLineAndCharacterOfPosition(node.getStart(parse(source)));
  return { path: source.path, line: line + 1, what };
}

/** One line per finding, as editors and terminals make links of. Empty when all is well. */
export function report(findings: readonly Finding[]): string {
  return findings.map(({ path, line, what }) => `${path}:${line} ${what}`).join('\n');
}
