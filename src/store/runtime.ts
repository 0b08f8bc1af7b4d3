import type { BaseRuntime } from '../core/runtime.ts';
import type { Tracing } from '../core/tracing.ts';
import type { Store } from './port/store.ts';

/** One opened Holdfast. `open()` makes it, and every class that acts takes it as first argument. */
export interface Runtime extends BaseRuntime {
  readonly store: Store;
  readonly tracing: Tracing;
  /** This process among the others that share the store; new at every start. */
  readonly instanceId: string;
}
