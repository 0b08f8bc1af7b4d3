/**
 * Loads libsql by `require`, when a file is opened. If its native part is missing, an `import`
 * rejects twice on Node 20: once for the caller, and once where no program can catch it.
 */
import { createRequire } from 'node:module';
import type Libsql from 'libsql';
import type LibsqlPromise from 'libsql/promise';
import { StoreUnsuitableError } from '../../../core/errors.ts';

const require = createRequire(import.meta.url);

export function libsql(): typeof Libsql {
  return require('libsql');
}

/** Runs statements on a thread of its own. */
export function libsqlPromise(): typeof LibsqlPromise {
  return require('libsql/promise');
}

/** Throws if libsql cannot be loaded, before any file is made. */
export function checkLibsql(store: string): void {
  try {
    libsql();
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n', 1)[0] : String(error);
    const problem =
      `The embedded store needs the package libsql, which cannot be loaded here (${why}). ` +
      'Install it again on this platform with its optional dependencies, or use Redis or Valkey.';
    throw new StoreUnsuitableError({ store, problems: [problem] });
  }
}
