/** The reference page, made from the OpenAPI document, without scripts. */

import { type Html, html, NOTHING, prose } from '../../core/html.ts';
import { PROBLEMS, type ProblemName } from '../http/problem.ts';
import { curlExample, refName, resolved } from './curl-example.ts';
import type { JsonSchema, OpenApi, Operation, OperationResponse, Parameter } from './openapi.ts';

/** Relative links from one page to the others, independent of where the server is mounted. */
interface Links {
  readonly docs: string;
  readonly style: string;
  readonly openApi: string;
  problem(name: string): string;
}

const FROM_DOCS: Links = {
  docs: 'docs',
  style: 'docs/style.css',
  openApi: 'openapi.json',
  problem: (name) => `problems/${name}`,
};
const FROM_PROBLEM: Links = {
  docs: '../docs',
  style: '../docs/style.css',
  openApi: '../openapi.json',
  problem: (name) => name,
};

interface Entry {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

export function referencePage(document: OpenApi): string {
  const entries = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ method, path, operation })),
  );
  const groups = document.tags.map(({ name, description }) => ({
    name,
    description,
    entries: entries.filter(({ operation }) => operation.tags.includes(name)),
  }));
  const nav = html`<nav aria-label="Contents">
    ${groups.map(
      ({ name, entries }) => html`<p class="nav-group"><a href="#${name}">${name}</a></p>
      <ul>${entries.map(navItem)}</ul>`,
    )}
    <p class="nav-group"><a href="#shapes">shapes</a></p>
    <p class="nav-group"><a href="#problems">problems</a></p>
  </nav>`;
  const lead = html`<header class="lead">
    <h1>Holdfast <span class="version">${document.info.version}</span></h1>
    <p>${prose(document.info.description)}</p>
    <pre><code>export HOLDFAST_URL=http://127.0.0.1:4747${serverPath(document)}
export HOLDFAST_API_TOKEN=…</code></pre>
    <p class="quiet">For programs: <a href="${FROM_DOCS.openApi}">openapi.json</a>, OpenAPI 3.1, generated from the schemas that validate requests.</p>
  </header>`;
  const main = html`${groups.map(
    ({ name, description, entries }) => html`<section id="${name}">
      <h2>${name}</h2><p class="quiet">${description}</p>
      ${entries.map((entry) => article(document, entry))}
    </section>`,
  )}
  ${shapes(document)}
  ${problems()}`;
  return page({ title: 'Holdfast: API reference', links: FROM_DOCS, lead, nav, main });
}

/** The page of a problem type, at the address in `type`. */
export function problemPage(name: ProblemName): string {
  const { status, title, when, advice } = PROBLEMS[name];
  const lead = html`<header class="lead">
    <p class="quiet"><a href="${FROM_PROBLEM.docs}#problems">Problems</a></p>
    <h1>${title}</h1>
    <p class="chips"><span class="chip status">${status}</span> <code class="chip">${name}</code> <code class="chip">${codeOf(name)}</code></p>
  </header>`;
  const main = html`<section><h2>When it occurs</h2><p>${prose(when)}</p><h2>What to do</h2><p>${prose(advice)}</p></section>`;
  return page({ title: `Holdfast: ${title}`, links: FROM_PROBLEM, lead, nav: NOTHING, main });
}

interface Page {
  readonly title: string;
  readonly links: Links;
  readonly lead: Html;
  readonly nav: Html;
  readonly main: Html;
}

function page({ title, links, lead, nav, main }: Page): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="stylesheet" href="${links.style}">
</head>
<body>
<div class="frame">${lead}${nav}<main>${main}</main></div>
</body>
</html>
`.text;
}

function navItem({ method, path, operation }: Entry): Html {
  return html`<li><a href="#${operation.operationId}" title="${path}"><span class="method ${method}">${shortMethod(method)}</span>${operation.summary}</a></li>`;
}

function article(document: OpenApi, entry: Entry): Html {
  const { method, path, operation } = entry;
  const { operationId, summary, description, parameters = [], requestBody } = operation;
  const schema = requestBody?.content['application/json']?.schema;
  return html`<article id="${operationId}">
    <h3><a class="anchor" href="#${operationId}">${summary}</a></h3>
    <p class="route"><span class="method ${method}">${method.toUpperCase()}</span> <code>${breakable(path)}</code> ${access(operation)}${operation.deprecated ? html` <span class="chip">deprecated</span>` : NOTHING}</p>
    <p>${prose(description)}</p>
    ${parameters.length === 0 ? NOTHING : html`<h4>Parameters</h4>${fieldTable(parameters.map(parameterRow))}`}
    ${schema === undefined ? NOTHING : html`<h4>Body</h4>${bodyTables(document, schema)}`}
    <h4>Responses</h4>
    ${responseList(operation)}
    <h4>Try it</h4>
    <pre><code>${curlExample(document, entry)}</code></pre>
  </article>`;
}

function access({ security }: Operation): Html {
  const scope = security[0]?.bearer?.[0];
  return scope === undefined
    ? html`<span class="chip open">open</span>`
    : html`<span class="chip scope">${scope}</span>`;
}

interface Row {
  readonly name: string;
  readonly kind: Html;
  readonly isRequired: boolean;
  readonly description: string;
}

function fieldTable(rows: readonly Row[]): Html {
  return html`<table class="fields"><tbody>${rows.map(
    ({ name, kind, isRequired, description }) => html`<tr>
      <th scope="row"><code>${name}</code>${isRequired ? html` <span class="must">required</span>` : NOTHING}</th>
      <td><span class="kind">${kind}</span> ${prose(description)}</td></tr>`,
  )}</tbody></table>`;
}

function parameterRow({ name, in: place, required, description = '', schema }: Parameter): Row {
  return {
    name,
    isRequired: required,
    description,
    kind: html`${kindOf(schema)} in the ${place}`,
  };
}

/** One table for each alternative. */
function bodyTables(document: OpenApi, schema: JsonSchema): Html {
  const options = schema.oneOf ?? schema.anyOf ?? [schema];
  return html`${options.map((option) => {
    const { description = '' } = resolved(document, option);
    const name = refName(option);
    const title =
      options.length > 1 && name !== undefined
        ? html`<h5>${name}</h5><p class="quiet">${prose(description)}</p>`
        : NOTHING;
    return html`${title}${fieldTable(fieldRows(resolved(document, option)))}`;
  })}`;
}

function fieldRows({ properties = {}, required = [] }: JsonSchema): Row[] {
  return Object.entries(properties).map(([name, field]) => ({
    name,
    kind: kindOf(field),
    description: field.description ?? '',
    isRequired: required.includes(name),
  }));
}

/** The type of a value in a few words; a shared schema is a link. */
function kindOf(schema: JsonSchema): Html {
  const name = refName(schema);
  if (name !== undefined) return html`<a href="#shape-${name}">${name}</a>`;
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`;
  if (schema.enum !== undefined)
    return joined(
      schema.enum.map((one) => html`<code>${String(one)}</code>`),
      ' | ',
    );
  const options = schema.oneOf ?? schema.anyOf;
  if (options !== undefined) return joined(options.map(kindOf), ' | ');
  if (schema.type === 'array') return html`list of ${kindOf(schema.items ?? {})}`;
  return html`${[schema.type ?? 'anything'].flat().join(' | ')}`;
}

