import { ConfigError, type ErrorKind, HoldfastError, kindOf } from '../core/errors.ts';

/** The exit code of the process, or the signal that ends it. */
export type Exit = number | NodeJS.Signals;

/**
 * Codes from 64 are those of sysexits.h (79 is the first that it leaves free); those from 126 are
 * the shell's. `docs/cli.md` lists them too.
 */
export const EXIT = {
  ok: 0,
  no: 1,
  usage: 64,
  unavailable: 69,
  internal: 70,
  held: 75,
  lost: 76,
  config: 78,
  quarantined: 79,
  contradicted: 80,
  notExecutable: 126,
  notFound: 127,
} as const;

export const EXIT_MEANINGS: readonly (readonly [string, string])[] = [
  ['0', "success; for run, the command's own code"],
  [
    '1',
    'no: the key is free, or the target, session, instance, pool, workflow or dead letter does not exist; intents start --wait: the session ended; doctor: the store is not fit for leases',
  ],
  ['64', 'wrong usage: unknown command or option, invalid value'],
  ['69', 'the store is unavailable, or refused the request'],
  ['70', 'internal error'],
  [
    '75',
    'run: another holder has the lease (change the code with --held-exit-code), or it was just revoked; workflows rm: the workflow is held; intents start: the session has too many clients, or another API holds the channel',
  ],
  ['76', 'run: the lease was lost, so the command was stopped'],
  ['78', 'invalid configuration, or unsuitable store; up: another worker has this name'],
  [
    '79',
    'the store is in quarantine: it may have lost leases, and grants none for a while. --held-exit-code and --quiet do not apply',
  ],
  ['80', 'verify: the log contradicts itself, or what a sink recorded'],
  ['126', 'run: the command could not be executed'],
  ['127', 'run: the command was not found'],
  ['128+n', 'run: ended by signal n, such as 130 for Ctrl-C'],
];

const BY_KIND: Readonly<Record<ErrorKind, number>> = {
  invalid: EXIT.config,
  'not-found': EXIT.no,
  conflict: EXIT.no,
  busy: EXIT.held,
  quarantined: EXIT.quarantined,
  unavailable: EXIT.unavailable,
  'unknown-outcome': EXIT.unavailable,
  unsuitable: EXIT.config,
  lost: EXIT.lost,
  closed: EXIT.internal,
  internal: EXIT.internal,
};

/** Codes whose exit code differs from others of their kind. */
const BY_CODE: Readonly<Record<string, number>> = {
  // A conflict that no longer exists on the next try.
  REVISION_CONFLICT: EXIT.unavailable,
  OVERLOADED: EXIT.unavailable,
  KEY_FOREIGN: EXIT.config,
  VALUE_TOO_LARGE: EXIT.usage,
};

/** An error of the command line itself, with its exit code. */
export class CliError extends Error {
  readonly exit: number;
  readonly code: string;
  readonly facts: Readonly<Record<string, unknown>>;

  constructor(
    exit: number,
    code: string,
    message: string,
    facts: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
    this.exit = exit;
    this.code = code;
    this.facts = facts;
  }
}

export function usageError(message: string): CliError {
  return new CliError(EXIT.usage, 'USAGE', message);
}

export function exitOf(error: unknown): number {
  if (error instanceof CliError) return error.exit;
  // The field of an argument is called as the user typed it: `--ttl`, `KEY`.
  if (error instanceof ConfigError && /^(--|[A-Z]+$)/.test(error.field)) return EXIT.usage;
  const byCode = error instanceof HoldfastError ? BY_CODE[error.code] : undefined;
  return byCode ?? BY_KIND[kindOf(error)];
}
