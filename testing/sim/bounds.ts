import type { MaxTtls } from '../../src/store/port/keyspaces.ts';

/**
 * How a client is told how long leases may last: spread into the options of its store. This is the
 * only place that hands a bound to a client.
 */
export function boundOptions(bounds: MaxTtls): { maxTtls: MaxTtls } {
  return { maxTtls: bounds };
}
