/** Reads tokens from the environment, or from a file that only its owner can change. */
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { ConfigError } from '../../core/errors.ts';
import { checkTokens, type TokenSettings } from './token-set.ts';

export interface FoundTokens {
  readonly tokens: readonly TokenSettings[];
  /** Sentences for the operator. */
  readonly warnings: readonly string[];
}

export type Environment = Readonly<Record<string, string | undefined>>;

const TOKEN = 'HOLDFAST_API_TOKEN';
const PREVIOUS = 'HOLDFAST_API_TOKEN_PREVIOUS';
const FILE = 'HOLDFAST_API_TOKENS_FILE';
const ENV_ID = 'env';
const MAX_FILE_BYTES = 1_048_576;
/** Permission bits of a file: write for group and others, read for others. */
const WRITABLE_BY_OTHERS = 0o022;
const READABLE_BY_ALL = 0o004;

/**
 * `HOLDFAST_API_TOKEN` has the scope v3:admin, and so has `HOLDFAST_API_TOKEN_PREVIOUS` during a
 * rotation. `HOLDFAST_API_TOKENS_FILE` names a file with a JSON list of
 * `{ id, token, scope, tenant, expiresAt }`.
 */
export function readTokens(env: Environment): FoundTokens {
  const fromFile = env[FILE] ? readFile(env[FILE]) : { tokens: [], warnings: [] };
  // Again, for both together: ids and tokens differ across the sources.
  const tokens = checkTokens([...fromEnvironment(env), ...fromFile.tokens]);
  return { tokens, warnings: fromFile.warnings };
}

function fromEnvironment(env: Environment): readonly TokenSettings[] {
  const current = env[TOKEN];
  const previous = env[PREVIOUS];
  if (!current) {
    const rule = `is set, and ${TOKEN} is not. Set both, or neither`;
    if (previous) throw new ConfigError({ field: PREVIOUS, value: '(not shown)', rule });
    return [];
  }
  const token = previous ? ([current, previous] as const) : current;
  return checkTokens([{ id: ENV_ID, token, scope: 'v3:admin' }], TOKEN);
}

function readFile(path: string): FoundTokens {
  const { text, mode, uid } = contentsOf(path);
  const refuse = (rule: string) => new ConfigError({ field: FILE, value: path, rule });
  if (![process.getuid?.() ?? uid, 0].includes(uid))
    throw refuse(
      'the file belongs to another user; give it to the user of this server, or to root',
    );
  if ((mode & WRITABLE_BY_OTHERS) !== 0)
    throw refuse('other users may write the file and could add tokens; run chmod go-w');
  const warnings =
    (mode & READABLE_BY_ALL) === 0
      ? []
      : [`every user of this host can read the tokens in ${path}: run chmod o-r`];
  try {
    return { tokens: checkTokens(JSON.parse(text), FILE), warnings };
  } catch (error) {
    // The message of JSON.parse is dropped: it quotes the text, which has tokens in it.
    throw error instanceof ConfigError ? error : refuse('the file is not valid JSON');
  }
}

/** The permissions are those of the file that was read, even if the path is replaced meanwhile. */
function contentsOf(path: string): { text: string; mode: number; uid: number } {
  let file: number | null = null;
  try {
    file = openSync(path, 'r');
    const found = fstatSync(file);
    if (!found.isFile()) throw new Error('it is not a regular file');
    if (found.size > MAX_FILE_BYTES) throw new Error(`it has more than ${MAX_FILE_BYTES} bytes`);
    return { text: readFileSync(file, 'utf8'), mode: found.mode, uid: found.uid };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ConfigError({
      field: FILE,
      value: path,
      rule: `the file cannot be read (${why})`,
    });
  } finally {
    if (file !== null) closeSync(file);
  }
}
