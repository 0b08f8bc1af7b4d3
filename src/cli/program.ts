/** The commands, their options and their help. What a command needs is loaded when it runs: help costs nothing. */
import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import { packageVersion } from '../core/version.ts';
import { examples, fenceNumber, type Perform, type Work } from './command.ts';
import { SHELLS, type Shell } from './commands/completion.ts';
import { addDemo } from './commands/demo/commands.ts';
import { addFleet, addUp } from './commands/fleet/commands.ts';
import { addIntents } from './commands/intents/commands.ts';
import type { RevokeFlags } from './commands/leases/leases.ts';
import type { RunFlags } from './commands/run/run.ts';
import { addSessions } from './commands/sessions/commands.ts';
import { addSlots } from './commands/slots/commands.ts';
import type { MaxTtlFlags } from './commands/store/max-ttl.ts';
import { addDeadLetters, addWorkflows } from './commands/workflows/commands.ts';
import type { StoreFlags } from './context.ts';
import { EXIT, EXIT_MEANINGS, type Exit } from './exit-codes.ts';
import { Output, write } from './ui/output.ts';

interface GlobalFlags extends StoreFlags {
  readonly json?: boolean;
  readonly color: boolean;
}

/** The program; `onExit` is told what a command came to. */
export function buildProgram(onExit: (exit: Exit) => void): Command {
  const program = new Command('holdfast')
    .description('Gives every piece of ongoing work one owner.')
    .version(packageVersion(), '-V, --version', 'show the version')
    .helpOption('-h, --help', 'show help')
    .option('--store <url>', 'address of the store; where it has a password, use HOLDFAST_STORE')
    .option('--prefix <text>', 'put before every key in the store (HOLDFAST_PREFIX)')
    .addOption(quarantineOption())
    .addOption(maxTtlOption())
    .option(
      '--config <file>',
      'the configuration (HOLDFAST_CONFIG; default: holdfast.config.mjs here or above)',
    )
    .option('--json', 'results and errors as JSON')
    .option('--no-color', 'no colours, even on a terminal (NO_COLOR)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => write(1, text),
      writeErr: (text) => write(2, text),
      // Whoever catches the error says it, in one line or as JSON.
      outputError: () => {},
    })
    .addHelpText('after', () => `\n${exitCodeHelp()}`);

  const perform = async (work: Work) => {
    const { json = false, color, ...given } = program.opts<GlobalFlags>();
    const { store, prefix, quarantine, maxTtl, config } = given;
    const flags = {
      ...(store !== undefined && { store }),
      ...(prefix !== undefined && { prefix }),
      ...(quarantine !== undefined && { quarantine }),
      ...(maxTtl !== undefined && { maxTtl }),
      ...(config !== undefined && { config }),
    };
    const output = new Output({ json, color: color && !process.env.NO_COLOR });
    onExit(await work({ flags, output }));
  };
  addUp(program, perform);
  addDemo(program, perform);
  addSessions(program, perform);
  addFleet(program, perform);
  addIntents(program, perform);
  addSlots(program, perform);
  addWorkflows(program, perform);
  addDeadLetters(program, perform);
  addRun(program, perform);
  addInspection(program, perform);
  addCompletion(program, onExit);
  return program;
}

function addRun(program: Command, perform: Perform): void {
  program
    .command('run')
    .summary('run a command while holding a lease')
    .description(
      'Runs a command while holding a lease. The command and its process group are dead before anyone else can have ' +
        'the lease, also if this process is killed. The command finds HOLDFAST_LEASE_KEY and HOLDFAST_LEASE_FENCE in ' +
        'its environment.',
    )
    .argument('<KEY>', 'what to hold')
    .argument('<command...>', 'what to run, after --')
    .option('--ttl <duration>', 'how long the lease lasts without a renewal (default: 30s)')
    .option('--wait <duration>', 'how long to wait for it (default: do not)')
    .option(
      '--grace <duration>',
      'from SIGTERM to SIGKILL when the lease is lost (default: 5s, or a sixth of the ttl)',
    )
    .option(
      '--slots <number>',
      'let so many run at once: hold one slot of a pool, not the key',
      slots,
    )
    .option('--quiet', 'say nothing if the lease is held by another')
    .option(
      '--held-exit-code <number>',
      'exit code if the lease is held by another, instead of 75',
      exitCode,
    )
    .addHelpText(
      'after',
      examples(
        'holdfast run nightly-report -- ./report.sh',
        'holdfast run --wait 10m --ttl 1m migrations -- npm run migrate',
        'holdfast run --slots 4 --wait 1h encoders -- ./encode.sh film.mkv    # four at once, on all machines together',
        'holdfast run --quiet --held-exit-code 0 mails -- ./send.sh    # in cron on three machines',
      ),
    )
    .action((key: string, command: string[], flags: RunFlags) =>
      perform(async (context) =>
        (await import('./commands/run/run.ts')).run(context, key, command, flags),
      ),
    );
}

