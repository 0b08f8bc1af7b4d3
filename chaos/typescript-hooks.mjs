// Lets Node load TypeScript by taking the types away; from Node 22.18 on it would do so by itself.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const compilerOptions = {
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.ESNext,
  verbatimModuleSyntax: true,
  inlineSourceMap: true,
};

export async function load(url, context, nextLoad) {
  if (!url.endsWith('.ts')) return nextLoad(url, context);
  const fileName = fileURLToPath(url);
  const text = await readFile(fileName, 'utf8');
  const { outputText } = ts.transpileModule(text, { fileName, compilerOptions });
  return { format: 'module', source: outputText, shortCircuit: true };
}
