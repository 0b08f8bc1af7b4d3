import {
  HoldfastError,
  OutcomeUnknownError,
  StoreRefusedError,
  StoreUnreachableError,
} from '../../core/errors.ts';

export interface Where {
  readonly store: string;
  readonly operation: string;
}

/** An error that the server sent. `code` is an SQLSTATE. */
export interface ServerError extends Error {
  readonly code: string;
  readonly severity: string;
}

export function isServerError(error: unknown): error is ServerError {
  if (!(error instanceof Error)) return false;
  const { code, severity } = error as Partial<ServerError>;
  return typeof code === 'string' && code.length === 5 && typeof severity === 'string';
}

/** The schema or a function of it is missing: it was dropped, or not installed. */
function isNotInstalled(error: unknown): boolean {
  return isServerError(error) && /^(3F000|42883|42P01)$/.test(error.code);
}

/** The server is a standby, or was made read-only: the connection leads to the wrong one. */
function isReadOnly({ code, message }: ServerError): boolean {
  return code === '25006' || (code === '0A000' && /recovery/.test(message));
}

/** Whether another connection may lead to another server, or to one that works. */
export function endsLink(error: unknown): boolean {
  return isServerError(error) && (isReadOnly(error) || isNotInstalled(error) || isFatal(error));
}

function isFatal({ severity, code }: ServerError): boolean {
  return severity === 'FATAL' || severity === 'PANIC' || /^(57P|08)/.test(code);
}

const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/^40/, 'Another transaction was in the way. Nothing was changed, and a retry helps.'],
  [
    /^55P03$/,
    'A row stayed locked: another transaction has it, or one that `guard` let pass. Nothing was changed. ' +
      "Look for it with 'holdfast doctor', and set idle_in_transaction_session_timeout.",
  ],
  [/^57014$/, 'It took longer than its timeout, and was rolled back. Nothing was changed.'],
  [/^(25006|0A000)$/, 'The server is a standby or read-only. Use the address of the primary.'],
  [
    /^(3F000|42883|42P01)$/,
    "The tables are missing or of another version. Run 'holdfast store install', or open again.",
  ],
  [
    /^42501$/,
    'The role lacks a right. It needs USAGE on the schema, and EXECUTE on its functions: docs/postgres.md.',
  ],
  [/^28/, 'Check user and password of the address, and pg_hba.conf of the server.'],
  [/^3D000$/, 'Create the database, or correct the address.'],
  [/^53/, 'The server is out of memory, disk or connections. Nothing was changed.'],
];

function adviceFor(code: string): string {
  const found = ADVICE.find(([codes]) => codes.test(code));
  return found?.[1] ?? 'PostgreSQL refused the request. Nothing was changed.';
}

/** The error of a request that was sent. */
export function sentError(thrown: unknown, where: Where, afterMs: number): Error {
  if (thrown instanceof HoldfastError) return thrown;
  const why = thrown instanceof Error ? thrown.message : String(thrown);
  // The transaction of an answer that is an ERROR was rolled back. After a FATAL it may have
  // committed: the server ends a backend even while it waits for a synchronous standby.
  if (isServerError(thrown) && !isFatal(thrown)) {
    const reply = `${thrown.message} (${thrown.code})`;
    return new StoreRefusedError(
      { ...where, reply, advice: adviceFor(thrown.code) },
      { cause: thrown },
    );
  }
  return new OutcomeUnknownError({ ...where, afterMs, why }, { cause: thrown });
}

/** The error of a connection that could not be made. */
export function dialError(thrown: unknown, where: Where): Error {
  if (thrown instanceof HoldfastError) return thrown;
  if (isServerError(thrown) && /^(28|3D|42501)/.test(thrown.code)) {
    const reply = `${thrown.message} (${thrown.code})`;
    return new StoreRefusedError(
      { ...where, reply, advice: adviceFor(thrown.code) },
      { cause: thrown },
    );
  }
  const why = thrown instanceof Error ? thrown.message || String(thrown) : String(thrown);
  return new StoreUnreachableError({ ...where, why }, { cause: thrown });
}
