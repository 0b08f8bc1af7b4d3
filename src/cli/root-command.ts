/** The program without its commands: what every command line has in common. */
import { Command, Help, Option } from 'commander';
import { packageVersion } from '../core/version.ts';
import { examples, type Perform } from './command.ts';
import type { StoreFlags } from './context.ts';
import { EXIT_MEANINGS, type Exit } from './exit-codes.ts';
import { Output, write } from './ui/output.ts';

interface GlobalFlags extends StoreFlags {
  readonly json?: boolean | undefined;
  readonly color: boolean;
}

/** No help line is wider. */
const HELP_COLUMNS = 80;

export interface RootCommand {
  readonly program: Command;
  /** Does the work of a command, with the global flags. */
  readonly perform: Perform;
}

/** `onExit` gets the exit code of the command. */
export function rootCommand(onExit: (exit: Exit) => void): RootCommand {
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
      // `execute` prints the error, as one line or as JSON.
      outputError: () => {},
    })
    .addHelpText('after', () => `${rootExamples()}\n${exitCodeHelp()}`);

  const perform: Perform = async (work) => {
    const { json = false, color, ...flags } = program.opts<GlobalFlags>();
    const output = new Output({ json, color: color && !process.env.NO_COLOR });
    onExit(await work({ flags, output }));
  };
  return { program, perform };
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
