/** What a soak can be told. */
import { parseArgs } from 'node:util';
import { UsageError, wholeNumber } from './arguments.ts';

export const SOAK_HELP = `Usage: npm run soak -- [options]

Four real processes share three keys on a real store: by URL, through an adopted node-redis client and through an
adopted ioredis client, with TTLs from 0.6 to 5 s and different guards. They acquire, wait, abort, transfer, revoke and
release, while processes are frozen and connections killed. A judge that knows nothing of Holdfast then looks for two
processes that both passed assertHeld() on one key at one moment, and for fences that did not grow.

  --store NAME   redis or sqlite (default redis)
  --seconds N    how long (default 60)
  --seed N       chooses faults and what the processes do (default by chance); their pace is not part of it
  --naive        a lock as people first write it, on Redis: the judge has to find it out
  --json         the result as one line of JSON on stdout
  --help

Ends with 0 if all is as it should be, 1 on a violation (--naive: if there was none), 64 on wrong use, 70 if it could
not be run.`;

export interface SoakWanted {
  readonly store: 'redis' | 'sqlite';
  readonly seconds: number;
  readonly seed: number;
  readonly isNaive: boolean;
  readonly isJson: boolean;
}

/** Null: only help is wanted. */
export function readSoakArguments(args: readonly string[]): SoakWanted | null {
  const values = parsed(args);
  if (values.help) return null;
  const { store = 'redis', naive: isNaive = false, json: isJson = false } = values;
  if (store !== 'redis' && store !== 'sqlite')
    throw new UsageError(`--store is redis or sqlite, not '${store}'`);
  if (isNaive && store !== 'redis') throw new UsageError('--naive is written for Redis');
  return {
    store,
    isNaive,
    isJson,
    seconds: wholeNumber('--seconds', values.seconds ?? '60', 1),
    seed: wholeNumber('--seed', values.seed ?? String(Date.now() % 1_000_000), 0),
  };
}

function parsed(args: readonly string[]) {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  try {
    const options = { store: text, seconds: text, seed: text, naive: flag, json: flag, help: flag };
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
