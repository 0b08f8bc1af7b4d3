/**
 * Who may ask. Tokens come from the options, the environment or a file, never from a command line or a URL, where others could read
 * them. Only their digests are kept, and no message ever repeats one.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';
import { ConfigError } from '../../core/errors.ts';
import { isTargetId, TARGET_ID_RULE } from '../../core/ids.ts';
import type { Random } from '../../core/random.ts';
import { type Caller, SCOPES, type Scope } from './route.ts';

export interface TokenSettings {
  /** Names the token in logs, and the client where it names none. */
  readonly id: string;
  /** With two of them, both are valid: the current one, and the one before it. */
  readonly token: string | readonly [current: string, previous: string];
  readonly scope: Scope;
  /** It sees and does only what is of this tenant. */
  readonly tenant?: string;
  /** As ISO 8601 has it; default never. */
  readonly expiresAt?: string;
}

export type Recognized =
  | { readonly kind: 'known'; readonly caller: Caller }
  | { readonly kind: 'expired' | 'unknown' };

interface Known {
  readonly digests: readonly Buffer[];
  readonly caller: Caller;
}

const SHORTEST_TOKEN = 16;
const LONGEST_TOKEN = 512;
/** Each of them is compared with what comes, every time. */
const MOST_TOKENS = 1_000;
const FIELDS = new Set(['id', 'token', 'scope', 'tenant', 'expiresAt']);
const TOKEN = new RegExp(`^[\\x21-\\x7e]{${SHORTEST_TOKEN},${LONGEST_TOKEN}}$`);
const TOKEN_RULE = `a token is ${SHORTEST_TOKEN} to ${LONGEST_TOKEN} printable ASCII characters without spaces`;
/** In place of a token, wherever values are shown. */
const HIDDEN = '(not shown)';
/** Of the token that is made where none is configured. */
const MADE_ID = 'made-at-start';
const MADE_DIGITS = 48;

/** Nobody in particular: who asks for what is open to all. */
export const NOBODY: Caller = {
  tokenId: 'nobody',
  scope: 'v3:read',
  tenant: null,
  expiresAtMs: Number.POSITIVE_INFINITY,
};

/** For where none is configured: whoever started the server has it, and nobody else. */
export function makeToken(random: Random): TokenSettings & { readonly token: string } {
  return { id: MADE_ID, token: random.hex(MADE_DIGITS), scope: 'v3:admin' };
}

export class Tokens {
  readonly #known: readonly Known[];
  readonly #clock: Clock;

  constructor(settings: readonly TokenSettings[], clock: Clock) {
    this.#known = checkTokens(settings).map(({ token, ...about }) => ({
      digests: [token].flat().map(digestOf),
      caller: callerOf(about),
    }));
    this.#clock = clock;
  }

  /** Compares with all of them, whether one has matched or not: how long it takes says nothing. */
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

/** The tokens, if they make sense; `where` is what the list is called in complaints. */
export function checkTokens(list: unknown, where = 'tokens'): readonly TokenSettings[] {
  if (!Array.isArray(list) || list.length > MOST_TOKENS) {
    const rule = `it is a list of at most ${MOST_TOKENS} tokens`;
    throw new ConfigError({ field: where, value: HIDDEN, rule });
  }
  const ids = new Set<string>();
  const texts = new Set<string>();
  return list.map((entry: unknown, i) => {
    const settings = checkToken(entry, `${where}[${i}]`);
    if (ids.has(settings.id)) {
      const rule = 'another token has this id';
      throw new ConfigError({ field: `${where}[${i}].id`, value: settings.id, rule });
    }
    ids.add(settings.id);
    for (const text of [settings.token].flat()) {
      const rule = 'the same token is there twice: whose it is could not be told';
      if (texts.has(text))
        throw new ConfigError({ field: `${where}[${i}].token`, value: HIDDEN, rule });
      texts.add(text);
    }
    return settings;
  });
}

function checkToken(entry: unknown, where: string): TokenSettings {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry))
    throw new ConfigError({ field: where, value: HIDDEN, rule: 'it is an object' });
  const fields = entry as Readonly<Record<string, unknown>>;
  const refuse = (field: string, rule: string, value: unknown = HIDDEN) => {
    throw new ConfigError({ field: `${where}.${field}`, value, rule });
  };
  for (const name of Object.keys(fields))
    if (!FIELDS.has(name)) refuse(name, `there are ${[...FIELDS].join(', ')}`);
  const { id, token, scope, tenant, expiresAt } = fields;
  if (!isTargetId(id)) refuse('id', TARGET_ID_RULE);
  const texts = Array.isArray(token) ? token : [token];
  const isToken = (text: unknown) => typeof text === 'string' && TOKEN.test(text);
  if (texts.length < 1 || texts.length > 2 || !texts.every(isToken)) refuse('token', TOKEN_RULE);
  if (!SCOPES.some((known) => known === scope))
    refuse('scope', `it is one of ${SCOPES.join(', ')}`);
  if (tenant !== undefined && !isTargetId(tenant)) refuse('tenant', TARGET_ID_RULE);
  if (expiresAt !== undefined && !isMoment(expiresAt))
    refuse('expiresAt', 'it is a time as ISO 8601 has it, such as 2030-01-31T12:00:00Z', expiresAt);
  return entry as TokenSettings;
}

/** A day and a time with its zone: anything less means another moment on another host. */
function isMoment(text: unknown): text is string {
  const form = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/;
  return typeof text === 'string' && form.test(text) && !Number.isNaN(Date.parse(text));
}

function callerOf({ id, scope, tenant, expiresAt }: Omit<TokenSettings, 'token'>): Caller {
  const expiresAtMs = expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
  return { tokenId: id, scope, tenant: tenant ?? null, expiresAtMs };
}

function digestOf(token: string): Buffer {
  // In one call: every request comes by, and an object for each digest is work for the garbage collector.
  return hash('sha256', token, 'buffer');
}
