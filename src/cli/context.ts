import type { HoldfastConfig } from '../config.ts';
import type { Output } from './ui/output.ts';

/** The store as the flags name it. */
export interface StoreFlags extends Pick<HoldfastConfig, 'store' | 'prefix' | 'quarantine'> {
  readonly maxTtl?: string;
  /** The configuration file; default: the one that is found. */
  readonly config?: string;
}

/** What every command is given. */
export interface Context {
  /** Environment and configuration file are asked for the rest. */
  readonly flags: StoreFlags;
  readonly output: Output;
}
