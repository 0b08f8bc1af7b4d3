/**
 * Runs a long-lived task for each target that a fleet of instances shares, each target by one
 * instance at a time: see `run/task-scheduler.ts`.
 */
import { backoffLimits } from '../core/backoff.ts';
import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError } from '../core/errors.ts';
import { checkKnown } from '../core/options.ts';
import type { Leases } from '../lease/leases.ts';
import { workTimings } from '../lease/timings.ts';
import type { Runtime } from '../store/runtime.ts';
import {
  checkOption,
  FLEET_OPTIONS,
  FleetService,
  type FleetServiceOptions,
} from './fleet-service.ts';
import { DEFAULT_COMMAND } from './plan/plan.ts';
import { type Run, TaskScheduler } from './run/task-scheduler.ts';
import { COMMAND_NAME_RULE, isCommandName, type TargetIds } from './targets/target-record.ts';

export interface RunnerOptions extends FleetServiceOptions {
  /**
   * Works on one target, for as long as this instance owns it. It has to end when `signal` fires:
   * its target is not handed over before. When it returns or throws, it is started again.
   */
  run?: Run;
  /**
   * In place of `run`: a program and its arguments, in its own process group. No shell reads them.
   * It has the target in `HOLDFAST_TARGET` (its id) and `HOLDFAST_TARGET_JSON`, and
   * `HOLDFAST_FENCE`.
   * A line of output that starts with `::progress` is its progress.
   */
  command?: readonly string[];
  /**
   * Further commands by name, for the targets that name one (`{ id, command: 'listen' }`). Only
   * instances that have the command of a target own it. Without `run` and `command`, this instance
   * owns no other targets.
   */
  commands?: Readonly<Record<string, readonly string[]>>;
  /** The directory of the command; default that of this process. */
  cwd?: string;
  /** Added to the environment of the command. */
  env?: Readonly<Record<string, string>>;
  /**
   * How long the command may take to end before it is killed; default 5 s, or a sixth of the TTL.
   */
  grace?: Duration;
  /**
   * The pause before a task that ended is started again: the first one, and the longest. It doubles
   * with every end in a row. Default `'1s..1m'`.
   */
  backoff?: string;
  /** A task that has not called `progress` for this long is reported. Default: never. */
  stuckAfter?: Duration;
  /**
   * What happens to such a task. `report` (default): an event. `restart`: it is told to stop, too,
   * and started again. If it does not stop, its lease is given up, and another instance takes over.
   */
  onStuck?: 'report' | 'restart';
  /**
   * How long one task may keep its target, whatever it does: then it is told to stop, and its lease
   * is not renewed any more. Default: as long as it runs.
   */
  maxHold?: Duration;
}

/** Commands by name, and how long each may take to end. */
export interface CommandTaskOptions {
  readonly commands: ReadonlyMap<string, readonly string[]>;
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string>> | undefined;
  readonly graceMs: number;
}

/** Runs a command as the task of each target. Made outside of the fleet. */
export interface CommandTasks {
  readonly run: Run;
  close(): Promise<void>;
}

/** What a runner needs beside the store. */
export interface RunnerEnvironment {
  readonly targetIds: TargetIds;
  commandTasks(options: CommandTaskOptions): CommandTasks;
}

const OF_COMMAND = ['cwd', 'env', 'grace'];
const OWN = [
  'run',
  'command',
  'commands',
  ...OF_COMMAND,
  'backoff',
  'stuckAfter',
  'onStuck',
  'maxHold',
];
const KNOWN = new Set([...OWN, ...FLEET_OPTIONS]);
const COMMAND_RULE = "it must be a list: ['program', 'argument', …]";
const DEFAULT_BACKOFF = '1s..1m';
/** The heartbeat names them all. */
const MAX_COMMANDS = 100;
/** A task that was told to stop gets this long, or `stop`, before it is reported as stuck. */
const MIN_GRACE_MS = 1_000;

export class Runner extends FleetService {
  constructor(rt: Runtime, leases: Leases, environment: RunnerEnvironment, given: RunnerOptions) {
    checkRunnerOptions(given);
    const commands = commandsOf(given);
    const options = commands.size === 0 ? given : withGrace(given);
    const { backoff = DEFAULT_BACKOFF, stuckAfter, onStuck = 'report', stop = 0 } = options;
    const settings = {
      ...tasksOf(environment, options, commands),
      backoff: backoffLimits(backoff, 'backoff'),
      graceMs: Math.max(MIN_GRACE_MS, durationMs(stop, 'stop')),
      stuckAfterMs:
        stuckAfter === undefined ? Number.POSITIVE_INFINITY : durationMs(stuckAfter, 'stuckAfter'),
      onStuck,
    };
    super(
      rt,
      leases,
      { ...options, targetIds: environment.targetIds, commandNames: namesOf(options, commands) },
      (targets, results, giveUp) =>
        new TaskScheduler(rt, targets, results, { ...settings, giveUp }),
    );
  }
}

