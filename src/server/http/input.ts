/** What a request says, held against the schemas of its route. All that is wrong is told at once: fields and rules, never values. */
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

/** So many are told; who has made more mistakes than this has made one. */
const MOST_ERRORS = 50;
const WORDS: Readonly<Record<string, string>> = {
  string: 'it is text',
  number: 'it is a number',
  boolean: 'it is true or false',
  object: 'it is an object',
  array: 'it is a list',
};

export function validated(route: Route, { params, search, body }: RawInput): Input {
  const errors: FieldError[] = [];
  const take = (schema: z.ZodType | undefined, value: unknown) => {
    const result = schema?.safeParse(value, { error: ruleOf });
    if (result?.success === false) errors.push(...result.error.issues.flatMap(errorsOf));
    return result?.data;
  };
  const input = {
    params: take(route.params, params),
    query: takeQuery(route, search, take, errors),
    body: take(route.body, body),
  };
  if (errors.length > 0) throw invalid(errors);
  return input;
}

function takeQuery(
  route: Route,
  search: string,
  take: (schema: z.ZodType | undefined, value: unknown) => unknown,
  errors: FieldError[],
): unknown {
  if (route.query !== undefined) return take(route.query, queryOf(search));
  // Who asks whether we are alive may add what keeps caches away; elsewhere it was meant to change something.
  if (route.access !== 'open')
    for (const name of new Set(new URLSearchParams(search).keys()))
      errors.push({ field: shownName(name), rule: 'this takes no such parameter' });
  return undefined;
}

/** Text where a name is there once, else a list; as a plain table of names, whatever they are. */
function queryOf(search: string): Record<string, string | string[]> {
  const query: Record<string, string | string[]> = Object.create(null);
  if (search === '') return query;
  for (const [name, value] of new URLSearchParams(search)) {
    const known = query[name];
    query[name] = known === undefined ? value : [known, value].flat();
  }
  return query;
}

/** In our words; what the schema itself says comes first. */
function ruleOf(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code !== 'invalid_type') return undefined;
  if (issue.input === undefined) return 'it has to be there';
  return WORDS[issue.expected] ?? 'it is of another kind';
}

function errorsOf(issue: z.core.$ZodIssue): FieldError[] {
  const at = issue.path.map(String);
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({
      field: shownName([...at, key].join('.')),
      rule: 'there is no such field',
    }));
  return [{ field: shownName(at.join('.')), rule: issue.message }];
}

function invalid(errors: readonly FieldError[]): Problem {
  const told = errors.slice(0, MOST_ERRORS);
  const detail = told.map(({ field, rule }) => `${field}: ${rule}`).join('; ');
  return new Problem('invalid-request', { detail, errors: told });
}
