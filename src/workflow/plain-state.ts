import { ConfigError } from '../core/errors.ts';

/** A copy that nobody can change behind our back. */
export function plainState(state: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(state ?? null));
  } catch {
    throw new ConfigError({ field: 'state', value: typeof state, rule: 'it is JSON' });
  }
}