type CommandsByName = CommandTaskOptions['commands'];

function commandsOf({ command, commands = {} }: RunnerOptions): CommandsByName {
  const named = new Map(Object.entries(commands));
  return command === undefined ? named : named.set(DEFAULT_COMMAND, command);
}

/** The commands in the heartbeat; undefined for one that runs only targets without a command. */
function namesOf({ run }: RunnerOptions, commands: CommandsByName): string[] | undefined {
  const names = new Set([...(run === undefined ? [] : [DEFAULT_COMMAND]), ...commands.keys()]);
  return names.size === 1 && names.has(DEFAULT_COMMAND) ? undefined : [...names].sort();
}

function tasksOf(
  environment: RunnerEnvironment,
  { run, cwd, env, stop = 0 }: RunnerOptions,
  commands: CommandsByName,
): CommandTasks | { run: Run } {
  if (run !== undefined && commands.size === 0) return { run };
  const tasks = environment.commandTasks({ commands, cwd, env, graceMs: durationMs(stop, 'stop') });
  if (run === undefined) return tasks;
  return {
    run: (target, context) =>
      target.command === undefined ? run(target, context) : tasks.run(target, context),
    close: () => tasks.close(),
  };
}

/** The guard of the leases covers the time that a command takes to end. */
function withGrace({ grace, ...options }: RunnerOptions): RunnerOptions {
  const { ttl, renewEvery, stop, guard, operationTimeout, ...rest } = options;
  for (const [field, value] of Object.entries({ renewEvery, stop, guard, operationTimeout }))
    checkOption(field, value, false, 'for a command it follows from ttl and grace. Leave it out');
  return { ...rest, ...workTimings({ ttl, grace }) };
}

function isCommand(command: unknown): boolean {
  const isList = Array.isArray(command) && command.length > 0;
  return isList && command.every((word) => typeof word === 'string') && command[0] !== '';
}

function checkCommands(commands: unknown): void {
  const isObject = typeof commands === 'object' && commands !== null && !Array.isArray(commands);
  const rule = `it must be an object of 1 to ${MAX_COMMANDS} commands: { name: ['program', 'argument', …] }`;
  const entries = isObject ? Object.entries(commands) : [];
  checkOption('commands', commands, entries.length > 0 && entries.length <= MAX_COMMANDS, rule);
  for (const [name, command] of entries) {
    checkOption(`commands.${name}`, name, isCommandName(name), COMMAND_NAME_RULE);
    if (!isCommand(command))
      throw new ConfigError({ field: `commands.${name}`, value: command, rule: COMMAND_RULE });
  }
}

function isEnvironment(env: unknown): boolean {
  if (typeof env !== 'object' || env === null || Array.isArray(env)) return false;
  return Object.values(env).every((value) => typeof value === 'string');
}

function checkRunnerOptions(options: RunnerOptions): void {
  checkKnown(options, KNOWN);
  const { run, command, commands, cwd, env, stuckAfter, onStuck } = options;
  checkOption('run', run, typeof run === 'function', 'it has to be a function');
  checkOption('command', command, isCommand(command), COMMAND_RULE);
  checkCommands(commands);
  checkOption('cwd', cwd, typeof cwd === 'string', 'it must be the path of a directory');
  checkOption('env', env, isEnvironment(env), 'it must be an object whose values are text');
  const given = [run, command].filter((one) => one !== undefined).length;
  if (given === 2 || (given === 0 && commands === undefined)) {
    const rule = 'give either run, a function, or command, a program and its arguments';
    throw new ConfigError({ field: 'run', value: run, rule: `${rule}; or commands, by name` });
  }
  const hasCommands = command !== undefined || commands !== undefined;
  for (const field of OF_COMMAND) {
    const value = options[field as keyof RunnerOptions];
    checkOption(field, value, hasCommands, 'it is for a command, and there is none');
  }
  if (stuckAfter !== undefined) {
    const isLong = durationMs(stuckAfter, 'stuckAfter') > 0;
    checkOption(
      'stuckAfter',
      stuckAfter,
      isLong,
      'it must be longer than 0. Leave it out for never',
    );
  }
  const isKnown = onStuck === 'report' || onStuck === 'restart';
  checkOption('onStuck', onStuck, isKnown, "it must be 'report' or 'restart'");
  if (onStuck === 'restart' && stuckAfter === undefined) {
    const rule = "with 'restart', stuckAfter says after how long without progress";
    throw new ConfigError({ field: 'stuckAfter', value: stuckAfter, rule });
  }
}
