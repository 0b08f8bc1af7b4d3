/**
 * What `holdfast.config.mjs` may say, as one schema. Every command checks the whole of it, so a mistake is told wherever it is met first, and
 * nothing runs with half of a configuration. What depends on more than one field, or on the host, is checked by what it is for.
 *
 * Apart from `config.ts`, which every program loads: zod is loaded only where there is something to check.
 */
import { z } from 'zod';
import { type ApiConfig, type HoldfastConfig, ROLES } from './config.ts';
import { type Duration, durationMs } from './core/duration.ts';
import { ConfigError } from './core/errors.ts';
import { ZONES } from './fleet/poll/http/addresses.ts';
import { type MaxTtlOption, readMaxTtl } from './store/port/keyspaces.ts';

/** A field for each option that there is: the compiler says which one is missing. */
type Shape<T> = Record<keyof Required<T>, z.ZodType>;

const HIDDEN = '(not shown)';
const THE_EXPORT = 'the default export';
const DURATION =
  "it has to be milliseconds as a number from 0 up, or text such as '250ms', '30s', '5m', '1h', '7d'";
const POOL =
  'it has to be how many there are, a list of what each is called, or { slots, wait, key }';
const PIPELINE =
  "it has to be a function, { run: function }, or { command: ['program', 'argument', …] }; one of them";
const TOKENS =
  "it has to be a list: [{ id, token, scope: 'v3:read' | 'v3:write' | 'v3:admin', tenant, expiresAt }]";

const text = must((value) => typeof value === 'string', 'it has to be text');
const texts = must(isTexts, 'it has to be a list of text, with something in it');
const anyTexts = must(
  (value) => isTexts(value) || isEmptyList(value),
  'it has to be a list of text',
);
const duration = must(isDuration, DURATION);
const onOrOff = oneOf('on', 'off');
const anyFunction = must((value) => typeof value === 'function', 'it has to be a function');

function must(isGood: (value: unknown) => boolean, rule: string): z.ZodType {
  return z.custom((value) => value === undefined || isGood(value), { error: rule });
}

function oneOf(...words: readonly string[]): z.ZodType {
  return must((value) => words.some((word) => word === value), `it has to be ${quoted(words)}`);
}

function whole(from: number, to = Number.MAX_SAFE_INTEGER): z.ZodType {
  const rule = to === Number.MAX_SAFE_INTEGER ? `${from} up` : `${from} to ${to}`;
  const isGood = (value: unknown) =>
    Number.isSafeInteger(value) && (value as number) >= from && (value as number) <= to;
  return must(isGood, `it has to be a whole number from ${rule}`);
}

function listOf(words: readonly string[]): z.ZodType {
  const isGood = (value: unknown) =>
    Array.isArray(value) && value.every((word) => words.includes(word));
  return must(isGood, `it has to be a list of ${words.join(', ')}`);
}

/** An object with these fields and no others. `secrets` says where what is kept here by mistake belongs. */
function section(shape: Record<string, z.ZodType>, secrets = ''): z.ZodType {
  const rule = `unknown option. Known options: ${Object.keys(shape).join(', ')}${secrets}`;
  const fields = z.strictObject(
    Object.fromEntries(Object.entries(shape).map(([name, type]) => [name, type.optional()])),
    { error: ({ code }) => (code === 'unrecognized_keys' ? rule : undefined) },
  );
  // A promise, a Map or an instance of a class has no fields of its own, and would pass as an empty configuration.
  return z.custom(isPlain, { error: 'it has to be an object' }).pipe(fields).optional();
}

function byName(each: z.ZodType): z.ZodType {
  return z
    .custom(isPlain, { error: 'it has to be an object' })
    .pipe(z.record(z.string(), each))
    .optional();
}

/** With fields that have to be there. */
function needing(type: z.ZodType, name: string, rule: string): z.ZodType {
  return type.superRefine((value, context) => {
    const isThere = value === undefined || Object.hasOwn(value as object, name);
    if (!isThere) context.addIssue({ code: 'custom', path: [name], message: rule });
  });
}

const rate = needing(
  section({
    requestsPerSecond: must(
      (value) => typeof value === 'number' && value > 0,
      'it has to be a number above 0',
    ),
    burst: must(
      (value) => typeof value === 'number' && value >= 1,
      'it has to be a number from 1 up',
    ),
  }),
  'requestsPerSecond',
  'it has to be there: a number above 0',
);

/** What the server is told by a configuration, and by a program that mounts it. */
const FOR_APP = {
  // Their texts, scopes and times are checked where tokens of the environment are.
  tokens: must((value) => Array.isArray(value), TOKENS),
  lan: needing(
    section({ allow: texts, trustedProxies: anyTexts }),
    'allow',
    "it has to be there: a list of networks, such as ['10.0.0.0/8']",
  ),
  hosts: anyTexts,
  limits: section({ inFlight: whole(1), rate }),
  events: section({ clients: whole(1), clientsPerToken: whole(1), queuedBytes: whole(1) }),
  metrics: oneOf('open', 'token'),
  bodyTimeout: duration,
  handlerTimeout: duration,
};

