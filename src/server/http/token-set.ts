/**
 * The configured tokens. They come from options, the environment or a file, and never from a
 * command line or a URL, where other users could read them. Only their digests are kept, and no
 * message repeats a token.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';
import { ConfigError } from '../../core/errors.ts';
import { isTargetId, TARGET_ID_RULE } from '../../core/ids.ts';
import type { Random } from '../../core/random.ts';
import { type Caller, SCOPES, type Scope } from './route.ts';

export interface TokenSettings {
  /** Names the token in logs, and the client where it sends no `clientId`. */
  readonly id: string;
  /** Two for a rotation: the current token and the one before it are both valid. */
  readonly token: string | readonly [current: string, previous: string];
  readonly scope: Scope;
  /** The token sees and changes only sessions of this tenant. */
  readonly tenant?: string;
  /** ISO 8601; default never. */
  readonly expiresAt?: string;
}

export type Recognized =
  | { readonly kind: 'known'; readonly caller: Caller }
  | { readonly kind: 'expired' | 'unknown' };

interface Known {
  readonly digests: readonly Buffer[];
  readonly caller: Caller;
}

const MIN_TOKEN_LENGTH = 16;
const MAX_TOKEN_LENGTH = 512;
/** Each request is compared with every token. */
const MAX_TOKENS = 1_000;
const FIELDS = new Set(['id', 'token', 'scope', 'tenant', 'expiresAt']);
const TOKEN = new RegExp(`^[\\x21-\\x7e]{${MIN_TOKEN_LENGTH},${MAX_TOKEN_LENGTH}}$`);
const TOKEN_RULE = `must be ${MIN_TOKEN_LENGTH} to ${MAX_TOKEN_LENGTH} printable ASCII characters without spaces`;
/** Shown in messages instead of a token. */
const HIDDEN = '(not shown)';
/** The token that is made where none is configured. */
const MADE_ID = 'made-at-start';
const MADE_DIGITS = 48;

/** The caller of open routes. */
export const ANONYMOUS: Caller = {
  tokenId: 'nobody',
  scope: 'v3:read',
  tenant: null,
  expiresAtMs: Number.POSITIVE_INFINITY,
};

/** For a server without configured tokens. Only the person who started it gets this token. */
export function makeToken(random: Random): TokenSettings & { readonly token: string } {
  return { id: MADE_ID, token: random.hex(MADE_DIGITS), scope: 'v3:admin' };
}

export class TokenSet {
  readonly #known: readonly Known[];
  readonly #clock: Clock;

  constructor(settings: readonly TokenSettings[], clock: Clock) {
    this.#known = checkTokens(settings).map(({ token, ...about }) => ({
      digests: [token].flat().map(digestOf),
      caller: callerOf(about),
    }));
    this.#clock = clock;
  }

  /** Compares with every token even after a match, so that the time taken reveals nothing. */
  recognize(token: string): Recognized {
    const digest = digestOf(token);
    let found: Caller | null = null;
    for (const { digests, caller } of this.#known)
      for (const known of digests) if (timingSafeEqual(known, digest)) found = caller;
    if (found === null) return { kind: 'unknown' };
    if (this.#clock.wallMs() >= found.expiresAtMs) return { kind: 'expired' };
    return { kind: 'known', caller: found };
  }
}

/** Returns the tokens, or throws. `where` names the list in messages. */
export function checkTokens(list: unknown, where = 'tokens'): readonly TokenSettings[] {
  if (!Array.isArray(list) || list.length > MAX_TOKENS) {
    const rule = `must be a list of at most ${MAX_TOKENS} tokens`;
    throw new ConfigError({ field: where, value: HIDDEN, rule });
  }
  const ids = new Set<string>();
  const texts = new Set<string>();
  return list.map((entry: unknown, i) => {
    const settings = checkToken(entry, `${where}[${i}]`);
    if (ids.has(settings.id)) {
      const rule = 'is the id of another token; ids must be unique';
      throw new ConfigError({ field: `${where}[${i}].id`, value: settings.id, rule });
    }
    ids.add(settings.id);
    for (const text of [settings.token].flat()) {
      const rule = 'is listed twice; each token must be unique';
      if (texts.has(text))
        throw new ConfigError({ field: `${where}[${i}].token`, value: HIDDEN, rule });
      texts.add(text);
    }
    return settings;
  });
}

function checkToken(entry: unknown, where: string): TokenSettings {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry))
    throw new ConfigError({ field: where, value: HIDDEN, rule: 'must be an object' });
  const fields = entry as Readonly<Record<string, unknown>>;
  const refuse = (field: string, rule: string, value: unknown = HIDDEN) => {
    throw new ConfigError({ field: `${where}.${field}`, value, rule });
  };
  for (const name of Object.keys(fields))
    if (!FIELDS.has(name)) refuse(name, `unknown field; a token has ${[...FIELDS].join(', ')}`);
  const { id, token, scope, tenant, expiresAt } = fields;
  if (!isTargetId(id)) refuse('id', TARGET_ID_RULE);
  const texts = Array.isArray(token) ? token : [token];
  const isToken = (text: unknown) => typeof text === 'string' && TOKEN.test(text);
  if (texts.length < 1 || texts.length > 2)
    refuse('token', 'must be one token, or two during a rotation: the new and the old one');
  if (!texts.every(isToken)) refuse('token', TOKEN_RULE);
  if (!SCOPES.some((known) => known === scope))
    refuse('scope', `must be one of ${SCOPES.join(', ')}`);
  if (tenant !== undefined && !isTargetId(tenant)) refuse('tenant', TARGET_ID_RULE);
  if (expiresAt !== undefined && !isMoment(expiresAt))
    refuse('expiresAt', 'must be an ISO 8601 time, such as 2030-01-31T12:00:00Z', expiresAt);
  return entry as TokenSettings;
}

/** A date and a time with its zone. Without the zone, hosts would disagree on the moment. */
function isMoment(text: unknown): text is string {
  const form = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/;
  return typeof text === 'string' && form.test(text) && !Number.isNaN(Date.parse(text));
}

function callerOf({ id, scope, tenant, expiresAt }: Omit<TokenSettings, 'token'>): Caller {
  const expiresAtMs = expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
  return { tokenId: id, scope, tenant: tenant ?? null, expiresAtMs };
}

function digestOf(token: string): Buffer {
  // One call for every request: a Hash object each time would be work for the garbage collector.
  return hash('sha256', token, 'buffer');
}
