import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import type { Finding } from '../../support/source-tree.ts';
import type { Consumer } from './consumer.ts';
import type { ModuleSource } from './module-source.ts';

/** A strict project of somebody who has installed the package. */
const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  types: ['node'],
  noEmit: true,
  strict: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: true,
  // As every Nest project has them.
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
};

/**
 * Holds all modules to their types, in one program: the declarations of everything they import are read once. Modules
 * of one page may import each other.
 */
export function typeFindings(consumer: Consumer, modules: readonly ModuleSource[]): Finding[] {
  const folder = consumer.subfolder('types');
  const sources = new Map(
    modules
      .filter(({ isTyped }) => isTyped)
      .map((module) => {
        const file = join(folder, module.path.replace(/\W+/g, '-'), `${module.name}.ts`);
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, module.text);
        return [file, module] as const;
      }),
  );
  const paths = {
    // Its package.json does not tell where its types are when it is imported as a module.
    redlock: [join(consumer.folder, 'node_modules/redlock/dist/index.d.ts')],
  };
  const program = ts.createProgram([...sources.keys()], { ...OPTIONS, paths });
  return ts.getPreEmitDiagnostics(program).map((diagnostic) => found(diagnostic, sources));
}

function found(diagnostic: ts.Diagnostic, sources: ReadonlyMap<string, ModuleSource>): Finding {
  const { file, start = 0 } = diagnostic;
  const what = ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n  ');
  const module = file && sources.get(file.fileName);
  if (file === undefined || module === undefined) {
    return { path: file?.fileName ?? 'the project of all blocks', line: 1, what };
  }
  const { line } = file.getLineAndCharacterOfPosition(start);
  return {
    path: module.path,
    line: module.pageLine(line + 1),
    what: `does not compile: ${what} (TS${diagnostic.code})`,
  };
}
