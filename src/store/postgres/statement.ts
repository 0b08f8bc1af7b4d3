/** How long a statement may wait for locks: this share of its timeout, at most so long. */
const LOCK_SHARE = 1 / 2;
const MAX_LOCK_MS = 1_000;
/** How long the server works on a statement: less than its caller waits. */
const WORK_SHARE = 9 / 10;

export interface StatementOptions {
  readonly schema: string;
  readonly timeoutMs: number;
  /** False only for hints and releases: losing one costs time. */
  readonly isDurable?: boolean;
}

/** An argument of a function; an array becomes an array. */
export type Argument = string | number | null | readonly (string | number | null)[];

/**
 * Other statements as one message and one transaction, with the same settings: defaults of the
 * server or the role, such as a short statement_timeout, do not count.
 */
export function within(timeoutMs: number, text: string): string {
  const ms = Math.ceil(timeoutMs);
  return `SET LOCAL statement_timeout=${ms};SET LOCAL lock_timeout=${ms};${text}`;
}

/**
 * One call of a function as one message, which the server executes as one transaction and commits
 * before it answers. Every setting is local to it: nothing depends on the session, so a pooler may
 * give each message to another connection, and no default of the server or the role counts.
 */
export function statement(
  name: string,
  args: string | readonly Argument[],
  { schema, timeoutMs, isDurable = true }: StatementOptions,
): string {
  const lockMs = Math.max(1, Math.floor(Math.min(timeoutMs * LOCK_SHARE, MAX_LOCK_MS)));
  const workMs = Math.max(1, Math.floor(timeoutMs * WORK_SHARE));
  return (
    'SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;' +
    `SET LOCAL synchronous_commit=${isDurable ? 'on' : 'off'};` +
    `SET LOCAL lock_timeout=${lockMs};SET LOCAL statement_timeout=${workMs};` +
    `SELECT "${schema}".${name}(${typeof args === 'string' ? literal(args) : args.map(asSql).join()})`
  );
}

/** Arrays have the cheapest form that the server reads: a batch is large. */
function asSql(argument: Argument): string {
  if (argument === null) return 'NULL';
  if (typeof argument === 'number') return String(argument);
  if (typeof argument === 'string') return literal(argument);
  return literal(`{${argument.map(asElement).join()}}`);
}

function asElement(element: string | number | null): string {
  if (typeof element !== 'string') return element === null ? 'NULL' : String(element);
  return `"${element.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

/** A text as SQL. `E''` reads backslashes alike, whatever standard_conforming_strings says. */
export function literal(text: string): string {
  return `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

/** The statement that guards a transaction of the user. */
export function guardStatement(schema: string, key: string, fence: number): string {
  return `SELECT "${schema}".guard(${plainLiteral(key)}, ${fence})`;
}

/** The statement that keeps a step in a transaction of the user. */
export function keepStatement(schema: string, request: object): string {
  return `SELECT "${schema}".keep_step(${plainLiteral(JSON.stringify(request))})`;
}

/**
 * A text as SQL, escaped so far that no client of the user takes a part of it for a placeholder, as
 * Knex does with `?` and `:name`.
 */
function plainLiteral(text: string): string {
  const escaped = text.replace(/[^A-Za-z0-9_./ "{},[\]-]/gu, (char) => {
    const code = char.codePointAt(0) ?? 0;
    return `\\U${code.toString(16).padStart(8, '0')}`;
  });
  return `E'${escaped}'`;
}
