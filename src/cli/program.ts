/**
 * The program: its options, its commands in groups, and its help. A command loads its code when it
 * runs, so help is fast.
 */
import { Argument, Command, Help, Option } from 'commander';
import { packageVersion } from '../core/version.ts';
import { examples, GROUP, type Work } from './command.ts';
import { addAdmin } from './commands/admin/commands.ts';
import { SHELLS, type Shell } from './commands/completion.ts';
import { addDemo } from './commands/demo/commands.ts';
import { addFleetSteering, addFleetViews } from './commands/fleet/commands.ts';
import { addIncidents } from './commands/incidents/commands.ts';
import { addIntents } from './commands/intents/commands.ts';
import { addLeaseViews, addRevoke } from './commands/leases/commands.ts';
import { addRun } from './commands/run/commands.ts';
import { addSessions } from './commands/sessions/commands.ts';
import { addSlots } from './commands/slots/commands.ts';
import { addTargets } from './commands/targets/commands.ts';
import { addUp } from './commands/up/commands.ts';
import { addDeadLetters, addWorkflows } from './commands/workflows/commands.ts';
import type { StoreFlags } from './context.ts';
import { EXIT, EXIT_MEANINGS, type Exit } from './exit-codes.ts';
import { Output, write } from './ui/output.ts';

interface GlobalFlags extends StoreFlags {
  readonly json?: boolean | undefined;
  readonly color: boolean;
}

/** No help line is wider. */
const HELP_COLUMNS = 80;

/** Builds the program. `onExit` gets the exit code of the command. */
export function buildProgram(onExit: (exit: Exit) => void): Command {
  const program = new Command('holdfast')
    .description('Gives every piece of ongoing work one owner.')
    .version(packageVersion(), '-V, --version', 'show the version')
    .helpOption('-h, --help', 'show help')
    .addOption(
      new Option(
        '--store <url>',
        'address of the store (HOLDFAST_STORE; use that for an address with a password)',
      ),
    )
    .option('--prefix <text>', 'text before every key in the store (HOLDFAST_PREFIX)')
    .addOption(quarantineOption())
    .addOption(maxTtlOption())
    .option(
      '--config <file>',
      'configuration file (HOLDFAST_CONFIG; default: holdfast.config.mjs here or above)',
    )
    .option('--json', 'print results and errors as JSON')
    .option('--no-color', 'print without colours (NO_COLOR)')
    .exitOverride()
    .configureHelp({ optionDescription: describedOption })
    .configureOutput({
      writeOut: (text) => write(1, text),
      writeErr: (text) => write(2, text),
      getOutHelpWidth: () => Math.min(process.stdout.columns || HELP_COLUMNS, HELP_COLUMNS),
      getErrHelpWidth: () => Math.min(process.stderr.columns || HELP_COLUMNS, HELP_COLUMNS),
      // `main` prints the error, as one line or as JSON.
      outputError: () => {},
    })
    .addHelpText('after', () => `${rootExamples()}\n${exitCodeHelp()}`);

  const perform = async (work: Work) => {
    const { json = false, color, ...flags } = program.opts<GlobalFlags>();
    const output = new Output({ json, color: color && !process.env.NO_COLOR });
    onExit(await work({ flags, output }));
  };
  program.commandsGroup(GROUP.run);
  addRun(program, perform);
  addUp(program, perform);
  addDemo(program, perform);
  program.commandsGroup(GROUP.look);
  addLeaseViews(program, perform);
  addFleetViews(program, perform);
  addSlots(program, perform);
  addIncidents(program, perform);
  program.commandsGroup(GROUP.steer);
  addRevoke(program, perform);
  addFleetSteering(program, perform);
  program.commandsGroup(GROUP.work);
  addTargets(program, perform);
  addIntents(program, perform);
  addSessions(program, perform);
  addWorkflows(program, perform);
  addDeadLetters(program, perform);
  program.commandsGroup(GROUP.admin);
  addAdmin(program, perform);
  addCompletion(program, onExit);
  program.helpCommand('help [command]', 'show the help of a command');
  return program;
}

function addCompletion(program: Command, onExit: (exit: Exit) => void): void {
  program
    .command('completion')
    .summary('print a completion script for a shell')
    .description('Prints a completion script for a shell.')
    .addArgument(new Argument('<shell>').choices(SHELLS))
    .addHelpText(
      'after',
      examples('source <(holdfast completion bash)', 'holdfast completion fish | source'),
    )
    .action(async (shell: Shell) => {
      const { completionScript } = await import('./commands/completion.ts');
      write(1, completionScript(program, shell));
      onExit(EXIT.ok);
    });
}

function quarantineOption(): Option {
  const text =
    'off: after losing data, the store grants leases again at once; for development only (HOLDFAST_QUARANTINE)';
  return new Option('--quarantine <mode>', text).choices(['on', 'off']);
}

function maxTtlOption(): Option {
  const text =
    'longest TTL of leases: 60s, or lease=60s,poll=30s,workflow=5m; the same for every process of the store (HOLDFAST_MAX_TTL)';
  return new Option('--max-ttl <time>', text);
}

/** Marks options without which a command does not run. */
function describedOption(option: Option): string {
  const text = Help.prototype.optionDescription.call(new Help(), option);
  return option.mandatory ? `${text} (required)` : text;
}

function rootExamples(): string {
  return examples(
    'holdfast run nightly-report -- ./report.sh',
    'holdfast targets add https://example.com/health && holdfast up',
    'holdfast ls',
  );
}

function exitCodeHelp(): string {
  const lines = EXIT_MEANINGS.map(
    ([code, meaning]) => `  ${code.padEnd(6)} ${indented(meaning)}\n`,
  );
  return `Exit codes:\n${lines.join('')}`;
}

/** The text in lines that fit beside an exit code. */
function indented(text: string): string {
  const indent = ' '.repeat(9);
  const lines = [''];
  for (const word of text.split(' ')) {
    const last = lines.at(-1) ?? '';
    const longer = last === '' ? word : `${last} ${word}`;
    if (longer.length + indent.length <= HELP_COLUMNS) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.join(`\n${indent}`);
}
