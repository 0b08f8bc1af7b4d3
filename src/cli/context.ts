import type { HoldfastConfig } from '../config.ts';
import type { Output } from './output.ts';

/** What every command is given. */
export interface Context {
  /** The store as the flags name it; environment and configuration file are asked for the rest. */
  readonly flags: HoldfastConfig;
  readonly output: Output;
}
