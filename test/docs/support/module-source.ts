import ts from 'typescript';
import type { Finding } from '../../support/source-tree.ts';
import type { Block, Piece } from './markdown.ts';

/**
 * One or more blocks as one module: what `before` says, the block, what `after` says, and the same of those that
 * continue it. Every line knows where it stands on the page.
 */
export class ModuleSource {
  readonly blocks: readonly Block[];
  /** Its name, without an ending. */
  readonly name: string;
  readonly isTyped: boolean;
  readonly #pieces: readonly (Piece & { isRun: boolean })[];
  readonly #lines: readonly number[];

  constructor(blocks: readonly Block[]) {
    const [first] = blocks;
    if (first === undefined) throw new Error('a module has at least one block');
    this.blocks = blocks;
    this.name = first.file?.replace(/\.\w+$/, '') ?? `block-${first.line}`;
    this.isTyped = blocks.some(({ language }) => language === 'ts');
    this.#pieces = blocks.flatMap((block) => {
      const isRun = block.notRun === undefined;
      const own = { line: block.line + 1, text: block.text };
      return [...block.before, own, ...block.after].map((piece) => ({ ...piece, isRun }));
    });
    this.#lines = [
      first.line,
      ...this.#pieces.flatMap(({ line, text }) => text.split('\n').map((_, i) => line + i)),
    ];
  }

  get path(): string {
    return this.blocks[0]?.path ?? '';
  }

  get isRun(): boolean {
    return this.#pieces.some(({ isRun }) => isRun);
  }

  /** Everything, as it is held to its types. */
  get text(): string {
    return [this.#assertion(), ...this.#pieces.map(({ text }) => text)].join('\n');
  }

  /** As JavaScript, or why it can not be. Errors in it name lines of `NAME.ts` or `NAME.js`, which `pageLine` knows. */
  javascript(rewrite: (text: string) => string): { code: string; findings: Finding[] } {
    const pieces = this.#pieces.map(({ text, isRun }) =>
      // Lines stay where they are.
      isRun ? rewrite(text) : text.replace(/[^\n]/g, ''),
    );
    const text = [this.#assertion(), ...pieces].join('\n');
    const { outputText, diagnostics = [] } = ts.transpileModule(text, {
      fileName: `${this.name}.${this.isTyped ? 'ts' : 'js'}`,
      reportDiagnostics: true,
      compilerOptions: {
        // Node 20 has no `await using` of its own.
        target: ts.ScriptTarget.ES2023,
        module: ts.ModuleKind.ESNext,
        experimentalDecorators: true,
        emitDecoratorMetadata: true,
        inlineSourceMap: true,
        inlineSources: true,
      },
    });
    const findings = diagnostics.map(({ file, start = 0, messageText }) => ({
      path: this.path,
      line: this.pageLine((file?.getLineAndCharacterOfPosition(start).line ?? 0) + 1),
      what: `makes no sense: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
    }));
    return { code: outputText, findings };
  }

  /** Where a line of this module, counted from 1, stands on the page. */
  pageLine(line: number): number {
    return this.#lines[Math.min(line, this.#lines.length) - 1] ?? 1;
  }

  #assertion(): string {
    const isThere = this.#pieces.some(({ text }) => /\bassert\b.*from 'node:assert/.test(text));
    return isThere ? '' : `import assert from 'node:assert/strict';`;
  }
}
