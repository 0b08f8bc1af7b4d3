import { ConfigError, type ErrorKind, HoldfastError, kindOf } from '../core/errors.ts';

/** What the process ends with: a number, or the signal that it ends by. */
export type Exit = number | NodeJS.Signals;

/** The numbers above 1 are those of sysexits.h (79 is the first that it leaves free), and of shells. `docs/cli.md` has them too. */
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
  notExecutable: 126,
  notFound: 127,
} as const;

export const EXIT_MEANINGS: readonly (readonly [string, string])[] = [
  ['0', "done; for run, the command's own code"],
  [
    '1',
    'no: nobody holds the key, there is no such session, target, instance, pool, workflow or dead letter; intents start --wait: it ended instead; doctor: not fit for leases',
  ],
  ['64', 'wrong use: an unknown command or option, a value that makes no sense'],
  ['69', 'the store can not be reached, or refused'],
  ['70', 'internal error'],
  [
    '75',
    'run: the lease is held (another code with --held-exit-code), or was just revoked; workflows rm: somebody holds it; intents start: too many share the session, or another has the channel',
  ],
  ['76', 'run: the lease was lost, and the command was stopped'],
  ['78', 'the configuration is invalid, or the store unsuitable; up: another worker has its name'],
  [
    '79',
    'the store is in quarantine: it may have forgotten leases, and grants none for a while. Never covered by --held-exit-code or --quiet',
  ],
  ['126', 'run: the command can not be executed'],
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

/** Codes that end otherwise than others of their kind. */
const BY_CODE: Readonly<Record<string, number>> = {
  // A conflict that no longer exists on the next try.
  REVISION_CONFLICT: EXIT.unavailable,
  OVERLOADED: EXIT.unavailable,
  KEY_FOREIGN: EXIT.config,
  VALUE_TOO_LARGE: EXIT.usage,
};

/** What went wrong, in the words of the command line. */
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
  // What the user typed is named as the user typed it: `--ttl`, `KEY`.
  if (error instanceof ConfigError && /^(--|[A-Z]+$)/.test(error.field)) return EXIT.usage;
  const byCode = error instanceof HoldfastError ? BY_CODE[error.code] : undefined;
  return byCode ?? BY_KIND[kindOf(error)];
}
