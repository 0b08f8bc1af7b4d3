// Every message that a user can meet, with sample facts, on one page: to be read in one go.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { codeOf } from './api.mjs';
import { eventSentences, sampleOf } from './events.mjs';
import { code, page, table } from './page.mjs';

/** Facts that make a message read as a user meets it, where the common samples do not. */
const FACTS_OF = {
  CALL_NOT_OFFERED: { call: 'lock()', instead: "call acquire(['a'], ttl)" },
  POOL_FULL: { pool: 'gpus', slots: 4, expiresInMs: 12_000, waitedMs: 5_000 },
  SESSION_UNREADABLE: { why: 'its body is not JSON' },
  POLL_FAILED: { url: 'https://api.example.com', why: 'connect ECONNREFUSED' },
  ADDRESS_REFUSED: {
    host: 'metadata.internal',
    kind: 'link-local',
    advice: 'Such addresses are never polled.',
  },
  POLL_TIMEOUT: { timeoutMs: 10_000 },
  LEASE_VIOLATION: {
    context: { workflow_id: 'order-42', expected_lease: '81d2', received_lease: '5f0c' },
  },
  STALE_EPOCH: { workflow_id: 'order-42', action_epoch: 3, current_epoch: 5 },
  FUTURE_EPOCH: { workflow_id: 'order-42', action_epoch: 7, current_epoch: 5 },
  LEASE_EXPIRED: {
    workflow: 'order-42',
    leaseId: '5f0c',
    acquiredAt: new Date('2026-01-05T12:00:00Z'),
    ttlMs: 30_000,
  },
  LEASE_NOT_FOUND: { context: { lease_id: '5f0c' } },
  ACTION_INVALID: {
    field: 'timeout_ms',
    value: -5,
    rule: 'it is null, or a number of milliseconds up to 86400000',
  },
  WORKFLOW_FULL: { unresolved: 1_000, unread: 12, most: 1_000 },
  STEP_MISMATCH: { step: 'charge', kept: 'a sleep', now: 'a step' },
  WORKFLOW_STEP_FAILED: { step: 'charge', failure: { message: 'the card was declined' } },
  WORKFLOW_FAILED: { function: 'fulfil', failure: { message: 'the card was declined' } },
  WORKFLOW_TAKEN: { found: 'refund', wanted: 'fulfil' },
  WORKFLOW_STEPS_FULL: { steps: 1_000, signals: 2, bytes: 40_512 },
  SESSION_CROWDED: { session: '6f772632', clients: 1_000 },
  PARAMS_INVALID: {
    kind: 'transcode',
    errors: [{ field: 'params.preset', value: '4k', rule: "expected one of 'hd', 'sd'" }],
  },
  KIND_FAILED: { kind: 'transcode', part: 'exclusive', why: 'returned an object, not text' },
  WORKER_NAME_TAKEN: { why: 'another process on this host has its lock' },
  CONFIG_INVALID: {
    field: 'ttl',
    value: '30 secs',
    rule: "a duration is milliseconds as a number from 0 up, or text such as '30s'",
  },
  INTERNAL: { expected: 'a released lease is not renewed' },
  LEASE_HELD: { expiresInMs: 12_000, waitedMs: 0 },
  STORE_QUARANTINED: { expiresInMs: 31_000, waitedMs: 0 },
  LEASE_LOST: { heldForMs: 95_000 },
  LEASE_UNCERTAIN: { jumpMs: 40_000 },
  FENCE_STALE: { resource: 'nightly-report' },
  REVISION_CONFLICT: { resource: 'settings', expected: 3, found: 4 },
  STORE_UNREACHABLE: { operation: 'acquire', why: 'connect ECONNREFUSED' },
  OUTCOME_UNKNOWN: { operation: 'acquire', afterMs: 2_000, why: 'the connection was closed' },
  STORE_REFUSED: {
    operation: 'acquire',
    reply: 'OOM command not allowed',
    advice: 'Redis is out of memory: free some or raise maxmemory.',
  },
  KEY_FOREIGN: { key: 'lease:nightly-report', found: 'it is a list' },
  VALUE_TOO_LARGE: { kind: 'record', id: 'report', bytes: 2_097_152, mostBytes: 1_048_576 },
  STORE_UNSUITABLE: { problems: ['Its maxmemory-policy is allkeys-lru. Set noeviction.'] },
  STORE_LACKS_WORK: { store: 'my-store', verb: 'records.put' },
  CLOSED: { operation: 'acquire' },
  OVERLOADED: { limit: 100_000 },
  NO_ANSWER: { why: 'connect ECONNREFUSED' },
  WAITED: { sessionId: '6f772632', state: 'STARTING', until: 'RUNNING', afterMs: 30_000 },
};
/** The message of these is their first argument. */
const MESSAGE_OF = {
  STEP_FAILED: 'the card was declined (your own words)',
  EXECUTION_FAILED:
    "The operation was unable to achieve a quorum during its retry window. The resource 'report' is locked by api-7fd8c9a1 with fence 1794735733062000 for 12 s more. …",
  LOCK_FAILED:
    'Exceeded 10 attempts to lock the resource "report". The resource \'report\' is locked by api-7fd8c9a1 with fence 1794735733062000 for 12 s more. …',
  RESOURCE_LOCKED:
    "The operation was applied to: 0 of the 1 requested resources. The resource 'report' is locked by …",
};
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
      rows.push([
        code(own),
        MESSAGE_OF[own] ?? messageOf(Class, { ...factsOf(symbol, types), ...FACTS_OF[own] }),
      ]);
    }
  return rows;
}

function factsOf(symbol, types) {
  const facts = types
    .propertiesOf(types.declaredType(symbol))
    .filter(({ name }) => !COMMON.has(name));
  return Object.fromEntries(facts.map((fact) => [fact.name, sampleOf(fact, types)]));
}

/** Fails if a message names a fact without a sample, so that the page shows what users meet. */
function messageOf(Class, facts) {
  const { message } = new Class(facts);
  const holes = /undefined|NaN|\[object/.exec(message);
  if (holes !== null) throw new Error(`${Class.name} needs samples of its facts: ${message}`);
  return message;
}

async function sentenceRows(root, types) {
  const sentences = await eventSentences(root, types);
  return sentences.map(({ name, level, sentence }) => [code(name), level, sentence]);
}
