// Every event: its level, its facts, and how it reads in a log.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { code, page, prose, slugOf } from './page.mjs';

/** What facts may look like; the others by their type. */
const SAMPLES = {
  key: 'nightly-report',
  leaseClass: 'lease',
  holder: 'api-7fd8c9a1',
  by: 'api-7fd8c9a1',
  successor: 'api-3c41d200',
  election: 'scheduler',
  member: 'api-3c41d200',
  target: 'device-7',
  session: 'device-7',
  tenant: 'default',
  client: 'tv-1',
  from: 'api-3c41d200',
  worker: 'box-1',
  predecessor: 'api-3c41d200',
  slot: 'tuners/1',
  workflow: 'order-42',
  action: 'CHARGE-1',
  processor: 'billing',
  leaseId: '5f0c',
  state: 'RUNNING',
  oldLeaseId: '5f0c',
  newLeaseId: '81d2',
  expectedLease: '81d2',
  receivedLease: '5f0c',
  store: 'redis://localhost:6379',
  event: 'lease.lost',
  revokedAt: '2026-01-05T12:00:00.000Z',
  error: 'connect ECONNREFUSED',
  why: 'no answer in time',
  fence: '1794735733062000',
  seen: '1794735737005000',
  subject: 'device-7',
  finding: 'It evicts keys.',
  advice: 'Set noeviction.',
  type: 'CHARGE',
  reason: 'stuck since noon',
};
const LESS_COMMON = {
  'intent.accepted': { type: 'stream.start', session: '6f772632' },
  'intent.replayed': { type: 'stream.start', session: '6f772632' },
  'intent.refused': { type: 'stream.start' },
  'operator.acted': { action: 'drain', subject: 'api-3c41d200', by: 'cli:ana@box-1' },
  'session.advanced': { session: '6f772632', reason: null },
  'workflow.updated': { state: { paid: true } },
  'action.emitted': { target: 'billing' },
  'action.started': { target: 'billing' },
  'action.done': { target: 'billing' },
  'action.failed': { target: 'billing' },
  'action.gone': { target: 'billing' },
};
const WORKFLOW_NOUNS = new Set(['workflow', 'function', 'action', 'processor']);
const WORKFLOW_EVENTS = 'events-workflows';
const DURATION_MS = 1_200;
const COUNT = 3;

/** The page that has an event of this name. */
export function pageOfEvent(name) {
  return WORKFLOW_NOUNS.has(name.split('.')[0]) ? WORKFLOW_EVENTS : 'events';
}

/** The events on one page, and those of workflows on another. */
export async function eventsPages(root, types) {
  const load = (path) => import(pathToFileURL(join(root, 'dist', path)).href);
  const { LEVELS } = await load('telemetry/levels.js');
  const { sentenceOf } = await load('telemetry/sentences.js');
  const catalogue = types.exportsOf(types.file('core/events')).get('Events');
  const events = types.propertiesOf(types.declaredType(catalogue));
  const text = (event) => {
    const facts = types.propertiesOf(types.typeOf(event));
    const sample = sampleFacts(event, types);
    const listed = facts.map((fact) => code(`${fact.name}: ${types.textOf(types.typeOf(fact))}`));
    return [
      `### ${event.name}`,
      prose(types.docOf(event)),
      `\`${LEVELS[event.name]}\`: ${code(sentenceOf(event.name, sample))}`,
      listed.length > 0 ? `Facts: ${listed.join(', ')}` : '',
    ]
      .filter((part) => part !== '')
      .join('\n\n');
  };
  const from = 'src/core/events.ts';
  const byHand = 'When each happens, and how to follow them, is in [Events](../events.md).';
  const bodyOf = (path) => {
    const nouns = byNoun(events.filter(({ name }) => pageOfEvent(name) === path));
    return [
      [...nouns.keys()].map((noun) => `[${noun}](#${slugOf(noun)})`).join(' · '),
      ...[...nouns].map(([noun, ones]) => [`## ${noun}`, ...ones.map(text)].join('\n\n')),
    ].join('\n\n');
  };
  const most = page({
    title: 'Every event',
    from,
    byHand,
    intro: `Every event of \`holdfast.on(…)\` and of the shared log, with its level in the log of \`holdfast up\`, an example of how it reads there, and its facts; [those of workflows](${WORKFLOW_EVENTS}.md). An error in the facts is an error's message once it leaves the process, and a fence is text.`,
    body: bodyOf('events'),
  });
  const ofWorkflows = page({
    title: 'Events of workflows',
    from,
    byHand,
    intro: 'The events of workflows, actions and processors; [all others](events.md).',
    body: bodyOf(WORKFLOW_EVENTS),
  });
  return [
    ['events', most],
    [WORKFLOW_EVENTS, ofWorkflows],
  ];
}

/** Every event with the sentence that a log has for it. */
export async function eventSentences(root, types) {
  const load = (path) => import(pathToFileURL(join(root, 'dist', path)).href);
  const { LEVELS } = await load('telemetry/levels.js');
  const { sentenceOf } = await load('telemetry/sentences.js');
  const catalogue = types.exportsOf(types.file('core/events')).get('Events');
  return types.propertiesOf(types.declaredType(catalogue)).map((event) => ({
    name: event.name,
    level: LEVELS[event.name],
    sentence: sentenceOf(event.name, sampleFacts(event, types)),
  }));
}

function sampleFacts(event, types) {
  const facts = types.propertiesOf(types.typeOf(event));
  return Object.fromEntries(
    facts.map((fact) => [fact.name, sampleOf(fact, types, LESS_COMMON[event.name])]),
  );
}

function byNoun(events) {
  const nouns = new Map();
  for (const event of events) {
    const noun = event.name.split('.')[0];
    nouns.set(noun, [...(nouns.get(noun) ?? []), event]);
  }
  return nouns;
}

/** A sample of a fact: by its name, else by its type. */
export function sampleOf(fact, types, special = {}) {
  const { name } = fact;
  if (Object.hasOwn(special, name)) return special[name];
  const type = types.typeOf(fact);
  const literal = type.isUnion() ? type.types.find((one) => one.isStringLiteral()) : undefined;
  if (literal !== undefined) return literal.value;
  if (Object.hasOwn(SAMPLES, name)) return SAMPLES[name];
  const text = types.textOf(type);
  if (text.includes('[]')) return [name];
  if (text.startsWith('number')) return name.endsWith('Ms') ? DURATION_MS : COUNT;
  return text === 'boolean' ? name === 'isGone' : name;
}
