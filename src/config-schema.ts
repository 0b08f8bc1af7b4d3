/**
 * The schema of `holdfast.config.mjs`. Every command checks the whole file, so that no command runs
 * with half of a configuration. Rules about several fields, or about the host, are checked by their
 * users.
 *
 * This file is apart from `config.ts`, which every program loads, because it loads zod.
 */
import { z } from 'zod';
import { type ApiConfig, type HoldfastConfig, ROLES, type RunnerConfig } from './config.ts';
import { type Duration, durationMs } from './core/duration.ts';
import { ConfigError } from './core/errors.ts';
import { ZONES } from './fleet/poll/http/addresses.ts';
import { type KindDeclarations, readKinds } from './intents/kind.ts';
import { type MaxTtlOption, readMaxTtl } from './store/port/keyspaces.ts';
import { checkLinkOptions } from './store/redis/client/link-options.ts';

/** One field for each option. The compiler reports a missing one. */
type Shape<T> = Record<keyof Required<T>, z.ZodType>;

/** Of one `holdfast up`: far more than cores that one store keeps up with. */
const MAX_PROCESSES = 64;
const HIDDEN = '(not shown)';
const DEFAULT_EXPORT = 'the default export';
const DURATION =
  "it must be milliseconds as a number from 0 up, or text such as '250ms', '30s', '5m', '1h', '7d'";
const POOL = 'it must be a number of slots, a list of their names, or { slots, wait, key }';
const PIPELINE =
  "it must be a function, { run: function }, or { command: ['program', 'argument', …] }";
const TOKENS =
  "it must be a list: [{ id, token, scope: 'v3:read' | 'v3:write' | 'v3:admin', tenant, expiresAt }]";

const text = must((value) => typeof value === 'string', 'it must be text');
const texts = must(isTexts, 'it must be a list of text, not empty');
const anyTexts = must((value) => isTexts(value) || isEmptyList(value), 'it must be a list of text');
const duration = must(isDuration, DURATION);
const onOrOff = oneOf('on', 'off');
const anyFunction = must((value) => typeof value === 'function', 'it must be a function');

function must(isValid: (value: unknown) => boolean, rule: string): z.ZodType {
  return z.custom((value) => value === undefined || isValid(value), { error: rule });
}

function oneOf(...words: readonly string[]): z.ZodType {
  return must((value) => words.some((word) => word === value), `it must be ${quoted(words)}`);
}

function whole(from: number, to = Number.MAX_SAFE_INTEGER): z.ZodType {
  const rule = to === Number.MAX_SAFE_INTEGER ? `${from} up` : `${from} to ${to}`;
  const isValid = (value: unknown) =>
    Number.isSafeInteger(value) && (value as number) >= from && (value as number) <= to;
  return must(isValid, `it must be a whole number from ${rule}`);
}

function listOf(words: readonly string[]): z.ZodType {
  const isValid = (value: unknown) =>
    Array.isArray(value) && value.every((word) => words.includes(word));
  return must(isValid, `it must be a list of ${words.join(', ')}`);
}

/** An object with these fields and no others. `secrets` says where secrets belong. */
function section(shape: Record<string, z.ZodType>, secrets = ''): z.ZodType {
  const rule = `unknown option. Known options: ${Object.keys(shape).join(', ')}${secrets}`;
  const fields = z.strictObject(
    Object.fromEntries(Object.entries(shape).map(([name, type]) => [name, type.optional()])),
    { error: ({ code }) => (code === 'unrecognized_keys' ? rule : undefined) },
  );
  // A promise, a Map or an instance of a class has no fields, and would pass as an empty object.
  return z.custom(isPlain, { error: 'it must be an object' }).pipe(fields).optional();
}

function byName(each: z.ZodType): z.ZodType {
  return z
    .custom(isPlain, { error: 'it must be an object' })
    .pipe(z.record(z.string(), each))
    .optional();
}

/** With a required field. */
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
      'it must be a number above 0',
    ),
    burst: must(
      (value) => typeof value === 'number' && value >= 1,
      'it must be a number from 1 up',
    ),
  }),
  'requestsPerSecond',
  'it is required: a number above 0',
);

