import type { Duration } from '../../../core/duration.ts';
import { KEYSPACE_NAMES, type MaxTtlOption, type MaxTtls } from '../../../store/port/keyspaces.ts';
import { audit } from '../../audit.ts';
import type { Context } from '../../context.ts';
import { EXIT, type Exit } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { spanOf, table } from '../../ui/text.ts';

export interface MaxTtlFlags {
  readonly lease?: Duration;
  readonly poll?: Duration;
  readonly workflow?: Duration;
}

/** `holdfast max-ttl`. */
export async function maxTtl({ flags, output }: Context, given: MaxTtlFlags): Promise<Exit> {
  const isChange = KEYSPACE_NAMES.some((name) => given[name] !== undefined);
  const bounds = await withHoldfast(
    flags,
    async (holdfast): Promise<Partial<MaxTtls>> => {
      const recorded = await holdfast.maxTtl();
      if (!isChange) return recorded;
      const changed = await holdfast.changeMaxTtl({ ...recorded, ...given } as MaxTtlOption);
      audit(holdfast, { action: 'store.max-ttl', subject: holdfast.storeName, reason: null });
      return changed;
    },
    { history: isChange ? 'on' : 'off', create: isChange },
  );
  output.result(bounds, () => shown(bounds, isChange));
  return EXIT.ok;
}

function shown(bounds: Partial<MaxTtls>, isChange: boolean): string {
  const rows = KEYSPACE_NAMES.flatMap((name) => {
    const ms = bounds[name];
    return ms === undefined ? [] : [[name, spanOf(ms)]];
  });
  if (rows.length === 0)
    return 'No longest TTL is recorded yet. The first process that takes leases records it.\n';
  const then = isChange
    ? '\nChanged. Start every process with the same maxTtl (--max-ttl, HOLDFAST_MAX_TTL, maxTtl in holdfast.config.mjs or of open()).\n'
    : '';
  return `${table([['KEYSPACE', 'MAX TTL'], ...rows])}${then}`;
}
