import { systemClock } from '../../../core/clock.ts';
import { ConfigError, StoreUnreachableError } from '../../../core/errors.ts';
import { Emitter } from '../../../core/events.ts';
import { systemRandom } from '../../../core/random.ts';
import { isRedis, openStore } from '../../../store/open-store.ts';
import type { Store } from '../../../store/port/store.ts';
import {
  type CopyProgress,
  type CopyReport,
  checkSource,
  copyStore,
} from '../../../store/store-copy.ts';
import type { Context } from '../../context.ts';
import { EXIT, type Exit } from '../../exit-codes.ts';
import { readSettings } from '../../settings.ts';
import { printable, table } from '../../ui/text.ts';

export interface StoreCopyFlags {
  readonly dryRun?: boolean;
}

/** A line about a long copy follows the one before after so long. */
const PROGRESS_EVERY_MS = 2_000;

/** `holdfast store copy`. */
export async function copy(
  context: Context,
  fromAddress: string,
  toAddress: string,
  { dryRun = false }: StoreCopyFlags,
): Promise<Exit> {
  const { prefix } = await readSettings(context.flags);
  checkAddresses(fromAddress, toAddress);
  const from = await opened(fromAddress, { prefix, create: false });
  let to: Store | null = null;
  try {
    // Before TO is made: a refused copy leaves nothing behind.
    await checkSource(from);
    to = dryRun
      ? await openedIfThere(toAddress, prefix)
      : await opened(toAddress, { prefix, create: true });
    checkDifferent(from, to);
    const report = await copyStore(from, to, { dryRun, onProgress: progressLines(context) });
    context.output.result({ ...report, to: to?.name ?? toAddress, dryRun }, () =>
      shown(report, from.name, { to: to?.name ?? 'a new store', dryRun }),
    );
    return EXIT.ok;
  } finally {
    await Promise.all([from.close(), to?.close()]);
  }
}

function checkAddresses(from: string, to: string): void {
  for (const [field, value] of [
    ['FROM', from],
    ['TO', to],
  ] as const)
    if (value === 'memory:') {
      const rule =
        'it must be a store that outlives its process: sqlite:…, redis://… or postgres://…';
      throw new ConfigError({ field, value, rule });
    }
}

function checkDifferent(from: Store, to: Store | null): void {
  if (to === null || (from.identity ?? from.name) !== (to.identity ?? to.name)) return;
  throw new ConfigError({
    field: 'TO',
    value: to.name,
    rule: 'it must be another store than FROM',
  });
}

interface OpenedAs {
  readonly prefix: string | undefined;
  readonly create: boolean;
}

/** Takes no leases. A marker in Redis is left to the first process that does. */
async function opened(address: string, { prefix, create }: OpenedAs): Promise<Store> {
  const isSqlite = address.startsWith('sqlite:');
  const { store } = await openStore(address, {
    clock: systemClock,
    random: systemRandom,
    events: quietEvents(),
    prefix,
    maxTtls: null,
    create: create && !isRedis(address),
    unfinished: create,
    ...(create && isSqlite && { sync: 'always' }),
  });
  return store;
}

/** `holdfast doctor` shows warnings. */
function quietEvents(): Emitter {
  const events = new Emitter();
  events.on('store.warned', () => {});
  return events;
}

/** Null for a file or a schema that the copy would make. */
async function openedIfThere(address: string, prefix: string | undefined): Promise<Store | null> {
  try {
    return await opened(address, { prefix, create: false });
  } catch (error) {
    const isAbsent =
      error instanceof StoreUnreachableError && /does not exist|there is no schema/.test(error.why);
    if (isAbsent) return null;
    throw error;
  }
}

function progressLines({ output }: Context): (progress: CopyProgress) => void {
  let lastMs = systemClock.monotonicMs();
  return ({ step, noun, entries }) => {
    const nowMs = systemClock.monotonicMs();
    if (nowMs - lastMs < PROGRESS_EVERY_MS) return;
    lastMs = nowMs;
    output.note(`${step === 'copy' ? 'copied' : 'compared'} ${entries} ${noun} so far`);
  };
}

function shown(
  { counts }: CopyReport,
  from: string,
  { to, dryRun }: { readonly to: string; readonly dryRun: boolean },
): string {
  const rows = Object.entries(counts).map(([noun, count]) => [noun, String(count)]);
  const [source, target] = [printable(from), printable(to)];
  const head = dryRun
    ? `${source} can be copied to ${target}. Nothing was written.`
    : `Copied ${source} to ${target}, and compared both: they have the same content.`;
  const then = dryRun
    ? ''
    : `\nStart every process with the new store. ${source} is unchanged: start nothing on it.\n`;
  return `${head}\n\n${table([['WHAT', 'ENTRIES'], ...rows])}${then}`;
}
