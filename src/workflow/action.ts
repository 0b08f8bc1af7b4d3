/**
 * An action: work that an orchestrator emits and a processor executes. Immutable; field names are
 * those on the wire.
 */
import { isTargetId, TARGET_ID_RULE } from '../core/ids.ts';
import { HIGHEST_PRIORITY, LOWEST_PRIORITY } from '../store/port/stream-store.ts';
import type { NewAction, StoredAction, StoredResult } from '../store/port/workflow-store.ts';
import { ActionInvalidError } from './errors.ts';
import type { RetryLimits } from './retry-policy.ts';

export interface Action<Payload = unknown> {
  readonly action_id: string;
  readonly workflow_id: string;
  readonly action_type: string;
  /** The name of the processor that executes it. */
  readonly target_node_type: string;
  readonly payload: Payload;
  /** The lease of the tenure that emitted it. */
  readonly lease_id: string;
  readonly epoch: number;
  /** 1 to 10, the highest first. It orders workflows, never the actions of one workflow. */
  readonly priority: number;
  readonly created_at: string;
  /** How long its handler may take; null: the `timeout` of its processor. */
  readonly timeout_ms: number | null;
}

export interface ActionResult<Value = unknown> {
  readonly action_id: string;
  readonly workflow_id: string;
  readonly target_node_type: string;
  readonly epoch: number;
  readonly success: boolean;
  /** The return value of the handler; null if it failed. */
  readonly value: Value | null;
  /** Null if it succeeded. */
  readonly error: ActionFailure | null;
  /** It failed as often as it may be tried, and is a dead letter. */
  readonly is_dead: boolean;
  readonly completed_at: string;
}

export interface ActionFailure {
  readonly name: string;
  readonly message: string;
  readonly details: unknown;
}

export const DEFAULT_PRIORITY = 5;
const MAX_TIMEOUT_MS = 24 * 3_600_000;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

type Check = readonly [rule: string, isGood: (value: unknown) => boolean];

export function isUuid(value: unknown): value is string {
  return typeof value === 'string' && UUID.test(value);
}

const uuid: Check = ['it must be a UUID', isUuid];
const isId: Check = [TARGET_ID_RULE, isTargetId];

/** The rule for every field. Other fields are refused. */
const FIELDS: Readonly<Record<keyof Action, Check>> = {
  action_id: uuid,
  workflow_id: isId,
  action_type: isId,
  target_node_type: isId,
  payload: ['it must be JSON', (value) => value !== undefined],
  lease_id: uuid,
  epoch: [
    'it must be a whole number from 0',
    (value) => Number.isSafeInteger(value) && Number(value) >= 0,
  ],
  priority: [
    `it must be a whole number from ${LOWEST_PRIORITY} to ${HIGHEST_PRIORITY}`,
    (value) =>
      Number.isInteger(value) &&
      Number(value) >= LOWEST_PRIORITY &&
      Number(value) <= HIGHEST_PRIORITY,
  ],
  created_at: [
    'it must be a moment as in 2026-01-31T12:00:00.000Z',
    (value) => typeof value === 'string' && !Number.isNaN(Date.parse(value)),
  ],
  timeout_ms: [
    `it must be null or a number of milliseconds up to ${MAX_TIMEOUT_MS}`,
    (value) =>
      value === null || (typeof value === 'number' && value > 0 && value <= MAX_TIMEOUT_MS),
  ],
};

const CHECKS = Object.entries(FIELDS);

/** Checks the shape of an action and returns the same object; throws `ACTION_INVALID`. */
export function readAction(value: unknown): Action {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ActionInvalidError({ field: 'the whole', rule: 'an action is an object', value });
  for (const name of Object.keys(value))
    if (!Object.hasOwn(FIELDS, name))
      throw new ActionInvalidError({ field: name, rule: 'there is no such field' });
  for (const [name, check] of CHECKS) checkField(name, check, Reflect.get(value, name));
  return value as Action;
}

function checkField(name: string, [rule, isGood]: Check, value: unknown): void {
  if (!isGood(value)) throw new ActionInvalidError({ field: name, rule, value });
}

/** An action as `emit` makes it. */
export interface DraftFacts {
  readonly actionId: string;
  readonly workflow: string;
  readonly type: string;
  readonly target: string;
  readonly payload: unknown;
  readonly priority: number;
  readonly timeoutMs: number | null;
  readonly createdAtMs: number;
  /** The span that emitted it, which the span that executes it links to; null without tracing. */
  readonly origin: string | null;
  /** How often it is tried; default as its processor has it. */
  readonly retry?: RetryLimits | undefined;
}

