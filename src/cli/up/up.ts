/**
 * `holdfast up`: one instance of a fleet that shares its targets. It takes part until it is told to stop, and then hands
 * over what it has. While the store is away it says so and goes on trying, at the start and later.
 */
import { isatty } from 'node:tty';
import { systemClock } from '../../base/clock.ts';
import { type Duration, durationMs } from '../../base/duration.ts';
import { ConfigError } from '../../base/errors.ts';
import type { HoldfastConfig } from '../../config.ts';
import { open } from '../../holdfast.ts';
import type { PollerOptions } from '../../polling/poller.ts';
import type { LogLevel } from '../../telemetry/levels.ts';
import { Log } from '../../telemetry/log.ts';
import type { Context } from '../context.ts';
import { Ending } from '../ending.ts';
import { CliError, EXIT, type Exit } from '../exit-codes.ts';
import { openWith } from '../opening.ts';
import { readSettings } from '../settings.ts';
import { StatusLine } from '../status-line.ts';
import { connect } from './connecting.ts';
import { greet } from './greeting.ts';
import { stopWithProgress } from './handing-over.ts';
import { stdoutSink, terminalSink } from './log-sink.ts';

export interface UpFlags {
  readonly name?: string;
  readonly weight?: number;
  readonly every?: Duration;
  readonly ttl?: Duration;
  readonly logLevel: LogLevel;
  readonly stopWithin: Duration;
}

/** What a configuration says to the poller. */
const FOR_POLLER = [
  ...['weight', 'every', 'ttl', 'timeout', 'concurrency', 'results', 'discovery', 'http', 'poll'],
];

export async function up(
  { flags, output }: Context,
  { logLevel, stopWithin, ...given }: UpFlags,
): Promise<Exit> {
  const stopWithinMs = durationMs(stopWithin, '--stop-within');
  const settings: HoldfastConfig = { ...(await readSettings(flags)), ...given };
  await rehearse(settings, given);
  const ending = new Ending();
  const status = isatty(1) && !output.json ? new StatusLine() : null;
  const sink = status === null ? stdoutSink() : terminalSink(status, output);
  const log = new Log({ clock: systemClock, level: logLevel, write: (line) => sink.write(line) });
  try {
    return await takePart({ settings, log, status, ending, stopWithinMs });
  } finally {
    await sink.close();
    ending.close();
  }
}

interface Part {
  readonly settings: HoldfastConfig;
  readonly log: Log;
  /** Present on a terminal. */
  readonly status: StatusLine | null;
  readonly ending: Ending;
  readonly stopWithinMs: number;
}

async function takePart({ settings, log, status, ending, stopWithinMs }: Part): Promise<Exit> {
  const { name } = settings;
  const options = { ...(name !== undefined && { name }), on: log.listeners() };
  const holdfast = await connect(() => openWith(settings, options), log, ending);
  if (holdfast === null) return EXIT.ok;
  log.identify(holdfast.instanceId);
  const poller = holdfast.poller(pollerOptions(settings));
  const instance = { holdfast, poller, log, status };
  await ending.unlessAsked(poller.start());
  if (!ending.asked.aborted) await greet(instance);
  await ending.whenAsked();
  const signal = await ending.unlessInsisted(stopWithProgress(instance, stopWithinMs));
  return signal ?? EXIT.ok;
}

function pollerOptions(settings: HoldfastConfig): PollerOptions {
  const { store, http = {} } = settings;
  const isEmbedded = store === undefined || store.startsWith('sqlite:');
  const given = Object.entries(settings).filter(([name]) => FOR_POLLER.includes(name));
  return {
    ...Object.fromEntries(given),
    // One host only: whoever may add a session there may reach its ports without us, too.
    http: { ...(isEmbedded && { allow: ['loopback'] }), ...http },
  };
}

/** On a store in memory: what makes no sense is said now, and not when the real one is there at last. */
async function rehearse(settings: HoldfastConfig, given: object): Promise<void> {
  try {
    await using holdfast = await open('memory:', { history: 'off' });
    holdfast.poller(pollerOptions(settings));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const { field, value, rule } = error;
    if (Object.hasOwn(given, field)) throw new ConfigError({ field: `--${field}`, value, rule });
    const message = `the configuration makes no sense: ${error.message}`;
    throw new CliError(EXIT.config, error.code, message, { field, rule });
  }
}
