import type { HoldfastConfig } from '../config.ts';
import type { Holdfast, OpenOptions } from '../holdfast.ts';
import type { StoreFlags } from './context.ts';
import { CliError, EXIT } from './exit-codes.ts';
import { readSettings } from './settings.ts';

/** Opens the store that flags, environment and configuration name, or the default one. Loads all it takes only now. */
export async function openConfigured(
  flags: StoreFlags,
  options: OpenOptions = {},
): Promise<Holdfast> {
  const loading = import('../holdfast.ts');
  const settings = await readSettings(flags);
  await loading;
  return openWith(settings, options);
}

/** Refuses a store that nobody else can see. */
export function checkShared({ store }: HoldfastConfig): void {
  if (store !== 'memory:') return;
  const message =
    "the store 'memory:' is seen by this process alone, so it excludes nobody. Leave --store out for the embedded store.";
  throw new CliError(EXIT.config, 'CONFIG_INVALID', message);
}

/** Opens the store that the settings name. */
export async function openWith(
  settings: HoldfastConfig,
  options: OpenOptions = {},
): Promise<Holdfast> {
  checkShared(settings);
  const { store, prefix, quarantine, maxTtl, sync, sessionIds } = settings;
  const { open } = await import('../holdfast.ts');
  return open(store, {
    ...(prefix !== undefined && { prefix }),
    ...(quarantine !== undefined && { quarantine }),
    ...(maxTtl !== undefined && { maxTtl }),
    ...(sync !== undefined && { sync }),
    ...(sessionIds !== undefined && { sessionIds }),
    // What is worth a warning is what `doctor` is for; cron would send it by mail every night.
    on: { 'store.warned': () => {} },
    ...options,
  });
}

/**
 * Does something with the store, and closes it. Takes no leases, unless `options` say so: then it needs the store's maxTtl. Nor does it
 * make a store, unless they say that: so a wrong path is told, and nothing is left there.
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
