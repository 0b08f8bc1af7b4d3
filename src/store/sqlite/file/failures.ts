import {
  HoldfastError,
  OutcomeUnknownError,
  StoreRefusedError,
  StoreUnreachableError,
  StoreUnsuitableError,
} from '../../../core/errors.ts';

/** The primary result codes of SQLite that mean something to us. */
const ERROR = 1;
const PERM = 3;
const BUSY = 5;
const LOCKED = 6;
const READONLY = 8;
const IOERR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANTOPEN = 14;
const PROTOCOL = 15;
const TOOBIG = 18;
const CONSTRAINT = 19;
const MISMATCH = 20;
const MISUSE = 21;
const RANGE = 25;
const NOTADB = 26;
/** SQLite answers these to one statement and its values. The file and the connection stay good. */
const OF_THE_REQUEST = new Set([ERROR, TOOBIG, CONSTRAINT, MISMATCH, MISUSE, RANGE]);

/** Where a failure happened: before COMMIT nothing is in the file, whatever went wrong. */
export type Stage = 'open' | 'work' | 'commit';

export interface Where {
  readonly store: string;
  readonly operation: string;
}

/** Somebody else holds the lock of the file: a moment later it may be free. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === BUSY || code === LOCKED || code === PROTOCOL;
}

/** Whether the connection is no use any more after this: another one may be. */
export function isBroken(error: unknown): boolean {
  const code = resultCode(error);
  return code === IOERR || code === CORRUPT || code === NOTADB || code === CANTOPEN;
}

/** Whether a request failed because of its own content, so that every other request can still be done. */
export function isOfTheRequest(error: unknown): boolean {
  if (error instanceof HoldfastError) return true;
  const code = resultCode(error);
  if (code !== 0) return OF_THE_REQUEST.has(code);
  return (error as NodeJS.ErrnoException | null)?.code === undefined;
}

/** What went wrong in SQLite's words, as ours. */
export function asFailure(thrown: unknown, where: Where, stage: Stage, afterMs: number): Error {
  if (thrown instanceof HoldfastError) return thrown;
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  const code = resultCode(error);
  const system = (error as NodeJS.ErrnoException).code;
  const reply = error.message;
  if (code === FULL || system === 'ENOSPC' || system === 'EDQUOT')
    return new StoreRefusedError({ ...where, reply, advice: ADVICE.full });
  if (code === READONLY || code === PERM || system === 'EACCES' || system === 'EROFS')
    return new StoreRefusedError({ ...where, reply, advice: ADVICE.readOnly });
  if (code === CORRUPT)
    return new StoreUnsuitableError({
      store: where.store,
      problems: [`${reply}.`, ADVICE.corrupt],
    });
  if (code === NOTADB)
    return new StoreUnsuitableError({
      store: where.store,
      problems: [`${reply}.`, ADVICE.foreign],
    });
  if (OF_THE_REQUEST.has(code) && stage === 'work')
    return new StoreRefusedError({ ...where, reply, advice: ADVICE.request });
  // Neither SQLite's nor the system's: a mistake of ours, and not to be hidden.
  if (code === 0 && system === undefined) return error;
  // Everything before COMMIT was rolled back; what COMMIT itself has written may or may not be found again.
  if (stage === 'commit')
    return new OutcomeUnknownError({ ...where, afterMs, why: reply }, { cause: error });
  return new StoreUnreachableError({ ...where, why: reply }, { cause: error });
}

const ADVICE = {
  request:
    'SQLite does not take a value of this request. Nothing was changed. Repeating it does not help.',
  full: 'The disk is full (or the quota is): free some room. Nothing was changed; Holdfast goes on by itself.',
  readOnly:
    'The file and its folder must be writable for this user: SQLite keeps two more files beside it. Nothing was changed.',
  corrupt:
    'The file is damaged: stop every process that uses it, move it and its -wal and -shm aside, and start again; or restore a backup.',
  foreign: 'Give Holdfast a file of its own; this one was not touched.',
};

/** SQLite's primary result code; 0 for an error that is not SQLite's. */
function resultCode(error: unknown): number {
  if (!(error instanceof Error)) return 0;
  const raw = (error as { rawCode?: number }).rawCode;
  if (raw !== undefined) return raw & 0xff;
  // Opening fails with a text that ends in the code.
  return Number(/^ConnectionFailed\(.*: (\d+)"\)$/s.exec(error.message)?.[1] ?? 0) & 0xff;
}
