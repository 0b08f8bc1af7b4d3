/**
 * `holdfast up`: one instance of a fleet. It polls or runs its share of the targets, answers
 * requests and runs
 * sessions until a signal asks it to stop, and then hands its work over. While the store is
 * unavailable it
 * says so and keeps trying, at the start and later.
 */
import { isatty } from 'node:tty';
import type { HoldfastConfig, Role } from '../../../config.ts';
import { systemClock } from '../../../core/clock.ts';
import { type Duration, durationMs } from '../../../core/duration.ts';
import { ConfigError } from '../../../core/errors.ts';
import { open } from '../../../holdfast.ts';
import type { LogLevel } from '../../../telemetry/levels.ts';
import { Log } from '../../../telemetry/log.ts';
import type { Worker } from '../../../worker/worker.ts';
import type { Context } from '../../context.ts';
import { CliError, EXIT, type Exit } from '../../exit-codes.ts';
import { checkShared, openWith } from '../../opening.ts';
import { readSettings } from '../../settings.ts';
import { droppedMessage, neverBlock, write } from '../../ui/output.ts';
import { StatusOutput } from '../../ui/status-output.ts';
import { StopSignals } from '../../ui/stop-signals.ts';
import { checkProcesses, ownProcess } from './api-processes.ts';
import { connect } from './connecting.ts';
import { fleetServiceOf } from './fleet-settings.ts';
import { greet } from './greeting.ts';
import { stopWithProgress } from './handing-over.ts';
import type { Instance } from './instance.ts';
import { stdoutSink, terminalSink } from './log-sink.ts';
import { rolesOf } from './roles.ts';
import type { UpServer } from './up-server.ts';
import { workerOf } from './worker-settings.ts';

export interface UpFlags {
  readonly name?: string;
  readonly roles?: readonly string[];
  readonly host?: string;
  readonly port?: number;
  readonly processes?: number;
  readonly weight?: number;
  readonly every?: Duration;
  readonly ttl?: Duration;
  readonly kinds?: readonly string[];
  readonly workerName?: string;
  readonly logLevel: LogLevel;
  readonly stopWithin: Duration;
}

/** A start that takes longer is logged. */
const SLOW_START_MS = 3_000;

export async function up(
  { flags, output }: Context,
  { logLevel, stopWithin, ...given }: UpFlags,
): Promise<Exit> {
  const stopWithinMs = durationMs(stopWithin, '--stop-within');
  const settings = withFlags(await readSettings(flags), given);
  const status = isatty(1) && !output.json ? new StatusOutput() : null;
  const sink = status === null ? stdoutSink : terminalSink(status, output);
  const log = new Log({ clock: systemClock, level: logLevel, write: (line) => sink.write(line) });
  neverBlock({ onDropped: (lines) => log.say('warn', droppedMessage(lines), { lines }) });
  const own = ownProcess();
  const door = await withGivenNames(given, () => rehearse(settings, log));
  const ending = new StopSignals({ isChild: own !== null });
  try {
    const { processes = 1 } = settings.api ?? {};
    if (processes > 1 && own === null) {
      await withGivenNames(given, async () => checkProcesses(settings, door));
      const { ApiProcessSet } = await import('./api-process-set.ts');
      // What a configuration prints is no line of the log.
      const onLine = (line: string) =>
        line.startsWith('{"level"') ? sink.write(line) : void write(1, line);
      return await new ApiProcessSet(systemClock, { log, onLine, stopWithinMs }).run(
        processes,
        ending,
      );
    }
    if (door !== null) await withGivenNames(given, () => listen(door, log, status));
    return await takePart({ settings, door, log, status, ending, stopWithinMs });
  } finally {
    sink.close();
    ending.close();
  }
}

/** Flags win over the configuration. For the worker's name the environment comes in between. */
function withFlags(
  config: HoldfastConfig,
  {
    host,
    port,
    processes,
    roles,
    kinds,
    workerName,
    ...given
  }: Omit<UpFlags, 'logLevel' | 'stopWithin'>,
): HoldfastConfig {
  const worker = workerName ?? process.env.HOLDFAST_WORKER_NAME;
  return {
    ...config,
    ...given,
    ...(roles !== undefined && { roles: roles as readonly Role[] }),
    api: {
      ...config.api,
      ...(host !== undefined && { host }),
      ...(port !== undefined && { port }),
      ...(processes !== undefined && { processes }),
    },
    worker: {
      ...config.worker,
      ...(worker && { name: worker }),
      ...(kinds !== undefined && { kinds }),
    },
  };
}

