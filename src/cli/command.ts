/** What the parts of the program have in common: how a command is performed, and how its help looks. */
import { InvalidArgumentError } from 'commander';
import type { Context } from './context.ts';
import type { Exit } from './exit-codes.ts';

export type Work = (context: Context) => Promise<Exit>;
export type Perform = (work: Work) => Promise<void>;

export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}\n`).join('')}`;
}

/** A fence given as an option. */
export function fenceNumber(text: string): number {
  if (!/^\d{1,16}$/.test(text))
    throw new InvalidArgumentError('It is a fence as ls and get show it, a whole number.');
  return Number(text);
}