function joined(all: readonly Html[], separator: string): Html {
  return html`${all.map((one, i) => (i === 0 ? one : html`${separator}${one}`))}`;
}

/** Problems are common to most routes, so they take little space. */
function responseList({ responses }: Operation): Html {
  const isProblem = ([, response]: [string, OperationResponse]) => 'x-problems' in response;
  const all = Object.entries(responses);
  const good = all.filter((one) => !isProblem(one)).map(responseItem);
  return html`<dl class="answers">${good}</dl><dl class="answers dense">${all.filter(isProblem).map(responseItem)}</dl>`;
}

function responseItem([status, response]: [string, OperationResponse]): Html {
  const names = response['x-problems'];
  const said =
    names === undefined
      ? html`${prose(response.description)} ${contentOf(response)}`
      : joined(
          names.map((name) => html`<a href="${FROM_DOCS.problem(name)}">${name}</a>`),
          ', ',
        );
  const sort = names === undefined ? 'good' : 'bad';
  return html`<div><dt class="${sort}">${status}</dt><dd>${said}</dd></div>`;
}

function contentOf({ content = {} }: OperationResponse): Html {
  const [[type, { schema }] = ['', { schema: {} }]] = Object.entries(content);
  if (type === '') return NOTHING;
  const isNamed = refName(schema) !== undefined || schema.properties === undefined;
  const kind = type === 'application/json' && isNamed ? kindOf(schema) : html`<code>${type}</code>`;
  return html`<span class="kind">${kind}</span>`;
}

function shapes({ components }: OpenApi): Html {
  return html`<section id="shapes"><h2>shapes</h2><p class="quiet">The schemas of requests and responses.</p>
    ${Object.entries(components.schemas).map(
      ([
        name,
        schema,
      ]) => html`<article id="shape-${name}"><h3><a class="anchor" href="#shape-${name}">${name}</a></h3>
        ${schema.description === undefined ? NOTHING : html`<p>${prose(schema.description)}</p>`}
        ${shapeOf(schema)}</article>`,
    )}</section>`;
}

function shapeOf(schema: JsonSchema): Html {
  if (schema.properties !== undefined) return fieldTable(fieldRows(schema));
  const options = schema.oneOf ?? schema.anyOf ?? [];
  return html`${options.map((option) =>
    option.properties === undefined
      ? html`<p class="kind">${kindOf(option)}</p>`
      : fieldTable(fieldRows(option)),
  )}`;
}

function problems(): Html {
  const names = Object.keys(PROBLEMS) as ProblemName[];
  return html`<section id="problems"><h2>problems</h2>
    <p class="quiet">Every error response is <code>application/problem+json</code>. Its <code>type</code> is stable and links to one of these pages.</p>
    <dl class="answers">${names.map(
      (name) =>
        html`<div><dt class="bad">${PROBLEMS[name].status}</dt><dd><a href="${FROM_DOCS.problem(name)}">${name}</a>: ${PROBLEMS[name].title}</dd></div>`,
    )}</dl></section>`;
}

function codeOf(name: ProblemName): string {
  return name.toUpperCase().replaceAll('-', '_');
}

function shortMethod(method: string): string {
  return method === 'delete' ? 'DEL' : method.toUpperCase();
}

/** Lets narrow screens break long paths at their slashes. */
function breakable(path: string): Html {
  return html`${path.split('/').map((part, i) => (i === 0 ? html`${part}` : html`/<wbr>${part}`))}`;
}

function serverPath({ servers }: OpenApi): string {
  const url = servers[0]?.url ?? '/';
  return url === '/' ? '' : url;
}
