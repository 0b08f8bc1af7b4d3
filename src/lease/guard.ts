/** Guards a transaction of the user with a lease, whichever client the transaction is of. */
import { ConfigError, FenceStaleError } from '../core/errors.ts';

/**
 * A transaction as a client gives it: whatever can run one statement. Of `pg`, TypeORM and PGlite
 * (`query`), `postgres` (`unsafe`), Knex (`raw`), Prisma (`$executeRawUnsafe`), Drizzle (`execute`),
 * Kysely (`executeQuery`); or a function that runs the SQL that it is given.
 */
export type GuardableTransaction =
  | ((sql: string) => PromiseLike<unknown>)
  | { query(sql: string): PromiseLike<unknown> }
  | { unsafe(sql: string): PromiseLike<unknown> }
  | { raw(sql: string): PromiseLike<unknown> }
  | { $executeRawUnsafe(sql: string): PromiseLike<unknown> }
  | { execute(sql: string): PromiseLike<unknown> }
  | { executeQuery(query: KyselyQuery): PromiseLike<unknown> };

/** A compiled query of Kysely. */
interface KyselyQuery {
  readonly sql: string;
  readonly parameters: readonly unknown[];
  readonly query: {
    readonly kind: 'RawNode';
    readonly sqlFragments: readonly string[];
    readonly parameters: readonly never[];
  };
  readonly queryId: { readonly queryId: string };
}

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

// The order matters: a transaction of `postgres` and of Knex is a function, too.
function execute(transaction: GuardableTransaction, sql: string): PromiseLike<unknown> {
  if (transaction === null || !/^(object|function)$/.test(typeof transaction))
    throw notOne(transaction);
  if ('unsafe' in transaction) return transaction.unsafe(sql);
  if ('raw' in transaction) return transaction.raw(sql);
  if ('$executeRawUnsafe' in transaction) return transaction.$executeRawUnsafe(sql);
  if (typeof transaction === 'function') return transaction(sql);
  if ('executeQuery' in transaction) return transaction.executeQuery(kyselyQuery(sql));
  if ('execute' in transaction) return transaction.execute(sql);
  if ('query' in transaction) return transaction.query(sql);
  throw notOne(transaction);
}

function notOne(transaction: unknown): ConfigError {
  const rule =
    'it is a transaction of pg, postgres, PGlite, Drizzle, Kysely, Prisma, Knex or TypeORM, or a function that runs one SQL statement in it';
  return new ConfigError({ field: 'transaction', value: transaction, rule });
}

function kyselyQuery(sql: string): KyselyQuery {
  const query = { kind: 'RawNode', sqlFragments: [sql], parameters: [] } as const;
  return { sql, parameters: [], query, queryId: { queryId: 'holdfast-guard' } };
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
