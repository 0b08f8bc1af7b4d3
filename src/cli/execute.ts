import { constants } from 'node:os';
import { type Command, CommanderError } from 'commander';
import { systemClock } from '../core/clock.ts';
import { EXIT, type Exit, exitOf, usageError } from './exit-codes.ts';
import { flushOutput, Output } from './ui/output.ts';

/** The first process of a container survives its own signal. It exits after this long instead. */
const RAISED_WITHIN_MS = 100;

/** Builds a program. `onExit` gets the exit code of its command. */
type Build = (onExit: (exit: Exit) => void) => Command;

/** Runs the command that the arguments name, and ends the process. */
export async function execute(args: readonly string[], build: Build): Promise<void> {
  process.once('uncaughtException', (error) => process.exit(failure(error, args)));
  let exit: Exit = EXIT.internal;
  const program = build((code) => {
    exit = code;
  });
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    exit = failure(error, args);
  }
  await flushOutput();
  if (typeof exit === 'number') process.exit(exit);
  endBy(exit);
}

function failure(error: unknown, args: readonly string[]): number {
  const isCommander = error instanceof CommanderError;
  // Help and version are printed already. Help that was not asked for means wrong usage.
  if (isCommander && error.exitCode === 0) return EXIT.ok;
  if (isCommander && error.code === 'commander.help') return EXIT.usage;
  const known = isCommander ? usageError(usageMessage(error, args)) : error;
  const ours = args.includes('--') ? args.slice(0, args.indexOf('--')) : args;
  new Output({ json: ours.includes('--json'), color: false }).complain(known);
  return exitOf(known);
}

function usageMessage({ code, message }: CommanderError, args: readonly string[]): string {
  const what = message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' ');
  const isMixedUp =
    code === 'commander.unknownOption' && args.includes('run') && !args.includes('--');
  const advice = isMixedUp
    ? 'If it is an option of your command, put -- before the command. See: holdfast run --help'
    : 'See: holdfast --help';
  return `${what.replace(/\.$/, '')}. ${advice}`;
}

/** Ends by the signal, so that a shell sees it. */
function endBy(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  systemClock.after(RAISED_WITHIN_MS, () => process.exit(128 + constants.signals[signal]));
}
