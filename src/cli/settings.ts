import { statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ConfigError } from '../base/errors.ts';
import { checkSwitch } from '../base/options.ts';
import { checkConfig, type HoldfastConfig } from '../config.ts';
import type { StoreFlags } from './context.ts';
import { CliError, EXIT } from './exit-codes.ts';

const FILE = 'holdfast.config.mjs';

/** What is configured, and which store: there a flag wins over the environment, and that over the configuration file. */
export async function readSettings(flags: StoreFlags): Promise<HoldfastConfig> {
  const { HOLDFAST_STORE, HOLDFAST_PREFIX, HOLDFAST_QUARANTINE } = process.env;
  if (HOLDFAST_QUARANTINE) checkSwitch(HOLDFAST_QUARANTINE, 'HOLDFAST_QUARANTINE');
  const config = await readConfig(flags.config);
  const store = flags.store ?? (HOLDFAST_STORE || config.store);
  const prefix = flags.prefix ?? HOLDFAST_PREFIX ?? config.prefix;
  const quarantine = flags.quarantine ?? (HOLDFAST_QUARANTINE || config.quarantine);
  return {
    ...config,
    ...(store !== undefined && { store }),
    ...(prefix !== undefined && { prefix }),
    ...(quarantine && { quarantine: quarantine as 'on' | 'off' }),
  };
}

/** The configuration that is named, else that of the working directory, or of the nearest folder above that has one. */
async function readConfig(flag: string | undefined): Promise<HoldfastConfig> {
  const named = flag ?? process.env.HOLDFAST_CONFIG;
  const path = named ? resolve(named) : findConfig(process.cwd());
  if (path === null) return {};
  const loaded = await import(pathToFileURL(path).href).catch((error: unknown) => {
    throw invalid(path, `it can not be loaded: ${error instanceof Error ? error.message : error}`);
  });
  try {
    return checkConfig((loaded as { default?: unknown }).default);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw invalid(path, error.message);
  }
}

function invalid(path: string, why: string): CliError {
  return new CliError(EXIT.config, 'CONFIG_INVALID', `configuration ${path}: ${why}.`, { path });
}

function findConfig(from: string): string | null {
  const path = join(from, FILE);
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isFile()) {
    // It is a program: one that a stranger left in a shared folder above us would run with our rights.
    const isOurs = [process.getuid?.() ?? found.uid, 0].includes(found.uid);
    if (isOurs) return path;
    throw invalid(path, 'it belongs to another user. If you trust it, name it with --config');
  }
  return dirname(from) === from ? null : findConfig(dirname(from));
}
