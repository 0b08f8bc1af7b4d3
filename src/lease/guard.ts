/** Runs a statement in a transaction of the user, whichever client the transaction is of. */
import { ConfigError, FenceStaleError } from '../core/errors.ts';

/**
 * A transaction as a client gives it: one whose `query` runs a statement, as those of `pg` and
 * PGlite; one whose `unsafe` does, as those of `postgres`; or, for any other client, a function
 * that runs the SQL that it is given.
 */
export type GuardableTransaction =
  | ((sql: string) => PromiseLike<unknown>)
  | { query(sql: string): PromiseLike<unknown> }
  | { unsafe(sql: string): PromiseLike<unknown> };

/** How deep an error of a client may have hidden the error of the server. */
const MAX_CAUSES = 5;

/** Runs the guarding statement in the transaction. */
export async function runGuard(
  transaction: GuardableTransaction,
  sql: string,
  { key: resource, fence }: { readonly key: string; readonly fence: number },
): Promise<void> {
  await runIn(transaction, sql, (said, cause) => {
    const [, seen, holder = null] = /\bFENCE_STALE (\d+)(?: ([^\n`]+))?/.exec(said) ?? [];
    if (seen === undefined) return undefined;
    return new FenceStaleError({ resource, fence, seen: Number(seen), holder }, { cause });
  });
}

/**
 * Runs a statement in the transaction. `refusal` makes a typed error of what the server has said;
 * undefined for the error of something else.
 */
export async function runIn(
  transaction: GuardableTransaction,
  sql: string,
  refusal: (said: string, cause: unknown) => Error | undefined,
): Promise<void> {
  try {
    await execute(transaction, sql);
  } catch (thrown) {
    let error = thrown;
    for (let depth = 0; depth < MAX_CAUSES && error instanceof Error; depth++) {
      const typed = refusal(error.message, thrown);
      if (typed !== undefined) throw typed;
      error = error.cause;
    }
    throw thrown;
  }
}

function execute(transaction: GuardableTransaction, sql: string): PromiseLike<unknown> {
  checkTransaction(transaction);
  if (isPlainFunction(transaction)) return transaction(sql);
  const run = 'unsafe' in transaction ? transaction.unsafe : transaction.query;
  return run.call(transaction, sql);
}

/** Members of a pool of `pg`, a PGlite database and an instance of `postgres`; no transaction's. */
const ROOTS = ['totalCount', 'waitReady', 'reserve'] as const;
type Member = 'query' | 'unsafe' | 'raw' | (typeof ROOTS)[number];

/**
 * A pool or a whole database has `query`, too, and would run the statement in a transaction of its
 * own: the user's transaction would pass unguarded.
 */
function checkTransaction(transaction: unknown): void {
  const isThing = typeof transaction === 'function' || typeof transaction === 'object';
  const members = (isThing ? (transaction ?? {}) : {}) as { readonly [M in Member]?: unknown };
  const isRoot = ROOTS.some((member) => members[member] !== undefined);
  const runs = typeof members.unsafe === 'function' || typeof members.query === 'function';
  const isBuilder = members.raw !== undefined;
  if (!isRoot && !isBuilder && (runs || typeof transaction === 'function')) return;
  const rule = isRoot
    ? 'it must be the transaction that the client has begun, not the pool or database itself'
    : 'it must be a transaction with query(sql) or unsafe(sql), as of pg, postgres and PGlite, or a function that runs one SQL statement in it';
  throw new ConfigError({ field: 'transaction', value: transaction, rule });
}

/**
 * Some clients are functions themselves, and build a query from what they are given instead of
 * running it. They have members of their own, and a transaction would pass unguarded.
 */
function isPlainFunction(
  transaction: GuardableTransaction,
): transaction is (sql: string) => PromiseLike<unknown> {
  return typeof transaction === 'function' && !('unsafe' in transaction);
}
