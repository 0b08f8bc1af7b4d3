import type { HoldfastConfig } from '../config.ts';
import type { Output } from './ui/output.ts';

/** The flags that name the store. */
export interface StoreFlags extends Pick<HoldfastConfig, 'store' | 'prefix' | 'quarantine'> {
  readonly maxTtl?: string | undefined;
  /** The configuration file. Default: the one in this folder or above. */
  readonly config?: string | undefined;
}

/** The arguments that every command gets. */
export interface Context {
  /** The environment and the configuration file add the rest. */
  readonly flags: StoreFlags;
  readonly output: Output;
}
