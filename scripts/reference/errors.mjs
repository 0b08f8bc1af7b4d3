// Every error with a code: its facts, and what it is over HTTP and as an exit code.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { codeOf } from './api.mjs';
import { code, line, page, prose, slugOf, table } from './page.mjs';

/** Facts that every error has. */
const COMMON = new Set(['code', 'name', 'message', 'stack', 'cause']);

export async function errorsPage(root, types) {
  const load = (path) => import(pathToFileURL(join(root, 'dist', path)).href);
  const { problemFor } = await load('server/http/error-mapping.js');
  const { PROBLEMS } = await load('server/http/problem.js');
  const { EXIT, exitOf } = await load('cli/exit-codes.js');
  const explained = new Set(
    [...readFileSync(join(root, 'docs/errors.md'), 'utf8').matchAll(/^#+ `?([A-Z_]+)`?$/gm)].map(
      ([, heading]) => heading,
    ),
  );
  const errors = await Promise.all(
    errorsOf(types).map(async ({ symbol, door }) => {
      const own = codeOf(symbol, types);
      const Class = (await load(`${types.pathOf(symbol)}.js`))[symbol.name];
      // Made without its constructor, which wants facts: all that is asked of it is what kind it is.
      const sample = Object.assign(Object.create(Class.prototype), { code: own, errors: [] });
      const kind = problemFor(sample)?.kind ?? null;
      const status = kind === null ? null : PROBLEMS[kind].status;
      const exit = exitOf(sample) === EXIT.internal ? null : exitOf(sample);
      return { symbol, door, code: own, kind, status, exit };
    }),
  );
  const rows = errors.map(({ symbol, code: own, status, exit }) => {
    const http = status === null ? '' : String(status);
    return [
      `[\`${own}\`](#${slugOf(own)})`,
      line(types.docOf(symbol)),
      http,
      exit === null ? '' : String(exit),
    ];
  });
  return page({
    title: 'Every error',
    from: 'src/**/errors.ts',
    intro:
      'Every class that extends `HoldfastError` and has a code of its own. HTTP is the status that a server answers with where a request meets it; without one it is 500, and should not happen there. Exit is what a command ends with; without one it is 70, and should not happen there.',
    byHand: 'What each means, and what to do, is in [Errors](../errors.md).',
    body: [
      table(['code', 'when', 'HTTP', 'exit'], rows),
      ...errors.map((error) => errorText(error, explained, types)),
    ].join('\n\n'),
  });
}

function errorsOf(types) {
  const seen = new Set();
  return types.doors.flatMap(({ name, exports }) =>
    [...exports.values()].flatMap((symbol) => {
      if (seen.has(symbol) || !types.extendsError(symbol) || codeOf(symbol, types) === null)
        return [];
      seen.add(symbol);
      return [{ symbol, door: name }];
    }),
  );
}

function errorText({ symbol, door, code: own, kind, status, exit }, explained, types) {
  const facts = types
    .propertiesOf(types.declaredType(symbol))
    .filter(({ name }) => !COMMON.has(name))
    .map((fact) => [
      code(fact.name),
      code(types.textOf(types.typeOf(fact))),
      line(types.docOf(fact)),
    ]);
  const said = [
    `\`${symbol.name}\` of \`${door}\``,
    status === null ? null : `${status} [\`${kind}\`](problems.md#${kind})`,
    exit === null ? null : `exit ${exit}`,
    explained.has(own) ? `[what to do](../errors.md#${slugOf(own)})` : null,
  ];
  return [
    `## ${own}`,
    prose(types.docOf(symbol)),
    `${said.filter((part) => part !== null).join(' · ')}.`,
    facts.length > 0 ? table(['fact', 'type', ''], facts) : '',
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}
