import { type Command, Option } from 'commander';
import { LOG_LEVELS } from '../../../telemetry/levels.ts';
import { examples, type Perform, wholeNumber } from '../../command.ts';
import type { UpFlags } from './up.ts';

/** The same as in a configuration: `config-schema.ts` would load zod. */
const MAX_PROCESSES = 64;
/** The poller checks the weight itself; this keeps absurd numbers out. */
const MAX_WEIGHT = 999_999_999;

export function addUp(program: Command, perform: Perform): void {
  program
    .command('up')
    .summary('run one instance: API, poller and worker')
    .description(
      'Runs one instance of a fleet. It serves the API, polls its share of the targets and runs sessions. It takes over ' +
        'from instances that stop or die, and hands its work over when it is told to stop (Ctrl-C, SIGTERM). While the ' +
        'store is unavailable it keeps trying. It logs JSON, or text on a terminal. holdfast.config.mjs has more options: ' +
        'docs/reference/configuration.md.',
    )
    .option('--roles <roles>', 'roles, separated by commas (default: api,poller,worker)', (text) =>
      text.split(','),
    )
    .option('--host <address>', 'address that the API listens on (default: 127.0.0.1)')
    .option(
      '--port <number>',
      'port of the API (default: 4747, or a free one)',
      wholeNumber(0, 65_535),
    )
    .option(
      '--processes <number>',
      'processes that share the port of the API, for a host with several cores; with --roles api (default: 1)',
      wholeNumber(1, MAX_PROCESSES),
    )
    .option('--name <text>', "readable part of the instance's id (default: the host's name)")
    .option(
      '--weight <number>',
      'share of the targets, relative to other instances (default: 1)',
      wholeNumber(0, MAX_WEIGHT),
    )
    .option('--every <duration>', 'poll interval of targets without one (default: 10s)')
    .option(
      '--ttl <duration>',
      'TTL of the leases of targets: after a crash, another instance takes over within it (default: 30s)',
    )
    .option(
      '--kinds <kinds>',
      'kinds of sessions that its worker takes, separated by commas (default: all that have a pipeline)',
      (text) => text.split(',').map((kind) => kind.trim()),
    )
    .option(
      '--worker-name <name>',
      'name of its worker, unique and the same at every start: a restarted worker frees at once what it held (HOLDFAST_WORKER_NAME; default: none)',
    )
    .addOption(
      new Option('--log-level <level>', 'lowest level to log').choices(LOG_LEVELS).default('info'),
    )
    .option('--stop-within <duration>', 'time for polls and sessions to end on stopping', '10s')
    .addHelpText(
      'after',
      examples(
        'holdfast up',
        'HOLDFAST_STORE=redis://redis.internal:6379 holdfast up --weight 2',
        'holdfast up --roles poller --config ./poller.config.mjs',
        'HOLDFAST_API_TOKEN=… holdfast up --roles api --host 0.0.0.0 --port 8080',
        'HOLDFAST_API_TOKEN=… holdfast up --roles api --processes 4',
        'holdfast up --roles worker --worker-name box-1',
        'holdfast up --roles worker --kinds transcode',
      ),
    )
    .action((flags: UpFlags) =>
      perform(async (context) => (await import('./up.ts')).up(context, flags)),
    );
}
