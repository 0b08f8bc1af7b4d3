/** `holdfast slots`. */
import { shortName } from '../../../core/ids.ts';
import type { Pool, SlotView } from '../../../lease/pool/pool.ts';
import type { Context } from '../../context.ts';
import { CliError, EXIT, type Exit } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { jsonFacts, printable, spanOf, table } from '../../ui/text.ts';
import { workerOf } from '../up/worker-settings.ts';

/** Reading leaves no trace in the shared log. */
const READ_ONLY = { history: 'off' } as const;

interface Row extends SlotView {
  readonly pool: string;
  /** The key of its lease. */
  readonly key: string;
  /**
   * The session that holds the slot; null if it is free, or held by something else than a worker.
   */
  readonly session: string | null;
  readonly worker: string | null;
}

export async function slots({ flags, output }: Context, name?: string): Promise<Exit> {
  const rows = await withHoldfast(
    flags,
    async (holdfast, settings) => {
      // This worker is never started. It reads the pools from the configuration.
      const { pools } = workerOf(holdfast, settings);
      const wanted = pools.filter((pool) => name === undefined || pool.name === name);
      if (name !== undefined && wanted.length === 0) throw noSuchPool(name, pools);
      return (await Promise.all(wanted.map(rowsOf))).flat();
    },
    READ_ONLY,
  );
  output.result(
    rows.map((row) => jsonFacts({ ...row })),
    () => {
      if (rows.length === 0)
        return 'There are no pools. Add some as resources in holdfast.config.mjs.\n';
      const cells = rows.map((row) =>
        [
          row.pool,
          row.slot,
          stateOf(row),
          sessionOf(row),
          workerName(row),
          fenceOf(row),
          leftOf(row),
        ].map(printable),
      );
      const head = ['POOL', 'SLOT', 'STATE', 'SESSION', 'WORKER', 'FENCE', 'EXPIRES IN'];
      return output.titled(table([head, ...cells], output.columns));
    },
  );
  return EXIT.ok;
}

async function rowsOf(pool: Pool): Promise<Row[]> {
  const views = await pool.inspect();
  return views.map((view) => {
    const [worker, session] = holderParts(view.holder);
    return { pool: pool.name, key: pool.keyOf(view.slot), ...view, session, worker };
  });
}

/** A worker holds a slot as `instance/session`. */
function holderParts(holder: string | null): [worker: string | null, session: string | null] {
  const slash = holder?.lastIndexOf('/') ?? -1;
  if (holder === null || slash < 0) return [null, null];
  return [holder.slice(0, slash), holder.slice(slash + 1)];
}

function stateOf({ holder, expiresInMs }: Row): string {
  if (holder !== null) return 'held';
  return expiresInMs > 0 ? 'revoked' : 'free';
}

function sessionOf({ session, holder }: Row): string {
  return session ?? holder ?? '-';
}

function workerName({ worker }: Row): string {
  return worker === null ? '-' : shortName(worker);
}

function fenceOf({ fence }: Row): string {
  return fence === 0 ? '-' : String(fence);
}

function leftOf({ expiresInMs }: Row): string {
  return expiresInMs === 0 ? '-' : spanOf(expiresInMs);
}

function noSuchPool(name: string, pools: readonly Pool[]): CliError {
  const there = pools.map((pool) => pool.name).join(', ') || 'none';
  const message = `pool '${name}' is not in the configuration. Configured pools: ${there}.`;
  return new CliError(EXIT.no, 'POOL_NOT_FOUND', message, { pool: name });
}
