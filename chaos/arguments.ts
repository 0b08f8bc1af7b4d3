/** What the live fault run can be told. */
import { parseArgs } from 'node:util';
import { TOPOLOGIES, type TopologyName } from './topologies.ts';

export const HELP = `Usage: npm run chaos -- [options]

Real processes share targets on a real store while faults are inflicted on all of them; what they
wrote down is then checked: never two that could act on one target at once, fences that only grow,
a sink that never goes back, and every target polled again in time.

  --topology NAME   ${TOPOLOGIES.join(', ')} (default single);
                    sentinel-loose goes without min-replicas-to-write: there two may hold a lease
                    while a primary is isolated, which is counted, and fences have to stay right;
                    postgres has half of the instances behind pgbouncer; postgres-ha is Patroni with
                    an asynchronous standby, postgres-ha-sync with a synchronous one. On all three
                    no transaction that passed guard may commit after a higher fence was granted,
                    by the database's own order of commits
                    sentinel-netns, cluster-netns and postgres-ha-netns have every server and every
                    instance in a network namespace of its own: primaries are cut off with half of
                    their clients, packets are dropped one way, connections are half-open. Target
                    servers on a network of their own see polls that overlap. They need root on Linux
  --seconds N       how long to inflict faults (default 60)
  --seed N          chooses faults, their order, times and lengths (default by chance); the pace of
                    processes and networks is not part of it, so a seed repeats faults, not runs
  --faults A,B      only these kinds, by the names of the summary, such as 'kill'
  --naive           a lock as people first write it, on a Redis; on PostgreSQL a transaction
                    that asks by SELECT instead of guard: it has to be found out, and the run ends
                    when it is
  --keep DIR        keeps the history there, also of a run without violations
  --json            the summary as one line of JSON on stdout
  --help

Ends with 0 if all is as it should be, 1 on a violation (--naive: if there was none), 64 on wrong use,
70 if it could not be run, 130 if it was interrupted before anything was found.`;

export interface Wanted {
  readonly topology: TopologyName;
  readonly seconds: number;
  readonly seed: number;
  readonly faults?: readonly string[];
  readonly isNaive: boolean;
  readonly isJson: boolean;
  readonly keep: string | undefined;
}

export class UsageError extends Error {}

/** Null: only help is wanted. */
export function readArguments(args: readonly string[]): Wanted | null {
  const values = parsed(args);
  if (values.help) return null;
  const { topology = 'single', naive: isNaive = false, json: isJson = false, keep } = values;
  if (!TOPOLOGIES.includes(topology as TopologyName))
    throw new UsageError(`--topology is one of ${TOPOLOGIES.join(', ')}, not '${topology}'`);
  if (isNaive && !/^(single|sentinel-netns|postgres.*)$/.test(topology))
    throw new UsageError(
      '--naive is written for a single Redis, for sentinel-netns, and for PostgreSQL',
    );
  const faults = values.faults?.split(',').map((name) => name.trim());
  return {
    topology: topology as TopologyName,
    seconds: wholeNumber('--seconds', values.seconds ?? '60', 1),
    seed: wholeNumber('--seed', values.seed ?? String(Date.now() % 1_000_000), 0),
    ...(faults !== undefined && { faults }),
    isNaive,
    isJson,
    keep,
  };
}

function parsed(args: readonly string[]) {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  try {
    const options = {
      topology: text,
      seconds: text,
      seed: text,
      faults: text,
      keep: text,
      naive: flag,
      json: flag,
      help: flag,
    };
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

export function wholeNumber(option: string, text: string, least: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < least)
    throw new UsageError(`${option} is a whole number from ${least} up, not '${text}'`);
  return value;
}
