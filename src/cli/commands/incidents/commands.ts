import type { Command } from 'commander';
import { examples, type Perform } from '../../command.ts';
import type { ReportFlags } from './report.ts';
import type { VerifyFlags } from './verify.ts';

const TIME = 'a time such as 03:10, of today or yesterday; or with its date: 2026-01-31T03:10Z';

export function addIncidents(program: Command, perform: Perform): void {
  program
    .command('verify')
    .summary('check the shared log, and what sinks recorded, for contradictions')
    .description(
      'Checks what instances wrote into the shared log: whether two had a key at once, whether a fence fell, and whether a write that a sink accepted is outside its tenure. ' +
        'Without a time, it checks all of the log. Exits with 80 if there is a contradiction.',
    )
    .option('--last <duration>', 'only this past time: 30m, 24h')
    .option('--from <time>', `from this time on: ${TIME}`)
    .option('--to <time>', 'until this time')
    .option('--key <key>', 'only this key')
    .option(
      '--sink <file...>',
      'what a sink recorded: a line of JSON for each write, { at, key, fence, accepted }',
    )
    .option('--tolerance <duration>', 'how far clocks of hosts may differ (default: 1s)')
    .addHelpText(
      'after',
      examples(
        'holdfast verify --last 24h',
        'holdfast verify --from 03:10 --to 03:20 --key device-7',
        'holdfast verify --sink writes.jsonl --json',
      ),
    )
    .action((flags: VerifyFlags) =>
      perform(async (context) => (await import('./verify.ts')).verifyLog(context, flags)),
    );
  program
    .command('report')
    .summary('write what happened to one page')
    .description(
      'Writes an HTML page about a time: who held what, who was uncertain or stood still, gaps, acts of operators, trouble of the store, and what verify says. The page needs no network. ' +
        'With --json, prints the same for programs.',
    )
    .option('--last <duration>', 'this past time: 30m, 24h (default: 1h)')
    .option('--from <time>', `from this time on: ${TIME}`)
    .option('--to <time>', 'until this time')
    .option('--key <key>', 'only this key')
    .option('--out <file>', 'write the page to this file')
    .addHelpText(
      'after',
      examples(
        'holdfast report --from 03:10 --to 03:20 --out incident.html',
        'holdfast report --last 30m --json',
      ),
    )
    .action((flags: ReportFlags) =>
      perform(async (context) => (await import('./report.ts')).report(context, flags)),
    );
}
