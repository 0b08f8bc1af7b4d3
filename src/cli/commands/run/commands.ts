import type { Command } from 'commander';
import { examples, type Perform, wholeNumber } from '../../command.ts';
import type { RunFlags } from './run.ts';

export function addRun(program: Command, perform: Perform): void {
  program
    .command('run')
    .summary('run a command while holding a lease')
    .description(
      'Runs a command while holding a lease. The command and its process group end before another holder can get the ' +
        'lease, even if this process is killed. The command has HOLDFAST_LEASE_KEY and HOLDFAST_FENCE in its environment.',
    )
    .argument('<KEY>', 'the key to hold')
    .argument('<command...>', 'the command to run, after --')
    .option('--ttl <duration>', 'how long the lease lasts without a renewal (default: 30s)')
    .option('--wait <duration>', 'how long to wait for the lease (default: do not wait)')
    .option(
      '--grace <duration>',
      'from SIGTERM to SIGKILL when the lease is lost (default: 5s, at most a sixth of the TTL)',
    )
    .option(
      '--slots <number>',
      'hold one of this many slots instead of the key, so that this many commands run at once',
      wholeNumber(1, 10_000),
    )
    .option(
      '--once-per <duration>',
      'run the command once in each period, on whichever machine comes first; others exit with 0',
    )
    .option(
      '--tolerance <duration>',
      'how far the clocks of machines may differ, and how late a run may begin (default: a quarter of the period)',
    )
    .option(
      '--on-crash <skip|retry>',
      'after a run that did not end: skip its period, or let the next call start over (default: skip)',
    )
    .option(
      '--hold-at-least <duration>',
      'how long the lease stays taken, even if the command ends earlier',
    )
    .option(
      '--quiet',
      'print nothing if another holder has the lease, or the period has had its run',
    )
    .option(
      '--held-exit-code <number>',
      'exit code if another holder has the lease, instead of 75, or of 0 with --once-per',
      wholeNumber(0, 255),
    )
    .addHelpText(
      'after',
      examples(
        'holdfast run nightly-report -- ./report.sh',
        'holdfast run --wait 10m --ttl 1m migrations -- npm run migrate',
        'holdfast run --slots 4 --wait 1h encoders -- ./encode.sh film.mkv',
        'holdfast run --once-per 1d nightly -- ./report.sh             # the same crontab on every machine',
        'holdfast run --once-per 1h --tolerance 1m --on-crash retry --wait 20m sync -- ./sync.sh',
        'holdfast run --hold-at-least 60s --quiet --held-exit-code 0 mails -- ./send.sh',
      ),
    )
    .action((key: string, command: string[], flags: RunFlags) =>
      perform(async (context) => (await import('./run.ts')).run(context, key, command, flags)),
    );
}