function addInspection(program: Command, perform: Perform): void {
  const load = () => import('./commands/leases/leases.ts');
  program
    .command('ls')
    .summary('list who holds what')
    .description('Lists every lease: your own, those of targets (class poll) and of workflows.')
    .argument('[PREFIX]', 'only keys that begin so', '')
    .addHelpText('after', examples('holdfast ls', 'holdfast ls --json nightly-'))
    .action((prefix: string) => perform(async (context) => (await load()).ls(context, prefix)));
  program
    .command('get')
    .summary('show who holds a key')
    .description('Shows who holds a key; exits with 1 if nobody does.')
    .argument('<KEY>')
    .addHelpText('after', examples('holdfast get nightly-report'))
    .action((key: string) => perform(async (context) => (await load()).get(context, key)));
  program
    .command('revoke')
    .summary('take a lease away from its holder')
    .description('Takes a lease away from its holder. Nobody gets it while that one may still act.')
    .argument('<KEY>')
    .requiredOption('--reason <text>', 'why, for whoever asks')
    .option(
      '--force',
      'free the key at once: the old holder and a new one may both act for a while',
    )
    .option(
      '--fence <number>',
      'only the lease with this fence, as ls and get show it; default: the lease that is held now',
      fenceNumber,
    )
    .option('--target', 'KEY is something that is polled; to move it, use transfer')
    .addHelpText(
      'after',
      examples(
        "holdfast revoke nightly-report --reason 'hangs since noon'",
        "holdfast revoke device-7 --target --reason 'its owner polls the wrong thing'",
      ),
    )
    .action((key: string, flags: RevokeFlags) =>
      perform(async (context) => (await load()).revoke(context, key, flags)),
    );
  program
    .command('max-ttl')
    .summary('show or change how long leases of the store may last')
    .description(
      'Shows how long leases of the store may last without a renewal. With options, changes it: only while no lease is held, so stop every process of the store first.',
    )
    .option('--lease <time>', 'for leases, pools and commands')
    .option('--poll <time>', 'for targets of the fleet')
    .option('--workflow <time>', 'for workflows')
    .addHelpText('after', examples('holdfast max-ttl', 'holdfast max-ttl --lease 2m'))
    .action((flags: MaxTtlFlags) =>
      perform(async (context) =>
        (await import('./commands/store/max-ttl.ts')).maxTtl(context, flags),
      ),
    );
  program
    .command('doctor')
    .summary('examine the store')
    .description('Examines the store: is it fit for leases, and how far away?')
    .addHelpText('after', examples('holdfast doctor', 'holdfast doctor --json'))
    .action(() =>
      perform(async (context) => (await import('./commands/store/doctor.ts')).doctor(context)),
    );
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
    'off only for development: a store that forgot leases grants them anew at once (HOLDFAST_QUARANTINE)';
  return new Option('--quarantine <mode>', text).choices(['on', 'off']);
}

function maxTtlOption(): Option {
  const text =
    "how long leases may last: '60s', or 'lease=60s,poll=30s,workflow=5m'. The same for every process of the store (HOLDFAST_MAX_TTL)";
  return new Option('--max-ttl <time>', text);
}

function exitCode(text: string): number {
  if (!/^\d{1,3}$/.test(text) || Number(text) > 255)
    throw new InvalidArgumentError('It is a number from 0 to 255.');
  return Number(text);
}

function slots(text: string): number {
  if (!/^\d{1,3}$/.test(text) || Number(text) < 1 || Number(text) > 256)
    throw new InvalidArgumentError('It is a number from 1 to 256.');
  return Number(text);
}

function exitCodeHelp(): string {
  const lines = EXIT_MEANINGS.map(([code, meaning]) => `  ${code.padEnd(6)} ${meaning}\n`);
  return `Exit codes:\n${lines.join('')}`;
}
