// Every route, from the OpenAPI document that a server gives.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { code, line, page, slugOf, table } from './page.mjs';

const TOKEN = 'a token that is used here, and nowhere else';
/** The pages of the bodies, by the first letters of their names. */
const SHAPES = [
  { path: 'http-shapes', letters: /^[A-L]/, title: 'Bodies, A to L' },
  { path: 'http-shapes-m-z', letters: /^[^A-L]/, title: 'Bodies, M to Z' },
];
/** What JSON Schema says of a whole number without limits. */
const UNLIMITED = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];

/** The routes on one page, and the shapes of their bodies on others. */
export async function httpPages(root) {
  const document = await readDocument(root);
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      return { route: `${method.toUpperCase()} ${path}`, ...operation };
    }),
  );
  const common = commonProblems(operations);
  const guarded = operations.filter(({ security }) => security.length > 0);
  const ofGuarded = commonProblems(guarded).filter((problem) => !common.includes(problem));
  const groups = document.tags.map(({ name, description }) => {
    const own = operations.filter(({ tags }) => tags.includes(name));
    const texts = own.map((operation) => {
      const isGuarded = operation.security.length > 0;
      return operationText(operation, isGuarded ? [...common, ...ofGuarded] : common);
    });
    return [`## ${capitalized(name)}`, description, ...texts].join('\n\n');
  });
  const shapes = Object.entries(document.components.schemas).map(([name, schema]) => {
    const parts = [`## ${name}`, line(schema.description ?? ''), shapeText(schema)];
    return { name, text: parts.filter((part) => part !== '').join('\n\n') };
  });
  const linked = linksToShapes(shapes.map(({ name }) => name));
  const routes = page({
    title: 'Every route',
    from: 'the OpenAPI document of a server',
    intro: `${line(document.info.description)} A server has the same at \`/docs\`, and for machines at \`/openapi.json\`.`,
    byHand:
      'What they are for is in [Over HTTP](../http.md), [Intents](../intents.md) and [Events](../events.md#over-http).',
    body: [
      overview(operations),
      `Every route may answer with ${common.map(problemLink).join(', ')}; every one that needs a token also with ${ofGuarded.map(problemLink).join(', ')}. Those are not repeated below.`,
      ...groups.map((group) => linked(group, 'http')),
    ].join('\n\n'),
  });
  const bodies = SHAPES.map(({ path, letters, title }) => {
    const own = shapes.filter(({ name }) => letters.test(name));
    const others = SHAPES.filter((other) => other.path !== path);
    const text = page({
      title,
      from: 'the OpenAPI document of a server',
      intro: `The bodies of requests and answers, field by field. Elsewhere: ${others.map((other) => `[${other.title}](${other.path}.md)`).join(', ')}.`,
      byHand: 'The routes are in [Every route](http.md).',
      body: linked(own.map((shape) => shape.text).join('\n\n'), path),
    });
    return [path, text];
  });
  return [['http', routes], ...bodies];
}

/** Leads links to shapes to the page that has them. */
function linksToShapes(names) {
  const pages = new Map(
    names.map((name) => [slugOf(name), SHAPES.find(({ letters }) => letters.test(name)).path]),
  );
  return (text, from) =>
    text.replaceAll(/\]\(#([^)]+)\)/g, (link, slug) => {
      const path = pages.get(slug);
      return path === undefined || path === from ? link : `](${path}.md#${slug})`;
    });
}

async function readDocument(root) {
  const load = (path) => import(pathToFileURL(join(root, 'dist', path)).href);
  const { open } = await load('index.js');
  const { createApp } = await load('server/index.js');
  const holdfast = await open('memory:', { quarantine: 'off' });
  const token = Buffer.from(TOKEN).toString('hex');
  const app = createApp(holdfast, { tokens: [{ id: 'reference', token, scope: 'v3:admin' }] });
  try {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await app.hono.request('http://127.0.0.1/openapi.json', { headers });
    if (!answer.ok)
      throw new Error(`/openapi.json answers ${answer.status}: ${await answer.text()}`);
    return await answer.json();
  } finally {
    await app.close();
    await holdfast.close();
  }
}

