/** The route table as an OpenAPI 3.1 document, from the same schemas that validate requests. */
import { z } from 'zod';
import { PROBLEMS, type ProblemName } from '../http/problem.ts';
import type { DocumentedResponse, Route } from '../http/route.ts';

export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly [keyword: string]: unknown;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description?: string | undefined;
  readonly schema: JsonSchema;
}

type Content = Readonly<Record<string, { readonly schema: JsonSchema }>>;

export interface OperationResponse {
  readonly description: string;
  readonly content?: Content;
  readonly headers?: Readonly<Record<string, unknown>> | undefined;
  /** The problem types of this response. */
  readonly 'x-problems'?: readonly ProblemName[];
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly deprecated?: true | undefined;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly Parameter[] | undefined;
  readonly requestBody?: { readonly required: true; readonly content: Content } | undefined;
  readonly responses: Readonly<Record<string, OperationResponse>>;
}

export interface OpenApi {
  readonly openapi: '3.1.0';
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly securitySchemes: Readonly<Record<string, unknown>>;
  };
}

/** In the order of the reference page. */
const GROUPS: Readonly<Record<Route['group'], string>> = {
  intents: 'Start and stop sessions.',
  sessions: 'What intents started.',
  targets: 'What the fleet polls.',
  events: 'What happens, live and in the past.',
  fleet: 'The instances that share the targets.',
  leases: 'Leases and their holders.',
  workflows: 'Workflows, each with a single writer.',
  operation: 'Health, metrics and documentation of this server.',
};

const DESCRIPTION =
  'Holdfast gives every piece of ongoing work one owner. This API accepts intents, shows their outcome, and operates the fleet. ' +
  'Send a token in the header `Authorization: Bearer …`. `v3:admin` includes `v3:write`, which includes `v3:read`.';

const problemSchema = z
  .looseObject({
    type: z.string().meta({ description: 'A stable URL that explains this problem type.' }),
    title: z.string(),
    status: z.number().int(),
    detail: z.string().meta({ description: 'What happened, and what to do.' }),
    code: z.string().meta({ description: 'The same as `type`, for programs; stable.' }),
    errors: z
      .array(z.object({ field: z.string(), rule: z.string() }))
      .optional()
      .meta({ description: 'The wrong fields, and the rule that each breaks.' }),
  })
  .meta({ id: 'Problem', description: 'A problem as in RFC 9457.' });

const RETRY_AFTER = {
  'Retry-After': { description: 'Seconds until a retry makes sense.', schema: { type: 'integer' } },
};
const PROBLEM_TYPE = 'application/problem+json';

/** `base` is the path that the server is mounted at; empty at the root. */
export function openApi(
  routes: readonly Route[],
  { version, base }: { version: string; base: string },
): OpenApi {
  const schemas: SharedSchemas = {};
  jsonSchema(problemSchema, 'output', schemas);
  const paths: Record<string, Record<string, Operation>> = {};
  for (const route of routes) {
    paths[route.path] ??= {};
    Object.assign(paths[route.path] ?? {}, {
      [route.method.toLowerCase()]: operationOf(route, schemas),
    });
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Holdfast', version, description: DESCRIPTION },
    servers: [{ url: base === '' ? '/' : base }],
    tags: Object.entries(GROUPS).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas,
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
    },
  };
}

/** Named schemas by name. They are described once, and referenced. */
type SharedSchemas = Record<string, JsonSchema>;

/**
 * The schema as JSON; its named parts are added to `shared`. `input`: the form that clients send;
 * `output`: the form that they receive.
 */
function jsonSchema(schema: z.ZodType, io: 'input' | 'output', shared: SharedSchemas): JsonSchema {
  const text = JSON.stringify(z.toJSONSchema(schema, { io, unrepresentable: 'any' }));
  const json = JSON.parse(text.replaceAll('"#/$defs/', '"#/components/schemas/'));
  const { $schema: _, $defs = {}, ...own } = json as Record<string, unknown>;
  Object.assign(shared, $defs);
  return own as JsonSchema;
}

