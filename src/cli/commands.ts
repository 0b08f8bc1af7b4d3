/** What the parts of the program have in common: how a command is performed, and how its help looks. */
import type { Context } from './context.ts';
import type { Exit } from './exit-codes.ts';

export type Work = (context: Context) => Promise<Exit>;
export type Perform = (work: Work) => Promise<void>;

export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}\n`).join('')}`;
}
