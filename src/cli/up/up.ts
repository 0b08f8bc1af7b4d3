/**
 * `holdfast up`: one instance of a fleet that shares its targets, and answers requests. It takes part until it is told to stop, and then
 * hands over what it has. While the store is away it says so and goes on trying, at the start and later.
 */
import { isatty } from 'node:tty';
import { systemClock } from '../../base/clock.ts';
import { type Duration, durationMs } from '../../base/duration.ts';
import { ConfigError } from '../../base/errors.ts';
import type { HoldfastConfig, Role } from '../../config.ts';
import { open } from '../../holdfast.ts';
import type { PollerOptions } from '../../polling/poller.ts';
import type { LogLevel } from '../../telemetry/levels.ts';
import { Log } from '../../telemetry/log.ts';
import type { Context } from '../context.ts';
import { Ending } from '../ending.ts';
import { CliError, EXIT, type Exit } from '../exit-codes.ts';
import { checkShared, openWith } from '../opening.ts';
import { write } from '../output.ts';
import { readSettings } from '../settings.ts';
import { StatusLine } from '../status-line.ts';
import { connect } from './connecting.ts';
import type { FrontDoor } from './front-door.ts';
import { greet } from './greeting.ts';
import { stopWithProgress } from './handing-over.ts';
import { stdoutSink, terminalSink } from './log-sink.ts';
import { rolesOf } from './roles.ts';

export interface UpFlags {
  readonly name?: string;
  readonly roles?: readonly string[];
  readonly host?: string;
  readonly port?: number;
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
  const settings = settled(await readSettings(flags), given);
  const status = isatty(1) && !output.json ? new StatusLine() : null;
  const sink = status === null ? stdoutSink() : terminalSink(status, output);
  const log = new Log({ clock: systemClock, level: logLevel, write: (line) => sink.write(line) });
  const door = await inTheirWords(given, () => rehearse(settings, log));
  const ending = new Ending();
  try {
    if (door !== null) await inTheirWords(given, () => listen(door, log));
    return await takePart({ settings, door, log, status, ending, stopWithinMs });
  } finally {
    await sink.close();
    ending.close();
  }
}

/** A flag wins over the configuration. */
function settled(
  config: HoldfastConfig,
  { host, port, roles, ...given }: Omit<UpFlags, 'logLevel' | 'stopWithin'>,
): HoldfastConfig {
  return {
    ...config,
    ...given,
    ...(roles !== undefined && { roles: roles as readonly Role[] }),
    api: {
      ...config.api,
      ...(host !== undefined && { host }),
      ...(port !== undefined && { port }),
    },
  };
}

interface Part {
  readonly settings: HoldfastConfig;
  /** Present with the role `api`; it listens. */
  readonly door: FrontDoor | null;
  readonly log: Log;
  /** Present on a terminal. */
  readonly status: StatusLine | null;
  readonly ending: Ending;
  readonly stopWithinMs: number;
}

async function takePart(part: Part): Promise<Exit> {
  const { settings, door, log, status, ending, stopWithinMs } = part;
  const { name } = settings;
  const options = { ...(name !== undefined && { name }), on: log.listeners() };
  const holdfast = await connect(() => openWith(settings, options), log, ending);
  if (holdfast === null) {
    await door?.close(0);
    return EXIT.ok;
  }
  log.identify(holdfast.instanceId);
  holdfast.retention(settings.retention).start();
  const isPolling = rolesOf(settings.roles).has('poller');
  const poller = isPolling ? holdfast.poller(pollerOptions(settings)) : null;
  const instance = { holdfast, poller, door, log, status };
  door?.lead(holdfast, poller);
  if (poller !== null) await ending.unlessAsked(poller.start());
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

/** On a store in memory: what makes no sense is said now, and not when the real one is there at last. Gives what is to listen. */
async function rehearse(settings: HoldfastConfig, log: Log): Promise<FrontDoor | null> {
  checkShared(settings);
  const roles = rolesOf(settings.roles);
  await using holdfast = await open('memory:', { history: 'off' });
  holdfast.retention(settings.retention);
  if (roles.has('poller')) holdfast.poller(pollerOptions(settings));
  const door = roles.has('api') ? await doorFor(settings, log) : null;
  await door?.rehearse(holdfast);
  return door;
}

async function doorFor(settings: HoldfastConfig, log: Log): Promise<FrontDoor> {
  const { FrontDoor } = await import('./front-door.ts');
  const onError = (message: string, facts: object) => log.say('error', message, { ...facts });
  return new FrontDoor({ settings, onError });
}

/** What makes no sense, called as whoever typed it called it, or as a flaw of the configuration. */
async function inTheirWords<T>(given: object, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const { field, value, rule } = error;
    if (Object.hasOwn(given, field)) throw new ConfigError({ field: `--${field}`, value, rule });
    const message = `the configuration makes no sense: ${error.message}`;
    throw new CliError(EXIT.config, error.code, message, { field, rule });
  }
}

async function listen(door: FrontDoor, log: Log): Promise<void> {
  const { isMoved } = await door.open();
  for (const warning of door.warnings) log.say('warn', warning);
  const instead = isMoved ? ': the usual port is taken' : '';
  log.say('info', `listens on ${door.url}${instead}`, { url: door.url });
  if (door.madeToken === null) return;
  // Not into the log: that is kept, and read by others.
  write(
    2,
    `holdfast: no token is configured, so one was made. It may do everything, and is good while this runs:\nTOKEN=${door.madeToken}\n`,
  );
}
