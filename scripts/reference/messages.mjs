// Every message that a user can meet, with sample facts, on one page: to be read in one go.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { codeOf } from './api.mjs';
import { eventSentences, sampleOf } from './events.mjs';
import { code, page, table } from './page.mjs';

const COMMON = new Set(['code', 'name', 'message', 'stack', 'cause']);

export async function messagesPage(root, types) {
  const load = (path) => import(pathToFileURL(join(root, 'dist', path)).href);
  const { PROBLEMS } = await load('server/http/problem.js');
  const { EXIT_MEANINGS } = await load('cli/exit-codes.js');
  const problems = Object.entries(PROBLEMS).map(([name, { status, title }]) => [
    code(name),
    String(status),
    title,
  ]);
  return page({
    title: 'Every message',
    from: 'the messages themselves',
    intro:
      'Errors, problems of the API, log sentences and exit codes, with sample facts. The help of every command is in [Every command](cli.md).',
    body: [
      `## Errors\n\n${table(['code', 'message'], await errorRows(types, load))}`,
      `## Problems of the API\n\n${table(['type', 'status', 'title'], problems)}`,
      `## Log sentences\n\n${table(['event', 'level', 'sentence'], await sentenceRows(root, types))}`,
      `## Exit codes\n\n${table(['code', 'meaning'], [...EXIT_MEANINGS])}`,
    ].join('\n\n'),
  });
}

async function errorRows(types, load) {
  const seen = new Set();
  const rows = [];
  for (const { exports } of types.doors)
    for (const symbol of exports.values()) {
      const own = types.extendsError(symbol) ? codeOf(symbol, types) : null;
      if (seen.has(symbol) || own === null) continue;
      seen.add(symbol);
      const Class = (await load(`${types.pathOf(symbol)}.js`))[symbol.name];
      rows.push([code(own), messageOf(Class, factsOf(symbol, types))]);
    }
  return rows;
}

function factsOf(symbol, types) {
  const facts = types
    .propertiesOf(types.declaredType(symbol))
    .filter(({ name }) => !COMMON.has(name));
  return Object.fromEntries(facts.map((fact) => [fact.name, sampleOf(fact, types)]));
}

function messageOf(Class, facts) {
  try {
    return new Class(facts).message;
  } catch {
    return '(its message needs facts that have no sample)';
  }
}

async function sentenceRows(root, types) {
  const sentences = await eventSentences(root, types);
  return sentences.map(({ name, level, sentence }) => [code(name), level, sentence]);
}
