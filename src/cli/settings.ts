import { statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { HoldfastConfig } from '../config.ts';
import { type Clock, isDoneWithin, systemClock } from '../core/clock.ts';
import { ConfigError } from '../core/errors.ts';
import { checkSwitch } from '../core/options.ts';
import { type MaxTtlOption, readMaxTtl } from '../store/port/keyspaces.ts';
import type { StoreFlags } from './context.ts';
import { CliError, EXIT } from './exit-codes.ts';

const FILE = 'holdfast.config.mjs';
/** How long the file may take to load: it is a program that may ask other services. */
const LOAD_MS = 10_000;

/**
 * The settings. A flag wins over the environment, and the environment over the configuration file.
 */
export async function readSettings(flags: StoreFlags): Promise<HoldfastConfig> {
  const { HOLDFAST_STORE, HOLDFAST_PREFIX, HOLDFAST_QUARANTINE, HOLDFAST_MAX_TTL } = process.env;
  if (HOLDFAST_QUARANTINE) checkSwitch(HOLDFAST_QUARANTINE, 'HOLDFAST_QUARANTINE');
  const config = await readConfig(flags.config);
  const store = flags.store ?? (HOLDFAST_STORE || config.store);
  const prefix = flags.prefix ?? HOLDFAST_PREFIX ?? config.prefix;
  const quarantine = flags.quarantine ?? (HOLDFAST_QUARANTINE || config.quarantine);
  const maxTtl =
    parseMaxTtl(flags.maxTtl, '--max-ttl') ??
    parseMaxTtl(HOLDFAST_MAX_TTL, 'HOLDFAST_MAX_TTL') ??
    config.maxTtl;
  return { ...config, store, prefix, quarantine: quarantine as 'on' | 'off' | undefined, maxTtl };
}

/** `60s` for all keyspaces, or `lease=60s,poll=10s`. */
function parseMaxTtl(text: string | undefined, field: string): MaxTtlOption | undefined {
  if (!text) return undefined;
  const option = text.includes('=')
    ? Object.fromEntries(text.split(',').map((one) => one.split('=', 2).map((part) => part.trim())))
    : text;
  readMaxTtl(option, field);
  return option;
}

/**
 * The named configuration file; else the one of the working directory or of the nearest folder
 * above.
 */
async function readConfig(flag: string | undefined): Promise<HoldfastConfig> {
  const named = flag ?? process.env.HOLDFAST_CONFIG;
  const path = named ? resolve(named) : findConfig(process.cwd());
  return path === null ? {} : loadConfig(path, systemClock);
}

/** Runs the configuration file, which is a program, and checks its default export. */
export async function loadConfig(path: string, clock: Clock): Promise<HoldfastConfig> {
  const loading = import(pathToFileURL(path).href) as Promise<{ default?: unknown }>;
  // Node exits silently if a top-level await never resolves.
  const isLoaded = await isDoneWithin(clock, LOAD_MS, loading);
  if (!isLoaded)
    throw invalid(path, `it did not load within ${LOAD_MS / 1_000} s. Check its top-level awaits`);
  const loaded = await loading.catch((error: unknown) => {
    throw invalid(
      path,
      `it could not be loaded: ${error instanceof Error ? error.message : error}`,
    );
  });
  const { checkConfig } = await import('../config-schema.ts');
  try {
    return checkConfig(loaded.default);
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
    // The file is a program. One of another user in a shared folder above would run with our
    // rights.
    const isOurs = [process.getuid?.() ?? found.uid, 0].includes(found.uid);
    if (isOurs) return path;
    throw invalid(path, 'it belongs to another user. If you trust it, name it with --config');
  }
  return dirname(from) === from ? null : findConfig(dirname(from));
}
