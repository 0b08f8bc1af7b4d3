import type { HoldfastConfig } from '../config.ts';
import type { Holdfast, OpenOptions } from '../holdfast.ts';
import { CliError, EXIT } from './exit-codes.ts';
import { readSettings } from './settings.ts';

/** Opens the store that flags, environment and configuration name, or the default one. Loads all it takes only now. */
export async function openConfigured(
  flags: HoldfastConfig,
  options: OpenOptions = {},
): Promise<Holdfast> {
  const [{ store, ...rest }, { open }] = await Promise.all([
    readSettings(flags),
    import('../holdfast.ts'),
  ]);
  if (store === 'memory:') {
    const message =
      "the store 'memory:' is seen by this process alone, so it excludes nobody. Leave --store out for the embedded store.";
    throw new CliError(EXIT.config, 'CONFIG_INVALID', message);
  }
  return open(store, {
    ...rest,
    // What is worth a warning is what `doctor` is for; cron would send it by mail every night.
    on: { 'store.warned': () => {} },
    ...options,
  });
}

/** Does something with the store, and closes it. */
export async function withHoldfast<T>(
  flags: HoldfastConfig,
  work: (holdfast: Holdfast) => Promise<T>,
): Promise<T> {
  const holdfast = await openConfigured(flags);
  try {
    return await work(holdfast);
  } finally {
    await holdfast.close({ within: 0 });
  }
}
