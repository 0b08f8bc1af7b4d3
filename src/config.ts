import { ConfigError } from './base/errors.ts';
import { checkKnown } from './lease/options.ts';

/** What `holdfast.config.mjs` may say. A flag of the command line, or its environment, wins over it. */
export interface HoldfastConfig {
  /** Address of the store. One with a password belongs into the environment (`HOLDFAST_STORE`) instead. */
  store?: string;
  /** Put before every key in the store. */
  prefix?: string;
  quarantine?: 'on' | 'off';
}

const KNOWN = new Set(['store', 'prefix', 'quarantine']);

/** Gives back what it is given: for editors, which then know what a configuration may say. */
export function defineConfig(config: HoldfastConfig): HoldfastConfig {
  return config;
}

/** `config` if it is a configuration, or a `CONFIG_INVALID`. */
export function checkConfig(config: unknown): HoldfastConfig {
  checkKnown(config as object, KNOWN);
  const { store, prefix, quarantine } = config as Record<string, unknown>;
  for (const [field, value] of Object.entries({ store, prefix })) {
    if (value === undefined || typeof value === 'string') continue;
    throw new ConfigError({ field, value, rule: 'it has to be text' });
  }
  if (quarantine !== undefined) checkQuarantine(quarantine, 'quarantine');
  return config as HoldfastConfig;
}

export function checkQuarantine(value: unknown, field: string): asserts value is 'on' | 'off' {
  if (value !== 'on' && value !== 'off') {
    throw new ConfigError({ field, value, rule: "it is 'on' or 'off'" });
  }
}
