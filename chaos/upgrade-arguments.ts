/** What an upgrade test can be told. */
import { parseArgs } from 'node:util';
import { UsageError, wholeNumber } from './arguments.ts';
import { UPGRADE_STORES, type UpgradeStore } from './upgrade-grounds.ts';

export const UPGRADE_HELP = `Usage: npm run upgrade-test -- [options]

Three instances of an earlier build share leases, targets, workflows and sessions on one store. They are replaced by
this build one after the other, then by the earlier one again, then once more by this one: stopped or killed, as chance
draws. A judge that knows nothing of Holdfast looks for two instances that worked on one thing at a time, and for
fences that did not grow. Everything that was accepted has to be done in the end. Then a build of another stored format
opens the store: it has to refuse, and to change nothing.

  --store NAME    sqlite, redis or postgres (default sqlite)
  --from COMMIT   the earlier build (default: the oldest commit of the present stored format)
  --dwell N       seconds between two replacements (default 4)
  --seed N        chooses which instance is killed (default by chance)
  --json          the result as one line of JSON on stdout
  --help

Ends with 0 if all is as it should be, or if there is no git history to build from, which it says; 1 on a violation;
64 on wrong use; 70 if it could not be run.`;

export interface UpgradeWanted {
  readonly store: UpgradeStore;
  readonly from: string | null;
  readonly dwellMs: number;
  readonly seed: number;
  readonly isJson: boolean;
}

/** Null: only help is wanted. */
export function readUpgradeArguments(args: readonly string[]): UpgradeWanted | null {
  const values = parsed(args);
  if (values.help) return null;
  const { store: wanted = 'sqlite', from = null, json: isJson = false } = values;
  const store = UPGRADE_STORES.find((one) => one === wanted);
  if (store === undefined)
    throw new UsageError(`--store is '${wanted}': it must be one of ${UPGRADE_STORES.join(', ')}`);
  return {
    store,
    from,
    isJson,
    dwellMs: wholeNumber('--dwell', values.dwell ?? '4', 1) * 1_000,
    seed: wholeNumber('--seed', values.seed ?? String(Date.now() % 1_000_000), 0),
  };
}

function parsed(args: readonly string[]) {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  try {
    const options = { store: text, from: text, dwell: text, seed: text, json: flag, help: flag };
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
