import { execute } from './execute.ts';
import { buildProgram } from './program.ts';

/** Runs any command. */
export function main(args: readonly string[]): Promise<void> {
  return execute(args, buildProgram);
}