/** The options of the server, from a configuration or from a program that mounts it. */
const FOR_APP = {
  // The server checks the rest, as for tokens of the environment.
  tokens: must((value) => Array.isArray(value), TOKENS),
  lan: needing(
    section({ allow: texts, trustedProxies: anyTexts }),
    'allow',
    "it is required: a list of networks, such as ['10.0.0.0/8']",
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
  processes: whole(1, MAX_PROCESSES),
  ...FOR_APP,
  headersTimeout: duration,
  requestTimeout: duration,
  idleTimeout: duration,
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

const pipeline = z.unknown().superRefine((value, context) => {
  if (value === undefined || typeof value === 'function') return;
  const fields = section({
    run: anyFunction,
    command: z.unknown(),
    cwd: text,
    env: byName(text),
    resource: must(
      (value) => value === null || typeof value === 'string',
      'it must be the name of a pool, or null',
    ),
  });
  const result = fields.safeParse(value);
  passOn(result, context);
  if (!result.success) return;
  const { run, command } = value as Record<string, unknown>;
  const isOne = (run === undefined) !== (command === undefined);
  if (!isOne || (command !== undefined && !isTexts(command)))
    context.addIssue({ code: 'custom', message: PIPELINE });
});

/** A value that a function of its own checks, which throws `ConfigError`. */
function checkedBy(check: (value: unknown) => void): z.ZodType {
  return z.unknown().superRefine((value, context) => {
    try {
      check(value);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      const path = error.field.split('.').slice(1);
      context.addIssue({ code: 'custom', path, message: error.rule });
    }
  });
}

const maxTtl = checkedBy((option) => readMaxTtl(option as MaxTtlOption | undefined));

const RUNNER =
  "it must have either run, a function, or command: ['program', 'argument', …]; or commands, by name";
const runnerFields = section({
  run: anyFunction,
  command: texts,
  commands: byName(texts),
  cwd: text,
  env: byName(text),
  grace: duration,
  backoff: text,
  stuckAfter: duration,
  onStuck: oneOf('report', 'restart'),
  maxHold: duration,
} satisfies Shape<RunnerConfig>);
const runner = runnerFields.superRefine((value, context) => {
  const { run, command, commands } = (value ?? { run: true }) as Record<string, unknown>;
  const given = [run, command].filter((one) => one !== undefined).length;
  const isRight = given === 1 || (given === 0 && commands !== undefined);
  if (!isRight) context.addIssue({ code: 'custom', message: RUNNER });
});

const kinds = checkedBy((declared) => readKinds(declared as KindDeclarations | undefined));

const config = section({
  store: text,
  prefix: text,
  quarantine: onOrOff,
  maxTtl,
  sync: oneOf('everysec', 'always'),
  redis: checkedBy(checkLinkOptions),
  sessionIds: oneOf('any', 'uuid'),
  name: text,
  weight: whole(1, 1_000),
  every: duration,
  ttl: duration,
  timeout: duration,
  concurrency: whole(1),
  maxBackoff: must((value) => value === 'off' || isDuration(value), `${DURATION}, or 'off'`),
  results: onOrOff,
  discovery: must((value) => value === 'off' || isDuration(value), `${DURATION}, or 'off'`),
  http: section({ allow: listOf(ZONES), maxBytes: whole(0) }),
  poll: anyFunction,
  runner,
  intents: section({ apiLeases: onOrOff }, '. Secrets belong into HOLDFAST_IDEM_SECRET'),
  roles: listOf(ROLES),
  api,
  retention: section({ sessions: duration, deadLetters: duration, history: duration }),
  kinds,
  pools: byName(resource),
  resources: byName(resource),
  pipelines: section({ live: pipeline, vod: pipeline }),
  worker: section({
    name: text,
    kinds: texts,
    starts: whole(1, 10_000),
    ttl: duration,
    grace: duration,
  }),
} satisfies Shape<HoldfastConfig>);

/**
 * Returns a valid configuration. Throws `CONFIG_INVALID` with the first problem of any other value.
 */
export function checkConfig(exported: unknown): HoldfastConfig {
  if (exported === undefined) {
    const rule = "it is missing. End the file with 'export default defineConfig({ … })'";
    throw new ConfigError({ field: DEFAULT_EXPORT, value: exported, rule });
  }
  if (exported instanceof Promise) {
    const rule = "it is a promise. Export its result: 'export default await …'";
    throw new ConfigError({ field: DEFAULT_EXPORT, value: exported, rule });
  }
  refuseInvalid(config, exported);
  return exported as HoldfastConfig;
}

/** The same for the options that a program gives to the server. */
export function checkAppOptions(options: object): void {
  const names = Object.keys(FOR_APP);
  const given = Object.entries(options).filter(([name]) => names.includes(name));
  refuseInvalid(section(FOR_APP), Object.fromEntries(given));
}

function refuseInvalid(schema: z.ZodType, value: unknown): void {
  const [issue] = schema.safeParse(value).error?.issues ?? [];
  if (issue === undefined) return;
  const unknown = issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  const path = [...issue.path, ...unknown].map(String);
  // The value of an unknown option may be a secret under a misspelt name.
  const isLogin = path[0] === 'redis' && path.length > 1 && path[1] !== 'natMap';
  const isSecret = unknown.length > 0 || path.includes('tokens') || path.includes('env') || isLogin;
  const shown = isSecret ? HIDDEN : valueAt(value, path);
  const field = path.join('.') || DEFAULT_EXPORT;
  throw new ConfigError({ field, value: shown, rule: issue.message });
}

function valueAt(root: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, name) => (at as Record<string, unknown> | null)?.[name], root);
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