function operationOf(route: Route, schemas: SharedSchemas): Operation {
  const { access, body, summary } = route;
  const parameters = [
    ...parametersOf('path', route.params, schemas),
    ...parametersOf('query', route.query, schemas),
    ...(route.path === '/api/v3/events' ? [LAST_EVENT_ID] : []),
  ];
  const documented = Object.entries(route.responses).map(([status, response]) => {
    return [status, responseOf(response, schemas)] as const;
  });
  return {
    operationId: operationId(route),
    tags: [route.group],
    summary,
    description: `${route.description} ${accessWords(route)}`,
    security: access === 'open' ? [] : [{ bearer: [access] }],
    deprecated: route.isDeprecated,
    parameters: parameters.length > 0 ? parameters : undefined,
    requestBody:
      body === undefined
        ? undefined
        : {
            required: true,
            content: { 'application/json': { schema: jsonSchema(body, 'input', schemas) } },
          },
    responses: Object.fromEntries([...documented, ...problemResponses(route)]),
  };
}

const LAST_EVENT_ID: Parameter = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  schema: { type: 'string' },
  description: 'The id of the last event that the client received. The stream continues after it.',
};

/** `POST /api/v3/members/{id}/drain` is `postMembersIdDrain`. */
function operationId({ method, path }: Route): string {
  const words = path.replace(/^\/api\/v3/, '').match(/[A-Za-z0-9]+/g) ?? [];
  const capitalized = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return method.toLowerCase() + capitalized.join('');
}

function accessWords({ access, tenants }: Route): string {
  if (access === 'open') return 'No token is needed.';
  const others = tenants === 'no' ? ' Tokens of a tenant are refused.' : '';
  return `Needs the scope \`${access}\`.${others}`;
}

function parametersOf(
  place: 'path' | 'query',
  schema: z.ZodType | undefined,
  schemas: SharedSchemas,
): Parameter[] {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = jsonSchema(schema, 'input', schemas);
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    description,
    schema: repeatable(rest),
  }));
}

/** A repeatable parameter is a list; in a query, one value and a list of one look the same. */
function repeatable(schema: JsonSchema): JsonSchema {
  return schema.anyOf?.find(({ type }) => type === 'array') ?? schema;
}

function responseOf({ description, body, mediaType }: DocumentedResponse, schemas: SharedSchemas) {
  if (body === undefined && mediaType === undefined) return { description };
  const schema = body === undefined ? { type: 'string' } : jsonSchema(body, 'output', schemas);
  return { description, content: { [mediaType ?? 'application/json']: { schema } } };
}

function problemResponses(route: Route): [string, OperationResponse][] {
  const byStatus = new Map<number, ProblemName[]>();
  for (const name of new Set([...route.problems, ...commonProblems(route)])) {
    const { status } = PROBLEMS[name];
    byStatus.set(status, [...(byStatus.get(status) ?? []), name]);
  }
  return [...byStatus]
    .sort(([a], [b]) => a - b)
    .map(([status, names]) => [String(status), problemResponse(status, names)]);
}

function problemResponse(status: number, names: readonly ProblemName[]): OperationResponse {
  return {
    description: names.map((name) => `${PROBLEMS[name].title} (\`${name}\`).`).join(' '),
    headers: status === 429 || status === 503 ? RETRY_AFTER : undefined,
    content: { [PROBLEM_TYPE]: { schema: { $ref: '#/components/schemas/Problem' } } },
    'x-problems': names,
  };
}

/** The problems that every route may have. */
function commonProblems({ access, body, method, params }: Route): ProblemName[] {
  const guards: ProblemName[] = ['outside-lan', 'foreign-host', 'internal'];
  if (access === 'open') return params === undefined ? guards : ['invalid-request', ...guards];
  return [
    'invalid-request',
    'unauthenticated',
    'forbidden',
    ...guards,
    'too-many-requests',
    'store-unavailable',
    ...(method === 'GET' ? [] : (['outcome-unknown'] as const)),
    ...(body === undefined
      ? []
      : (['request-timeout', 'body-too-large', 'unsupported-media-type'] as const)),
  ];
}