function overview(operations) {
  const rows = operations.map(({ route, summary, security }) => {
    const [scope] = security.flatMap(({ bearer }) => bearer);
    return [
      `[\`${route}\`](#${slugOf(route)})`,
      line(summary),
      scope === undefined ? 'open' : code(scope),
    ];
  });
  return table(['route', '', 'needs'], rows);
}

/** What every route may answer with. */
function commonProblems(operations) {
  const [first, ...others] = operations.map(problemsOf);
  return first.filter((problem) => others.every((problems) => problems.includes(problem)));
}

function problemsOf({ responses }) {
  return Object.values(responses).flatMap((response) => response['x-problems'] ?? []);
}

function operationText(operation, common) {
  const { route, summary, description, parameters = [], requestBody, responses } = operation;
  const problems = problemsOf(operation).filter((problem) => !common.includes(problem));
  const rows = parameters.map(({ name, in: place, required, description: what = '', schema }) => [
    code(name),
    place,
    typeText(schema),
    `${required ? 'Required. ' : ''}${line(what)}`.trim(),
  ]);
  return [
    `### \`${route}\``,
    `${line(summary)}. ${line(description)}`,
    rows.length > 0 ? table(['parameter', 'in', 'type', ''], rows) : '',
    requestBody === undefined ? '' : `Takes ${contentText(requestBody.content)}.`,
    answersText(responses),
    problems.length > 0 ? `Problems: ${problems.map(problemLink).join(', ')}.` : '',
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

function answersText(responses) {
  return Object.entries(responses)
    .filter(([, response]) => response['x-problems'] === undefined)
    .map(([status, { description, content }]) => {
      const body = content === undefined ? '' : ` With ${contentText(content)}.`;
      return `- **${status}** ${line(description)}${body}`;
    })
    .join('\n');
}

function contentText(content) {
  return Object.entries(content)
    .map(([media, { schema }]) => {
      if (media === 'application/json') return typeText(schema);
      return `\`${media}\``;
    })
    .join(' or ');
}

function shapeText(schema) {
  const several = schema.oneOf ?? schema.anyOf;
  if (several?.some(({ properties }) => properties !== undefined))
    return several.map(shapeText).join('\n\nor\n\n');
  if (schema.properties === undefined) return typeText(schema);
  const rows = Object.entries(schema.properties).map(([name, property]) => [
    code(name) + (schema.required?.includes(name) ? '' : '?'),
    typeText(property),
    line(property.description ?? ''),
  ]);
  return table(['field', 'type', ''], rows);
}

/** A type in few words; what has a name is linked to. */
function typeText(schema) {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1);
    return `[${name}](#${slugOf(name)})`;
  }
  const several = schema.oneOf ?? schema.anyOf;
  if (several !== undefined) return several.map(typeText).join(' or ');
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (schema.enum !== undefined)
    return schema.enum.map((one) => code(JSON.stringify(one))).join(' or ');
  if (schema.prefixItems !== undefined) return `[ ${schema.prefixItems.map(typeText).join(', ')} ]`;
  if (schema.type === 'array') return `list of ${typeText(schema.items ?? {})}`;
  if (schema.properties !== undefined) return objectText(schema);
  if (schema.type === 'object' && typeof schema.additionalProperties === 'object')
    return `names, each with ${typeText(schema.additionalProperties)}`;
  return plainText(schema);
}

function objectText({ properties, required = [] }) {
  const fields = Object.entries(properties).map(([name, property]) => {
    return `${code(name)}${required.includes(name) ? '' : '?'} ${typeText(property)}`;
  });
  return `{ ${fields.join(', ')} }`;
}

function plainText({ type, minimum, maximum, pattern, format, maxLength }) {
  const name = [type ?? 'anything'].flat().join(' or ');
  const limits = [
    minimum === undefined || UNLIMITED.includes(minimum) ? null : `from ${minimum}`,
    maximum === undefined || UNLIMITED.includes(maximum) ? null : `to ${maximum}`,
    maxLength === undefined ? null : `up to ${maxLength} characters`,
    format === undefined ? null : format,
    pattern === undefined || format !== undefined ? null : code(pattern),
  ].filter((limit) => limit !== null);
  return limits.length === 0 ? name : `${name} (${limits.join(' ')})`;
}

function problemLink(name) {
  return `[\`${name}\`](problems.md#${name})`;
}

function capitalized(word) {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
