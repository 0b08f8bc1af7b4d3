/**
 * Where leases live in a store, and how long they may last there.
 *
 * After a store has lost data, no client may be granted a key while an earlier holder of it may
 * still act. The store cannot tell how long that is: it has lost the leases, and the holder may be
 * cut off. So every keyspace has a bound, `maxTtl`, that all of its clients are configured
 * with. No lease lasts longer without a renewal, and a quarantine lasts as long as the bound, and a
 * second. The store records the bounds and refuses a client with others.
 */
import { type Duration, durationMs } from '../../core/duration.ts';
import { ConfigError } from '../../core/errors.ts';

/**
 * Lease classes of one keyspace share its keys, and so its quarantine: `resource` is in `lease`.
 */
export type Keyspace = 'lease' | 'poll' | 'workflow';

/** What a key begins with in the store. */
export const KEYSPACES: Readonly<Record<Keyspace, string>> = {
  lease: 'lease:',
  poll: 'poll:lease:',
  workflow: 'workflow:lease:',
};
export const KEYSPACE_NAMES = Object.keys(KEYSPACES) as Keyspace[];

/** The longest TTL of each keyspace, in milliseconds. */
export type MaxTtls = Readonly<Record<Keyspace, number>>;

/** One bound for all keyspaces, or one for each. A keyspace left out has its default. */
export type MaxTtlOption = Duration | { readonly [K in Keyspace]?: Duration };

export const DEFAULT_MAX_TTLS: MaxTtls = { lease: 30_000, poll: 30_000, workflow: 300_000 };

/** Shorter leases leave no room for three renewals and a guard. */
export const SHORTEST_TTL_MS = 600;
/** Longer ones would outlive the record of their fence. */
export const LONGEST_TTL_MS = 12 * 3_600_000;

/**
 * A quarantine lasts this much longer than the bound: stores round expiries, and Redis expires keys
 * a moment late.
 */
export const QUARANTINE_MARGIN_MS = 1_000;

/** The keyspace of a key in the store. A key that begins with none of them counts as `lease`. */
export function keyspaceOf(key: string): Keyspace {
  return KEYSPACE_NAMES.find((name) => key.startsWith(KEYSPACES[name])) ?? 'lease';
}

/** The bounds that `maxTtl` says, or a `CONFIG_INVALID`. */
export function readMaxTtl(option: MaxTtlOption | undefined, field = 'maxTtl'): MaxTtls {
  if (option === undefined) return DEFAULT_MAX_TTLS;
  if (typeof option !== 'object' || option === null) {
    const ms = boundMs(option, field);
    return { lease: ms, poll: ms, workflow: ms };
  }
  const unknown = Object.keys(option).find((name) => !Object.hasOwn(KEYSPACES, name));
  if (unknown !== undefined) {
    const rule = `there is no such keyspace; there are ${KEYSPACE_NAMES.join(', ')}`;
    throw new ConfigError({ field: `${field}.${unknown}`, value: unknown, rule });
  }
  const bounds: Record<Keyspace, number> = { ...DEFAULT_MAX_TTLS };
  for (const name of KEYSPACE_NAMES) {
    const given = option[name];
    if (given !== undefined) bounds[name] = boundMs(given, `${field}.${name}`);
  }
  return bounds;
}

function boundMs(given: Duration, field: string): number {
  const ms = Math.floor(durationMs(given, field));
  if (ms >= SHORTEST_TTL_MS && ms <= LONGEST_TTL_MS) return ms;
  const rule = `it must be from ${SHORTEST_TTL_MS} ms to 12 hours`;
  throw new ConfigError({ field, value: given, rule });
}

/**
 * What to tell a client whose bounds are not the store's; null if they agree. `recorded` may lack
 * some.
 */
export function boundsProblem(
  recorded: { readonly [K in Keyspace]?: number },
  own: MaxTtls,
): string | null {
  const other = KEYSPACE_NAMES.filter((name) => (recorded[name] ?? own[name]) !== own[name]);
  if (other.length === 0) return null;
  const facts = other.map(
    (name) => `maxTtl of '${name}' leases is ${recorded[name]} ms there and ${own[name]} ms here`,
  );
  return (
    `${facts.join('; ')}. Give every process of this store the same maxTtl: after data loss, each waits ` +
    "that long before it takes another's key. To change what the store has recorded, stop all of them and run 'holdfast max-ttl'."
  );
}
