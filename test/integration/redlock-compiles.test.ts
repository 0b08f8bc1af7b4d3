import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FOLDER = `${ROOT}test/support/`;
const OURS = '../../src/redlock/index.ts';
const written = readFileSync(`${FOLDER}redlock-user.ts`, 'utf8');
/** The same program, but for what it imports. As a user's: the built package, and redlock's own types. */
const programs = new Map([
  [`${FOLDER}of-holdfast.ts`, written.replace(OURS, 'holdfast/redlock')],
  [`${FOLDER}of-redlock.ts`, written.replace(OURS, 'redlock')],
]);

const STRICT: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  types: ['node'],
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  noEmit: true,
  skipLibCheck: false,
  // Its `exports` do not lead to its types, so that nodenext does not find them.
  paths: { redlock: [`${ROOT}node_modules/redlock/dist/index.d.ts`] },
};

function compiled(): ts.Program {
  const host = ts.createCompilerHost(STRICT);
  const { readFile, fileExists, getSourceFile } = host;
  host.fileExists = (path) => programs.has(path) || fileExists.call(host, path);
  host.readFile = (path) => programs.get(path) ?? readFile.call(host, path);
  host.getSourceFile = (path, version, ...rest) => {
    const text = programs.get(path);
    if (text !== undefined) return ts.createSourceFile(path, text, version);
    return getSourceFile.call(host, path, version, ...rest);
  };
  return ts.createProgram([...programs.keys()], STRICT, host);
}

it("a program for redlock 5 compiles with holdfast/redlock by changing the import, and ours needs nobody else's types", () => {
  const program = compiled();
  const sources = program.getSourceFiles();
  const ours = sources.filter(({ fileName }) => fileName.startsWith(`${ROOT}dist/lib/redlock/`));
  expect(ours.map(({ fileName }) => fileName)).toContain(`${ROOT}dist/lib/redlock/index.d.ts`);
  expect(sources.map(({ fileName }) => fileName)).toContain(
    `${ROOT}node_modules/redlock/dist/index.d.ts`,
  );
  const theirs = sources.filter(({ fileName }) => programs.has(fileName));
  expect(theirs).toHaveLength(2);
  const problems = [...theirs, ...ours].flatMap((source) => [
    ...program.getSyntacticDiagnostics(source),
    ...program.getSemanticDiagnostics(source),
  ]);
  const text = ts.formatDiagnostics(problems, {
    getCurrentDirectory: () => ROOT,
    getCanonicalFileName: (name) => name,
    getNewLine: () => '\n',
  });
  expect(text).toBe('');
  const imported = ours.flatMap(({ text: declared }) => [
    ...declared.matchAll(/(?:from |import\()['"]([^'".][^'"]*)['"]/g),
  ]);
  const foreign = imported.map(([, name = '']) => name).filter((name) => !name.startsWith('node:'));
  expect(foreign).toEqual([]);
});
