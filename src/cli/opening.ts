import type { HoldfastConfig } from '../config.ts';
import type { Holdfast, OpenOptions } from '../holdfast.ts';
import type { OpenedLeases } from '../opening.ts';
import type { StoreFlags } from './context.ts';
import { CliError, EXIT } from './exit-codes.ts';
import { readSettings } from './settings.ts';

/** Refuses a store that no other process can see. */
export function checkShared({ store }: HoldfastConfig): void {
  if (store !== 'memory:') return;
  const message =
    "the store 'memory:' is visible to this process only, so its leases exclude no other process. Leave --store out to use the embedded store.";
  throw new CliError(EXIT.config, 'CONFIG_INVALID', message);
}

/** Opens the store that the settings name. */
export async function openWith(
  settings: HoldfastConfig,
  options: OpenOptions = {},
): Promise<Holdfast> {
  checkShared(settings);
  const { open } = await import('../holdfast.ts');
  return open(settings.store, { ...storeOptions(settings), ...options });
}

/**
 * Opens the store that the flags, the environment or the configuration name, or the default one.
 * For a command that takes leases and does nothing else: the rest is not loaded.
 */
export async function openLeasesOf(flags: StoreFlags): Promise<OpenedLeases> {
  const loading = import('../opening.ts');
  const settings = await readSettings(flags);
  checkShared(settings);
  const { openLeases } = await loading;
  return openLeases(settings.store, storeOptions(settings));
}

function storeOptions(settings: HoldfastConfig): OpenOptions {
  const { prefix, quarantine, maxTtl, sync, redis, sessionIds, kinds } = settings;
  return {
    prefix,
    quarantine,
    maxTtl,
    sync,
    redis,
    sessionIds,
    kinds,
    // `holdfast doctor` shows warnings. Here cron would mail them every night.
    on: { 'store.warned': () => {} },
  };
}

/**
 * Opens the store for `work`, and closes it. By default it takes no leases, so that it does not
 * need the store's maxTtl, and creates no file, so that a wrong path is an error.
 */
export async function withHoldfast<T>(
  flags: StoreFlags,
  work: (holdfast: Holdfast, settings: HoldfastConfig) => Promise<T>,
  options: OpenOptions | ((settings: HoldfastConfig) => OpenOptions) = {},
): Promise<T> {
  const loading = import('../holdfast.ts');
  const settings = await readSettings(flags);
  await loading;
  const own = typeof options === 'function' ? options(settings) : options;
  const holdfast = await openWith(settings, { observe: true, create: false, ...own });
  try {
    return await work(holdfast, settings);
  } finally {
    await holdfast.close({ within: 0 });
  }
}