interface Part {
  readonly settings: HoldfastConfig;
  /** Present with the role `api`; it listens. */
  readonly door: UpServer | null;
  readonly log: Log;
  /** Present on a terminal. */
  readonly status: StatusOutput | null;
  readonly ending: StopSignals;
  readonly stopWithinMs: number;
}

async function takePart(part: Part): Promise<Exit> {
  const { settings, door, log, status, ending, stopWithinMs } = part;
  const { name } = settings;
  const options = { name, on: log.listeners() };
  const holdfast = await connect(() => openWith(settings, options), log, ending);
  if (holdfast === null) {
    await door?.close(0);
    return EXIT.ok;
  }
  log.identify(holdfast.instanceId);
  holdfast.retention(settings.retention).start();
  const roles = rolesOf(settings.roles);
  const poller = roles.has('poller') ? fleetServiceOf(holdfast, settings) : null;
  const worker = roles.has('worker') ? workerOf(holdfast, settings) : null;
  const instance = { holdfast, poller, worker, door, log, status };
  door?.lead(holdfast, { poller, worker });
  try {
    await ending.unlessAsked(start(poller, worker, log));
  } catch (error) {
    await Promise.all([door?.close(0), holdfast.close({ within: 0 })]);
    throw error;
  }
  if (!ending.asked.aborted) await greet(instance, settings);
  await ending.whenAsked();
  const signal = await ending.unlessInsisted(stopWithProgress(instance, stopWithinMs));
  return signal ?? EXIT.ok;
}

async function start(poller: Instance['poller'], worker: Worker | null, log: Log): Promise<void> {
  const patience = systemClock.after(SLOW_START_MS, () =>
    log.say('info', 'has not started yet: it waits for the store, or for the name of its worker'),
  );
  try {
    await Promise.all([poller?.start(), worker?.start()]);
  } finally {
    patience.cancel();
  }
}

/**
 * Checks all settings on a store in memory, before the real store is open. Returns the HTTP server.
 */
async function rehearse(settings: HoldfastConfig, log: Log): Promise<UpServer | null> {
  checkShared(settings);
  const roles = rolesOf(settings.roles);
  await using holdfast = await open('memory:', { history: 'off', kinds: settings.kinds });
  holdfast.retention(settings.retention);
  if (roles.has('poller')) fleetServiceOf(holdfast, settings);
  if (roles.has('worker')) workerOf(holdfast, settings);
  const door = roles.has('api') ? await doorFor(settings, log) : null;
  await door?.rehearse(holdfast);
  return door;
}

async function doorFor(settings: HoldfastConfig, log: Log): Promise<UpServer> {
  const { UpServer } = await import('./up-server.ts');
  const onError = (message: string, facts: object) => log.say('error', message, { ...facts });
  return new UpServer({ settings, onError, process: ownProcess() });
}

/**
 * Names an invalid setting by its flag or environment variable, or as a part of the configuration.
 */
async function withGivenNames<T>(given: object, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const { field, value, rule } = error;
    const typed = TYPED[field] ?? field;
    if (typed === 'workerName' && process.env.HOLDFAST_WORKER_NAME === value)
      throw new ConfigError({ field: 'HOLDFAST_WORKER_NAME', value, rule });
    if (Object.hasOwn(given, typed)) throw new ConfigError({ field: flagOf(typed), value, rule });
    const message = `the configuration is invalid: ${error.message}`;
    throw new CliError(EXIT.config, error.code, message, { field, rule });
  }
}

/** Fields of a configuration with another name among the flags. */
const TYPED: Readonly<Record<string, string>> = {
  'worker.name': 'workerName',
  'worker.kinds': 'kinds',
  'api.processes': 'processes',
};

/** The flag of an option: `--worker-name`. */
function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

async function listen(door: UpServer, log: Log, status: StatusOutput | null): Promise<void> {
  const { isMoved } = await door.open();
  for (const warning of door.warnings) log.say('warn', warning);
  const instead = isMoved ? ': the default port is taken' : '';
  log.say('info', `listens on ${door.url}${instead}`, { url: door.url });
  if (door.madeToken === null) return;
  // Not into the log, which others may read.
  write(
    2,
    `holdfast: no token is configured, so one was made. It has all rights while this instance runs:\nTOKEN=${door.madeToken}\n`,
  );
  // On a terminal the greeting shows it.
  if (status === null)
    write(2, `This address opens the page once, within ten minutes:\nPAGE=${door.pageUrl}\n`);
}
