/**
 * Fencing for the resources that a lease protects: remember the highest fence seen, refuse lower
 * ones. Holdfast's own records do so already; this is for your resources.
 */
import { ConfigError, FenceStaleError } from '../core/errors.ts';

/**
 * Fences are microseconds since 1970, or a little more. Above this, the arithmetic of stores loses
 * digits.
 */
export const MAX_FENCE = 2 ** 52;

/** The header a fence travels in over HTTP, as a decimal string. */
export const FENCE_HEADER = 'holdfast-fence';

export function checkFence(fence: unknown, field = 'fence'): asserts fence is number {
  if (typeof fence !== 'number' || !Number.isSafeInteger(fence) || fence < 0 || fence > MAX_FENCE) {
    throw new ConfigError({
      field,
      value: fence,
      rule: 'a fence is a whole number from 0 to 2^52',
    });
  }
}

/**
 * Remembers the highest fence per resource, for resources that only this process writes. It is in
 * memory: a restart forgets it, and entries are never removed.
 */
export class FenceGate {
  readonly #seen = new Map<string, number>();

  /**
   * Lets the write pass, or throws `FENCE_STALE` with the fence seen. The same fence may pass any
   * number of times.
   */
  pass(resource: string, fence: number): void {
    checkFence(fence);
    const seen = this.#seen.get(resource) ?? 0;
    if (fence < seen) throw new FenceStaleError({ resource, fence, seen });
    this.#seen.set(resource, fence);
  }

  /** The highest fence a resource has seen; 0 for none. */
  seen(resource: string): number {
    return this.#seen.get(resource) ?? 0;
  }
}

/**
 * For your own resources in Redis: put this before your script, and begin the script with
 * `local stale = holdfast_guard(KEYS[1], ARGV[1]); if stale then return stale end`.
 * `KEYS[1]` is a key that keeps the fence (on a Cluster with the hash tag of the keys you write),
 * `ARGV[1]` is the fence. The function returns an error reply `FENCE_STALE <seen>`, which
 * `fenceStaleFrom` turns into the typed error.
 */
export const FENCE_GUARD_LUA = `local function holdfast_guard(key, fence)
  local seen = redis.call('GET', key)
  if seen and tonumber(fence) < tonumber(seen) then return redis.error_reply('FENCE_STALE ' .. seen) end
  redis.call('SET', key, fence)
  return nil
end
`;

/** The typed error for an error of a guarded script; undefined if it was another error. */
export function fenceStaleFrom(
  error: unknown,
  resource: string,
  fence: number,
): FenceStaleError | undefined {
  const seen = error instanceof Error ? /^FENCE_STALE (\d+)/.exec(error.message)?.[1] : undefined;
  return seen === undefined
    ? undefined
    : new FenceStaleError({ resource, fence, seen: Number(seen) });
}

/**
 * For SQL: the condition and assignment that make an UPDATE fenced. `fenceSql('jobs.fence', '$2')`
 * returns `{ where: 'jobs.fence <= $2', set: 'fence = $2' }`. If the UPDATE
 * changes no row, the fence was stale or the row does not exist. The column is NOT NULL, and begins
 * at 0. With `?`, bind the fence once for each part.
 */
export function fenceSql(column: string, placeholder: string): { where: string; set: string } {
  if (!/^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,2}$/.test(column)) {
    throw new ConfigError({
      field: 'column',
      value: column,
      rule: 'a column is a plain SQL name, such as jobs.fence',
    });
  }
  if (!/^(\$\d+|\?|[:@]\w+)$/.test(placeholder)) {
    throw new ConfigError({
      field: 'placeholder',
      value: placeholder,
      rule: 'a placeholder looks like $1, ?, :fence or @fence',
    });
  }
  return {
    where: `${column} <= ${placeholder}`,
    set: `${column.split('.').at(-1)} = ${placeholder}`,
  };
}

/** For HTTP clients: the header that carries the fence. */
export function fenceHeaders(fence: number): Record<string, string> {
  checkFence(fence);
  return { [FENCE_HEADER]: String(fence) };
}

/**
 * For HTTP servers: the fence of a request. Throws `CONFIG_INVALID` if the header is missing or
 * invalid.
 */
export function fenceFromHeaders(
  headers: Headers | Record<string, string | string[] | undefined>,
): number {
  const text = headers instanceof Headers ? headers.get(FENCE_HEADER) : headers[FENCE_HEADER];
  const fence = typeof text === 'string' && /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  checkFence(fence, `the ${FENCE_HEADER} header`);
  return fence;
}