const api = section({
  host: text,
  port: whole(0, 65_535),
  ...FOR_APP,
  ...{ headersTimeout: duration, requestTimeout: duration, idleTimeout: duration },
  maxConnections: whole(1, 1_000_000),
} satisfies Shape<ApiConfig>);

const resource = z.unknown().superRefine((pool, context) => {
  if (pool === undefined || typeof pool === 'number' || isTexts(pool)) return;
  const rest = section({
    slots: must((value) => typeof value === 'number' || isTexts(value), POOL),
    wait: duration,
    key: text,
  });
  const result = isPlain(pool) ? rest.safeParse(pool) : null;
  if (result === null) context.addIssue({ code: 'custom', message: POOL });
  else passOn(result, context);
});

const pipeline = z.unknown().superRefine((said, context) => {
  if (said === undefined || typeof said === 'function') return;
  const fields = section({
    ...{ run: anyFunction, command: z.unknown(), cwd: text },
    env: byName(text),
    resource: must(
      (value) => value === null || typeof value === 'string',
      'it has to be the name of a pool, or null',
    ),
  });
  const result = fields.safeParse(said);
  passOn(result, context);
  if (!result.success) return;
  const { run, command } = said as Record<string, unknown>;
  const isOne = (run === undefined) !== (command === undefined);
  if (!isOne || (command !== undefined && !isTexts(command)))
    context.addIssue({ code: 'custom', message: PIPELINE });
});

const maxTtl = z.unknown().superRefine((option, context) => {
  try {
    readMaxTtl(option as MaxTtlOption | undefined);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    context.addIssue({
      code: 'custom',
      path: error.field.split('.').slice(1),
      message: error.rule,
    });
  }
});

const config = section({
  ...{ store: text, prefix: text, quarantine: onOrOff, maxTtl },
  sync: oneOf('everysec', 'always'),
  ...{ sessionIds: oneOf('any', 'uuid'), name: text, weight: whole(1, 1_000) },
  ...{ every: duration, ttl: duration, timeout: duration, concurrency: whole(1) },
  results: onOrOff,
  discovery: must((value) => value === 'off' || isDuration(value), `${DURATION}, or 'off'`),
  http: section({ allow: listOf(ZONES), maxBytes: whole(0) }),
  poll: anyFunction,
  intents: section({ apiLeases: onOrOff }, '. Secrets belong into HOLDFAST_IDEM_SECRET'),
  roles: listOf(ROLES),
  api,
  retention: section({ sessions: duration, deadLetters: duration, history: duration }),
  resources: byName(resource),
  pipelines: section({ live: pipeline, vod: pipeline }),
  worker: section({ name: text, starts: whole(1, 10_000), ttl: duration, grace: duration }),
} satisfies Shape<HoldfastConfig>);

/** `said` if it is a configuration, or a `CONFIG_INVALID` about the first thing that is wrong with it. */
export function checkConfig(said: unknown): HoldfastConfig {
  if (said === undefined) {
    const rule = "there is none. End the file with 'export default defineConfig({ … })'";
    throw new ConfigError({ field: THE_EXPORT, value: said, rule });
  }
  if (said instanceof Promise) {
    const rule = "export what it resolves to: 'export default await …'";
    throw new ConfigError({ field: THE_EXPORT, value: said, rule });
  }
  refuseFlaw(config, said);
  return said as HoldfastConfig;
}

/** The same for what a program tells the server itself. */
export function checkAppOptions(options: object): void {
  const names = Object.keys(FOR_APP);
  const told = Object.entries(options).filter(([name]) => names.includes(name));
  refuseFlaw(section(FOR_APP), Object.fromEntries(told));
}

function refuseFlaw(schema: z.ZodType, said: unknown): void {
  const [issue] = schema.safeParse(said).error?.issues ?? [];
  if (issue === undefined) return;
  const unknown = issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  const path = [...issue.path, ...unknown].map(String);
  // What stands under a name that is not known may be a secret under a wrong one.
  const isSecret = unknown.length > 0 || path.includes('tokens') || path.includes('env');
  const value = isSecret ? HIDDEN : valueAt(said, path);
  throw new ConfigError({ field: path.join('.') || THE_EXPORT, value, rule: issue.message });
}

function valueAt(said: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, name) => (at as Record<string, unknown> | null)?.[name], said);
}

function passOn(result: z.ZodSafeParseResult<unknown>, context: z.RefinementCtx): void {
  for (const issue of result.error?.issues ?? []) context.addIssue({ ...issue });
}

function isPlain(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string');
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function isDuration(value: unknown): boolean {
  try {
    return durationMs(value as Duration, '') >= 0;
  } catch {
    return false;
  }
}

function quoted(words: readonly string[]): string {
  return words.map((word) => `'${word}'`).join(' or ');
}
