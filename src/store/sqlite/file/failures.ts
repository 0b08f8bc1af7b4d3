import {
  HoldfastError,
  OutcomeUnknownError,
  StoreRefusedError,
  StoreUnreachableError,
  StoreUnsuitableError,
} from '../../../core/errors.ts';

/** The primary result codes of SQLite that Holdfast tells apart. */
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
/** Codes about one statement and its values. The file and the connection stay usable. */
const OF_THE_REQUEST = new Set([ERROR, TOOBIG, CONSTRAINT, MISMATCH, MISUSE, RANGE]);

/** When an error happened. Before COMMIT the file is unchanged. */
export type Stage = 'open' | 'work' | 'commit';

export interface Where {
  readonly store: string;
  readonly operation: string;
}

/** Whether another connection holds the lock of the file. It may be free a moment later. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === BUSY || code === LOCKED || code === PROTOCOL;
}

/** Whether the connection is unusable after this error. A new one may work. */
export function isBroken(error: unknown): boolean {
  const code = resultCode(error);
  return code === IOERR || code === CORRUPT || code === NOTADB || code === CANTOPEN;
}

/** Whether a request failed because of its own content, so that other requests can succeed. */
export function isOfTheRequest(error: unknown): boolean {
  if (error instanceof HoldfastError) return true;
  const code = resultCode(error);
  if (code !== 0) return OF_THE_REQUEST.has(code);
  return (error as NodeJS.ErrnoException | null)?.code === undefined;
}

/** Turns an error of SQLite or the system into a HoldfastError. */
export function asStoreError(thrown: unknown, where: Where, stage: Stage, afterMs: number): Error {
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
  // Neither SQLite's nor the system's: a bug of Holdfast, which must not be hidden.
  if (code === 0 && system === undefined) return error;
  // Before COMMIT everything was rolled back. A failed COMMIT may or may not have been written.
  if (stage === 'commit')
    return new OutcomeUnknownError({ ...where, afterMs, why: reply }, { cause: error });
  return new StoreUnreachableError({ ...where, why: reply }, { cause: error });
}

const ADVICE = {
  request:
    'SQLite refused a value of this request. Nothing was changed. Correct the value; a retry does not help.',
  full: 'The disk or its quota is full. Nothing was changed. Free some space; Holdfast continues automatically.',
  readOnly:
    'Nothing was changed. Make the file and its folder writable for this user: SQLite keeps two more files beside it.',
  corrupt:
    'The file is damaged. Stop every process that uses it. Then restore a backup, or move the file and its -wal and -shm away and start again.',
  foreign: 'Nothing was changed. Give Holdfast a file of its own.',
};

/** Returns SQLite's primary result code; 0 for an error that is not SQLite's. */
function resultCode(error: unknown): number {
  if (!(error instanceof Error)) return 0;
  const { rawCode, errcode } = error as { rawCode?: number; errcode?: number };
  const raw = rawCode ?? errcode;
  if (raw !== undefined) return raw & 0xff;
  // An error of opening by libsql has the code at the end of its message.
  return Number(/^ConnectionFailed\(.*: (\d+)"\)$/s.exec(error.message)?.[1] ?? 0) & 0xff;
}
