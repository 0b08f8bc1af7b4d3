/**
 * A start of a declared kind, from the request to what is stored: `params` as the schema of the
 * kind returns them, the key, and what is exclusive. A failure writes nothing.
 */
import { ConfigError } from '../core/errors.ts';
import { issueField, type SchemaIssue } from '../core/schema.ts';
import { KindFailedError, ParamsInvalidError } from './errors.ts';
import { DEFAULT_PROFILE, isRef, REF_RULE, type Start, type Wanted } from './intent.ts';
import { BUILT_IN_KINDS, type Kind, type StartFacts } from './kind.ts';

export interface PreparedStart {
  readonly wanted: Wanted;
  /** Equal for equal requests of one tenant. */
  readonly identity: readonly string[];
  readonly priority: number;
}

/** In bytes of JSON: a worker sends them to its supervisor, together with many others. */
const MAX_PARAMS_BYTES = 65_536;
const MAX_DEPTH = 32;
const NO_PARAMS = {};

/**
 * Throws `CONFIG_INVALID`, `PARAMS_INVALID` or `KIND_FAILED`. `id`: of the session, if it is new.
 */
export async function prepareStart(
  kinds: ReadonlyMap<string, Kind>,
  start: Start,
  tenant: string,
  id: string,
): Promise<PreparedStart> {
  const kind = kinds.get(start.kind);
  if (kind === undefined) throw unknownKind(kinds, start.kind);
  const { name, priority } = kind;
  const { params, text: paramsText } = await validParams(kind, start.params ?? NO_PARAMS);
  const facts: StartFacts = { key: start.key ?? null, tenant };
  const text = exclusiveText(kind, params, facts);
  const key = start.key ?? text ?? id;
  const same =
    kind.same === null
      ? `[${JSON.stringify(facts.key ?? text)},${paramsText}]`
      : canonicalSame(kind, called(kind, 'same', params, facts));
  return {
    wanted: {
      kind: name,
      type: 'start',
      target: key,
      profile: DEFAULT_PROFILE,
      bucket: '0',
      exclusive: text ?? start.key ?? id,
      params,
    },
    identity: ['start', name, same],
    priority,
  };
}

function unknownKind(kinds: ReadonlyMap<string, Kind>, value: unknown): ConfigError {
  const known = [...kinds.keys()].join(', ') || 'none';
  const rule = BUILT_IN_KINDS.some((name) => name === value)
    ? `it is started with type ${value === 'live' ? 'stream.start' : 'vod.start'}`
    : `this kind is not declared here. Declared kinds: ${known}`;
  return new ConfigError({ field: 'kind', value, rule });
}

/** The params as they are stored, and their canonical text. */
async function validParams(
  kind: Kind,
  given: unknown,
): Promise<{ readonly params: unknown; readonly text: string }> {
  let params = await conform(kind, given);
  let text = canonical(params, 0);
  if (text === null) {
    // Values that JSON changes, such as dates, are stored as JSON has them.
    const json = jsonOf(params);
    if (json === undefined) throw failed(kind, 'params', 'returned a value that cannot be JSON');
    params = JSON.parse(json);
    text = canonical(params, 0);
  }
  if (text === null)
    throw invalid(kind, given, [{ message: `must be nested at most ${MAX_DEPTH} levels deep` }]);
  const isLarge = text.length * 3 > MAX_PARAMS_BYTES && Buffer.byteLength(text) > MAX_PARAMS_BYTES;
  if (isLarge)
    throw invalid(kind, given, [{ message: `must be at most ${MAX_PARAMS_BYTES} bytes of JSON` }]);
  return { params, text };
}

async function conform(kind: Kind, given: unknown): Promise<unknown> {
  if (kind.params === null) return given;
  const { validate } = kind.params['~standard'];
  let reply: ReturnType<typeof validate>;
  try {
    reply = validate(given);
    if (reply instanceof Promise) reply = await reply;
  } catch (error) {
    throw failed(kind, 'params', `threw ${textOf(error)}`, error);
  }
  if (reply.issues === undefined) return reply.value;
  throw invalid(kind, given, reply.issues);
}

function exclusiveText(kind: Kind, params: unknown, facts: StartFacts): string | null {
  if (kind.exclusive === null) return null;
  const text = called(kind, 'exclusive', params, facts);
  if (isRef(text)) return text;
  throw failed(kind, 'exclusive', `returned a value that is no key: ${REF_RULE}`);
}

function called(
  kind: Kind,
  part: 'exclusive' | 'same',
  params: unknown,
  facts: StartFacts,
): unknown {
  try {
    return kind[part]?.(params, facts);
  } catch (error) {
    throw failed(kind, part, `threw ${textOf(error)}`, error);
  }
}

function invalid(kind: Kind, params: unknown, issues: readonly SchemaIssue[]): ParamsInvalidError {
  const errors = issues.map((issue) => ({
    field: issueField('params', issue),
    value: valueAt(params, issue),
    rule: issue.message,
  }));
  return new ParamsInvalidError({ kind: kind.name, errors });
}

function failed({ name }: Kind, part: string, why: string, cause?: unknown): KindFailedError {
  return new KindFailedError({ kind: name, part, why }, { cause });
}

function valueAt(root: unknown, { path = [] }: SchemaIssue): unknown {
  return path.reduce<unknown>((at, part) => {
    const name = typeof part === 'object' ? part.key : part;
    const isThere = typeof at === 'object' && at !== null && Object.hasOwn(at, name);
    return isThere ? (at as Record<PropertyKey, unknown>)[name] : undefined;
  }, root);
}

/** Undefined if the value cannot be JSON. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

function canonicalSame(kind: Kind, value: unknown): string {
  const json = jsonOf(value);
  const text = json === undefined ? null : canonical(JSON.parse(json), 0);
  if (text !== null) return text;
  throw failed(kind, 'same', 'returned a value that cannot be JSON, or is nested too deep');
}

/**
 * The same text for equal values, in whatever order their fields are. Null: the value is nested too
 * deep, or JSON would change it.
 */
function canonical(value: unknown, depth: number): string | null {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return JSON.stringify(value);
    case 'number':
      return Number.isFinite(value) ? String(value === 0 ? 0 : value) : null;
    case 'object':
      if (value === null) return 'null';
      if (depth >= MAX_DEPTH) return null;
      return Array.isArray(value) ? canonicalList(value, depth) : canonicalFields(value, depth);
    default:
      return null;
  }
}

function canonicalList(list: readonly unknown[], depth: number): string | null {
  let text = '';
  for (const item of list) {
    const part = canonical(item, depth + 1);
    if (part === null) return null;
    text += text === '' ? part : `,${part}`;
  }
  return `[${text}]`;
}

function canonicalFields(value: object, depth: number): string | null {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return null;
  if ('toJSON' in value) return null;
  const fields = value as Readonly<Record<string, unknown>>;
  let text = '';
  for (const name of Object.keys(value).sort()) {
    const part = canonical(fields[name], depth + 1);
    if (part === null) return null;
    text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${part}`;
  }
  return `{${text}}`;
}

function textOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
