/** Guards a transaction of the user with a lease, whichever client the transaction is of. */
import { ConfigError, FenceStaleError } from '../core/errors.ts';

/**
 * A transaction as a client gives it: one whose `query` runs a statement, as those of `pg` and
 * PGlite; or, for any other client, a function that runs the SQL that it is given.
 */
export type GuardableTransaction =
  | ((sql: string) => PromiseLike<unknown>)
  | { query(sql: string): PromiseLike<unknown> };

/** How deep an error of a client may have hidden the error of the server. */
const MAX_CAUSES = 5;

/** Runs the guarding statement in the transaction. */
export async function runGuard(
  transaction: GuardableTransaction,
  sql: string,
  { key, fence }: { readonly key: string; readonly fence: number },
): Promise<void> {
  try {
    await execute(transaction, sql);
  } catch (error) {
    throw staleFrom(error, key, fence) ?? error;
  }
}

function execute(transaction: GuardableTransaction, sql: string): PromiseLike<unknown> {
  if (isPlainFunction(transaction)) return transaction(sql);
  const query = transaction !== null && typeof transaction === 'object' && transaction.query;
  if (typeof query === 'function') return query.call(transaction, sql);
  const rule =
    'it is a transaction with query(sql), as of pg and PGlite, or a function that runs one SQL statement in it';
  throw new ConfigError({ field: 'transaction', value: transaction, rule });
}

/**
 * Some clients are functions themselves, and build a query from what they are given instead of
 * running it. They have members of their own, and a transaction would pass unguarded.
 */
function isPlainFunction(
  transaction: GuardableTransaction,
): transaction is (sql: string) => PromiseLike<unknown> {
  if (typeof transaction !== 'function') return false;
  return !['unsafe', 'raw'].some((member) => member in transaction);
}

/** The typed error, if the server has refused the fence; undefined for another error. */
function staleFrom(thrown: unknown, key: string, fence: number): FenceStaleError | undefined {
  let error = thrown;
  for (let depth = 0; depth < MAX_CAUSES && error instanceof Error; depth++) {
    const [, seen, holder] = /\bFENCE_STALE (\d+)(?: ([^\n`]+))?/.exec(error.message) ?? [];
    if (seen !== undefined) {
      const facts = { resource: key, fence, seen: Number(seen), holder: holder ?? null };
      return new FenceStaleError(facts, { cause: thrown });
    }
    error = error.cause;
  }
  return undefined;
}
