/** Stryker's mutants of TypeScript files: each file once, with all its mutants in it, of which a number switches one on. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Instrumenter } from '@stryker-mutator/instrumenter';
import { isText } from './texts.mjs';

const silent = new Proxy({}, { get: () => () => false });
const ignorers = [{ shouldIgnore: ({ node }) => (isText(node) ? 'text for people' : undefined) }];

/** `sources`: what each file becomes. `mutants`: each as plain facts, and without an answer yet. */
export async function mutateTypeScript(root, files) {
  const texts = files.map((file) => readFileSync(join(root, file), 'utf8'));
  const inputs = files.map((file, index) => ({ name: file, mutate: true, content: texts[index] }));
  const options = { excludedMutations: [], ignorers, plugins: null, noHeader: false };
  const result = await new Instrumenter(silent).instrument(inputs, options);
  const lines = new Map(files.map((file, index) => [file, texts[index].split('\n')]));
  return {
    sources: result.files.map(({ name, content }) => [name, content]),
    mutants: result.mutants
      .filter(({ statusReason }) => statusReason === undefined)
      .map((mutant) => factsOf(mutant, lines.get(mutant.fileName))),
  };
}

function factsOf({ id, fileName, mutatorName, location: { start, end }, replacement }, lines) {
  const rows = lines.slice(start.line, end.line + 1);
  const cut = rows.map((row, index) =>
    row.slice(index === 0 ? start.column : 0, index === rows.length - 1 ? end.column : row.length),
  );
  return {
    id,
    file: fileName,
    line: start.line + 1,
    kind: mutatorName,
    code: flat(rows[0] ?? ''),
    was: flat(cut.join('\n')),
    becomes: flat(replacement),
  };
}

function flat(text) {
  return text.replace(/\s+/g, ' ').trim();
}