/** An action without an epoch yet, checked like an action. */
export interface Draft {
  readonly facts: DraftFacts;
  readonly createdAt: string;
  /** As JSON. */
  readonly payload: string;
  /** The part of the action that the store keeps. */
  readonly stored: NewAction;
}

export function draftAction(facts: DraftFacts): Draft {
  const { actionId, type, target, priority, timeoutMs } = facts;
  checkField('action_id', FIELDS.action_id, actionId);
  checkField('action_type', FIELDS.action_type, type);
  checkField('target_node_type', FIELDS.target_node_type, target);
  checkField('priority', FIELDS.priority, priority);
  checkField('timeout_ms', FIELDS.timeout_ms, timeoutMs);
  const createdAt = isoOf(facts.createdAtMs);
  const payload = jsonOf(facts.payload, 'payload');
  // The checked fields contain no character that JSON would escape.
  const rest = `"action_type":"${type}","created_at":"${createdAt}","timeout_ms":${timeoutMs}`;
  const origin = facts.origin === null ? '' : `"origin":"${facts.origin}",`;
  const retry = facts.retry === undefined ? '' : `"retry":${JSON.stringify(facts.retry)},`;
  const body = `{${origin}${retry}${rest},"payload":${payload}}`;
  const about = { type, bytes: Buffer.byteLength(payload) };
  return { facts, createdAt, payload, stored: { id: actionId, target, priority, body, about } };
}

/** The action itself. Parsing the stored text again would be slower. */
export function emittedAction(draft: Draft, leaseId: string, epoch: number): Action {
  const { actionId, workflow, type, target, priority, timeoutMs } = draft.facts;
  return Object.freeze({
    action_id: actionId,
    workflow_id: workflow,
    action_type: type,
    target_node_type: target,
    // A copy of the payload that was sent: the caller may change its own object.
    payload: frozen<unknown>(JSON.parse(draft.payload)),
    lease_id: leaseId,
    epoch,
    priority,
    created_at: draft.createdAt,
    timeout_ms: timeoutMs,
  });
}

/** The last date that was formatted: many actions share one. */
let lastMoment = { ms: Number.NaN, text: '' };

function isoOf(ms: number): string {
  if (lastMoment.ms !== ms) lastMoment = { ms, text: new Date(ms).toISOString() };
  return lastMoment.text;
}

/** The JSON of a value; throws `ACTION_INVALID` if it has none. */
export function jsonOf(value: unknown, field: string): string {
  let json: string | undefined;
  let why = 'it must be JSON';
  try {
    json = JSON.stringify(value);
  } catch (error) {
    // A cycle, or a BigInt.
    why = `it must be JSON (${error instanceof Error ? error.message.split('\n')[0] : 'it is not'})`;
  }
  if (json === undefined) throw new ActionInvalidError({ field, rule: why });
  return json;
}

/** The action that the store keeps. */
export function actionOf(workflow: string, stored: StoredAction): Action {
  const body: unknown = JSON.parse(stored.body);
  // Stored with the action, but no field of it.
  if (typeof body === 'object' && body !== null) {
    if ('origin' in body) delete body.origin;
    if ('retry' in body) delete body.retry;
  }
  const { id: action_id, target: target_node_type, leaseId: lease_id, epoch, priority } = stored;
  const known = { action_id, workflow_id: workflow, target_node_type, lease_id, epoch, priority };
  return frozen(readAction(Object.assign(body as object, known)));
}

/** The span that emitted the action; null without tracing. */
export function originOf(stored: StoredAction): string | null {
  const { origin } = JSON.parse(stored.body) as { readonly origin?: unknown };
  return typeof origin === 'string' ? origin : null;
}

/** How often the action is tried, if its orchestrator said so. */
export function retryOf(stored: StoredAction): RetryLimits | null {
  const { retry = null } = JSON.parse(stored.body) as { readonly retry?: RetryLimits };
  return retry;
}

export function resultOf(workflow: string, stored: StoredResult): ActionResult {
  const { actionId, target, epoch, outcome, value, atMs } = stored;
  const success = outcome === 'succeeded';
  return frozen({
    action_id: actionId,
    workflow_id: workflow,
    target_node_type: target,
    epoch,
    success,
    value: success ? value : null,
    error: success ? null : (value as ActionFailure),
    is_dead: outcome === 'dead',
    completed_at: new Date(atMs).toISOString(),
  });
}

/** Freezes the whole value, so that an action stays as it was emitted. */
function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) frozen(part);
  }
  return value;
}
