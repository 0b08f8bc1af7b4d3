/** What the declarations of all commands share. */
import { InvalidArgumentError } from 'commander';
import type { Context } from './context.ts';
import type { Exit } from './exit-codes.ts';

type Work = (context: Context) => Promise<Exit>;
export type Perform = (work: Work) => Promise<void>;

/** The headings under which `holdfast --help` lists the commands, in this order. */
export const GROUP = {
  run: 'Run it:',
  look: 'Look:',
  steer: 'Steer:',
  work: 'Work:',
  admin: 'Admin:',
} as const;

export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}\n`).join('')}`;
}

/** Performs a command under its old name, after a notice that gives the new one. */
export function renamed(perform: Perform, before: string, now: string): Perform {
  return (work) =>
    perform((context) => {
      context.output.note(`'${before}' is now '${now}'`);
      return work(context);
    });
}

/** Reads a whole number in a range from the command line. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Give a whole number from ${min} to ${max}.`);
  };
}

/** A fence given as an option. */
export function fenceNumber(text: string): number {
  if (/^\d{1,16}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Give a whole number, as 'holdfast ls' shows it.");
}
