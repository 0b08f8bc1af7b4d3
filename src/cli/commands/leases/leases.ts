/** `holdfast ls`, `get` and `revoke`. */
import { checkKey } from '../../../core/ids.ts';
import type { Holdfast } from '../../../holdfast.ts';
import { KEYSPACE_NAMES, type Keyspace } from '../../../store/port/keyspaces.ts';
import type { LeasePage } from '../../../store/port/lease-store.ts';
import { audit, checkReason } from '../../audit.ts';
import type { Context } from '../../context.ts';
import { EXIT, type Exit } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { jsonFacts, printable, spanOf, table } from '../../ui/text.ts';

type Listed = LeasePage['leases'][number] & { readonly class: Keyspace };

export async function ls({ flags, output }: Context, prefix: string): Promise<Exit> {
  const leases = await withHoldfast(flags, async (holdfast) => {
    const found = await Promise.all(KEYSPACE_NAMES.map((kind) => listed(holdfast, kind, prefix)));
    return found.flat();
  });
  output.result(
    leases.map((lease) => jsonFacts({ ...lease })),
    () => {
      if (leases.length === 0)
        return prefix === ''
          ? 'No lease is held.\n'
          : `No held key starts with '${printable(prefix)}'.\n`;
      const rows = leases.map(({ key, class: kind, holder, fence, expiresInMs }) => {
        return [printable(key), kind, printable(holder), String(fence), spanOf(expiresInMs)];
      });
      return output.titled(table([['KEY', 'CLASS', 'HOLDER', 'FENCE', 'EXPIRES IN'], ...rows]));
    },
  );
  return EXIT.ok;
}

/**
 * The leases of one keyspace by key. A walk through a store that changes can meet a lease twice.
 */
async function listed(holdfast: Holdfast, kind: Keyspace, prefix: string): Promise<Listed[]> {
  const found = new Map<string, Listed>();
  let cursor: string | undefined;
  do {
    const page = await holdfast.list(cursor, { class: kind });
    for (const lease of page.leases) {
      if (lease.key.startsWith(prefix)) found.set(lease.key, { ...lease, class: kind });
    }
    cursor = page.cursor;
  } while (cursor !== undefined);
  return [...found.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
}

export async function get({ flags, output }: Context, key: string): Promise<Exit> {
  checkKey(key, 'KEY');
  const lease = await withHoldfast(flags, (holdfast) => holdfast.inspect(key));
  if (lease.kind === 'failed') throw lease.error;
  const { kind, ...facts } = lease;
  output.result({ key, state: kind, ...jsonFacts(facts) }, () => {
    const name = `'${printable(key)}'`;
    if (lease.kind === 'free') {
      return `${name} is free${lease.fence > 0 ? `; the last fence was ${lease.fence}` : ''}.\n`;
    }
    const left = spanOf(lease.expiresInMs);
    if (lease.kind === 'revoked') return `${name} was revoked, and stays blocked for ${left}.\n`;
    return `${name} is held by ${printable(lease.holder)} (fence ${lease.fence}), expires in ${left}.\n`;
  });
  return lease.kind === 'held' ? EXIT.ok : EXIT.no;
}

export interface RevokeFlags {
  readonly reason: string;
  readonly force?: boolean;
  readonly fence?: number;
  /** The key is a target. */
  readonly target?: boolean;
}

export async function revoke(
  { flags, output }: Context,
  key: string,
  { reason, force = false, fence, target = false }: RevokeFlags,
): Promise<Exit> {
  checkKey(key, 'KEY');
  checkReason(reason);
  const result = await withHoldfast(
    flags,
    async (holdfast) => {
      const kind = target ? 'poll' : 'lease';
      const meant = fence === undefined ? {} : { fence };
      const result = await holdfast.revoke(key, { reason, force, ...meant, class: kind });
      const action = target ? 'target.revoke' : 'lease.revoke';
      if (result.revoked) audit(holdfast, { action, subject: key, reason });
      return result;
    },
    { history: 'on' },
  );
  output.result({ key, ...jsonFacts({ ...result }) }, () => {
    const name = `'${printable(key)}'`;
    if (!result.revoked) return notRevoked(name, result);
    const { holder, fence: bumped, mayActForMs } = result;
    const next = force
      ? 'the key is free now, so a new holder may act at the same time. Their fences differ.'
      : 'the key stays blocked until then.';
    return (
      `Revoked ${name} from ${printable(holder)} (fence ${bumped}). ` +
      `The old holder may act for up to ${spanOf(mayActForMs)}; ${next}\n`
    );
  });
  return result.revoked ? EXIT.ok : EXIT.no;
}

function notRevoked(name: string, found: { holder: string | null; fence: number }): string {
  if (found.holder === null) return `Nothing was revoked: ${name} is free.\n`;
  const now = `${name} is now held by ${printable(found.holder)} (fence ${found.fence})`;
  return `Nothing was revoked: ${now}. To revoke that lease, pass --fence ${found.fence}.\n`;
}
