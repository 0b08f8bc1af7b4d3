/**
 * Validates path, query and body against the schemas of the route. The problem lists every field
 * that is wrong with its rule, and never a value.
 */
import type { z } from 'zod';
import { Problem } from './problem.ts';
import type { Route } from './route.ts';
import { shownName } from './strict-json.ts';

export interface RawInput {
  readonly params: Readonly<Record<string, string>>;
  /** Without the question mark. */
  readonly search: string;
  readonly body: unknown;
}

export interface Input {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

interface FieldError {
  readonly field: string;
  readonly rule: string;
}

/** Errors beyond this number are not listed. */
const MAX_ERRORS = 50;
const TYPE_RULES: Readonly<Record<string, string>> = {
  string: 'must be a string',
  number: 'must be a number',
  boolean: 'must be true or false',
  object: 'must be an object',
  record: 'must be an object',
  array: 'must be a list',
};

export function validateInput(route: Route, { params, search, body }: RawInput): Input {
  const errors: FieldError[] = [];
  const parse = (schema: z.ZodType | undefined, value: unknown) => {
    const result = schema?.safeParse(value, { error: ruleOf });
    if (result?.success === false) errors.push(...result.error.issues.flatMap(errorsOf));
    return result?.data;
  };
  const input = {
    params: parse(route.params, params),
    query: parseQuery(route, search, parse, errors),
    body: parse(route.body, body),
  };
  if (errors.length > 0) throw invalid(errors);
  return input;
}

/** A part of a body, by a schema of its own. Throws the problem that lists what is wrong. */
export function validated<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const result = schema.safeParse(value, { error: ruleOf });
  if (result.success) return result.data;
  throw invalid(result.error.issues.flatMap(errorsOf));
}

/** Fields that are wrong, as the problem lists them. */
export function invalidFields(errors: readonly FieldError[]): Problem {
  return invalid(errors.map(({ field, rule }) => ({ field: shownName(field), rule })));
}

function parseQuery(
  route: Route,
  search: string,
  parse: (schema: z.ZodType | undefined, value: unknown) => unknown,
  errors: FieldError[],
): unknown {
  if (route.query !== undefined) return parse(route.query, queryOf(search));
  // Health checks may add parameters against caches. On other routes an unknown one is a mistake.
  if (route.access !== 'open')
    for (const name of new Set(new URLSearchParams(search).keys()))
      errors.push({ field: shownName(name), rule: 'is not a parameter of this route' });
  return undefined;
}

/** A string for each parameter; a list for one that is repeated. */
function queryOf(search: string): Record<string, string | string[]> {
  const query: Record<string, string | string[]> = Object.create(null);
  if (search === '') return query;
  for (const [name, value] of new URLSearchParams(search)) {
    const known = query[name];
    query[name] = known === undefined ? value : [known, value].flat();
  }
  return query;
}

/** Zod uses this rule unless the schema has a message of its own. */
function ruleOf(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code !== 'invalid_type') return undefined;
  if (issue.input === undefined) return 'is required';
  return TYPE_RULES[issue.expected] ?? 'is of the wrong type';
}

function errorsOf(issue: z.core.$ZodIssue): FieldError[] {
  const at = issue.path.map(String);
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({
      field: shownName([...at, key].join('.')),
      rule: 'is not a field of this request',
    }));
  return [{ field: shownName(at.join('.')), rule: issue.message }];
}

function invalid(errors: readonly FieldError[]): Problem {
  const listed = errors.slice(0, MAX_ERRORS);
  const detail = listed.map(({ field, rule }) => fieldSentence(field, rule)).join('; ');
  return new Problem('invalid-request', { detail, errors: listed });
}

/** `limit must be …`, or `id: an id is …` where the rule is a sentence of its own. */
export function fieldSentence(field: string, rule: string): string {
  return /^(is|must) /.test(rule) ? `${field} ${rule}` : `${field}: ${rule}`;
}
