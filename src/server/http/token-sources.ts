/** Tokens as they are configured outside of programs: in the environment, or in a file that its owner alone can change. */
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { ConfigError } from '../../core/errors.ts';
import { checkTokens, type TokenSettings } from './tokens.ts';

export interface FoundTokens {
  readonly tokens: readonly TokenSettings[];
  /** What whoever runs this should know, in words. */
  readonly warnings: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

const TOKEN = 'HOLDFAST_API_TOKEN';
const PREVIOUS = 'HOLDFAST_API_TOKEN_PREVIOUS';
const FILE = 'HOLDFAST_API_TOKENS_FILE';
const ENV_ID = 'env';
const LARGEST_FILE = 1_048_576;
/** Rights of a file: of its group and all others to write, and of all others to read. */
const WRITABLE_BY_OTHERS = 0o022;
const READABLE_BY_ALL = 0o004;

/**
 * `HOLDFAST_API_TOKEN` may do everything, and so may `HOLDFAST_API_TOKEN_PREVIOUS` while all move to the new one; `HOLDFAST_API_TOKENS_FILE`
 * names a file with a JSON list of `{ id, token, scope, tenant, expiresAt }`.
 */
export function readTokens(env: Environment): FoundTokens {
  const fromFile = env[FILE] ? readFile(env[FILE]) : { tokens: [], warnings: [] };
  const tokens = checkTokens([...fromEnvironment(env), ...fromFile.tokens]);
  return { tokens, warnings: fromFile.warnings };
}

function fromEnvironment(env: Environment): readonly TokenSettings[] {
  const current = env[TOKEN];
  const previous = env[PREVIOUS];
  if (!current) {
    const rule = `it is the token before ${TOKEN}, which is not there`;
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
    throw refuse('the file belongs to another user');
  if ((mode & WRITABLE_BY_OTHERS) !== 0)
    throw refuse('others may write the file, and so give themselves rights: chmod go-w');
  const warnings =
    (mode & READABLE_BY_ALL) === 0
      ? []
      : [`every user of this host may read the tokens in ${path}: chmod o-r`];
  try {
    return { tokens: checkTokens(JSON.parse(text), FILE), warnings };
  } catch (error) {
    // What JSON.parse says quotes the text.
    throw error instanceof ConfigError ? error : refuse('the file is no JSON');
  }
}

/** The rights are those of what was read, whatever is under its name a moment later. */
function contentsOf(path: string): { text: string; mode: number; uid: number } {
  let file: number | null = null;
  try {
    file = openSync(path, 'r');
    const found = fstatSync(file);
    if (!found.isFile() || found.size > LARGEST_FILE)
      throw new Error(`it is no file of at most ${LARGEST_FILE} bytes`);
    return { text: readFileSync(file, 'utf8'), mode: found.mode, uid: found.uid };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ConfigError({
      field: FILE,
      value: path,
      rule: `the file can not be read (${why})`,
    });
  } finally {
    if (file !== null) closeSync(file);
  }
}
