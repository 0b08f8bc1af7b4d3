/** One thing an orchestrator wants done. It never changes; its names are those that go over the wire. */
import { isTargetId, TARGET_ID_RULE } from '../core/ids.ts';
import { HIGHEST_PRIORITY, LOWEST_PRIORITY } from '../store/port/stream-store.ts';
import type { NewAction, StoredAction, StoredResult } from '../store/port/workflow-store.ts';
import { ActionInvalidError } from './errors.ts';

export interface Action<Payload = unknown> {
  readonly action_id: string;
  readonly workflow_id: string;
  readonly action_type: string;
  /** The name of the processor that does it. */
  readonly target_node_type: string;
  readonly payload: Payload;
  /** Proof that it was emitted by who held the workflow. */
  readonly lease_id: string;
  readonly epoch: number;
  /** 1 to 10, the highest first: ranks workflows, never the actions of one. */
  readonly priority: number;
  readonly created_at: string;
  /** How long its handler may take; null for as long as its processor says. */
  readonly timeout_ms: number | null;
}

export interface ActionResult<Value = unknown> {
  readonly action_id: string;
  readonly workflow_id: string;
  readonly target_node_type: string;
  readonly epoch: number;
  readonly success: boolean;
  /** What the handler returned; null if it failed. */
  readonly value: Value | null;
  /** Why it failed; null if it did not. */
  readonly error: ActionFailure | null;
  /** It was tried as often as it may be, and lies among the dead letters. */
  readonly is_dead: boolean;
  readonly completed_at: string;
}

export interface ActionFailure {
  readonly name: string;
  readonly message: string;
  readonly details: unknown;
}

export const DEFAULT_PRIORITY = 5;
const MOST_TIMEOUT_MS = 24 * 3_600_000;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

type Check = readonly [rule: string, isGood: (value: unknown) => boolean];

export function isUuid(value: unknown): value is string {
  return typeof value === 'string' && UUID.test(value);
}

const uuid: Check = ['it is a UUID', isUuid];
const isId: Check = [TARGET_ID_RULE, isTargetId];

/** What every field has to be. What is not here is refused. */
const FIELDS: Readonly<Record<keyof Action, Check>> = {
  action_id: uuid,
  workflow_id: isId,
  action_type: isId,
  target_node_type: isId,
  payload: ['it is JSON', (value) => value !== undefined],
  lease_id: uuid,
  epoch: [
    'it is a whole number from 0',
    (value) => Number.isSafeInteger(value) && Number(value) >= 0,
  ],
  priority: [
    `it is a whole number from ${LOWEST_PRIORITY} to ${HIGHEST_PRIORITY}`,
    (value) =>
      Number.isInteger(value) &&
      Number(value) >= LOWEST_PRIORITY &&
      Number(value) <= HIGHEST_PRIORITY,
  ],
  created_at: [
    'it is a moment as in 2026-01-31T12:00:00.000Z',
    (value) => typeof value === 'string' && !Number.isNaN(Date.parse(value)),
  ],
  timeout_ms: [
    `it is null, or a number of milliseconds up to ${MOST_TIMEOUT_MS}`,
    (value) =>
      value === null || (typeof value === 'number' && value > 0 && value <= MOST_TIMEOUT_MS),
  ],
};

const CHECKS = Object.entries(FIELDS);

/** An action of a shape that can be trusted, whoever brought it, and still theirs; throws `ACTION_INVALID`. */
export function readAction(value: unknown): Action {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ActionInvalidError({ field: 'the whole', rule: 'an action is an object' });
  for (const name of Object.keys(value))
    if (!Object.hasOwn(FIELDS, name))
      throw new ActionInvalidError({ field: name, rule: 'there is no such field' });
  for (const [name, check] of CHECKS) checkField(name, check, Reflect.get(value, name));
  return value as Action;
}

function checkField(name: string, [rule, isGood]: Check, value: unknown): void {
  if (!isGood(value)) throw new ActionInvalidError({ field: name, rule });
}

/** What `emit` is given. */
export interface DraftParts {
  readonly actionId: string;
  readonly workflow: string;
  readonly type: string;
  readonly target: string;
  readonly payload: unknown;
  readonly priority: number;
  readonly timeoutMs: number | null;
  readonly createdAtMs: number;
  /** The span that it was emitted in, for the one that it is done in to link to; null where nobody traces. */
  readonly origin: string | null;
}

/**
 * An action that has no epoch yet, checked like all of an action: what the store is to keep of it, and, once it has one, the action
 * itself. That is made of what is at hand: reading its text again would cost its orchestrator more than the rest of it.
 */
export class Draft {
  readonly stored: NewAction;
  readonly #parts: DraftParts;
  readonly #createdAt: string;
  readonly #payload: string;

  constructor(parts: DraftParts) {
    const { actionId, type, target, priority, timeoutMs } = parts;
    checkField('action_id', FIELDS.action_id, actionId);
    checkField('action_type', FIELDS.action_type, type);
    checkField('target_node_type', FIELDS.target_node_type, target);
    checkField('priority', FIELDS.priority, priority);
    checkField('timeout_ms', FIELDS.timeout_ms, timeoutMs);
    this.#parts = parts;
    this.#createdAt = isoOf(parts.createdAtMs);
    this.#payload = jsonOf(parts.payload, 'payload');
    // What has been checked has nothing in it that JSON would write otherwise.
    const rest = `"action_type":"${type}","created_at":"${this.#createdAt}","timeout_ms":${timeoutMs}`;
    const origin = parts.origin === null ? '' : `"origin":"${parts.origin}",`;
    const body = `{${origin}${rest},"payload":${this.#payload}}`;
    this.stored = { id: actionId, target, priority, body };
  }

  emitted(leaseId: string, epoch: number): Action {
    const { actionId, workflow, type, target, priority, timeoutMs } = this.#parts;
    return Object.freeze({
      action_id: actionId,
      workflow_id: workflow,
      action_type: type,
      target_node_type: target,
      // Not what the caller gave, which may change, but what went over the wire.
      payload: frozen<unknown>(JSON.parse(this.#payload)),
      lease_id: leaseId,
      epoch,
      priority,
      created_at: this.#createdAt,
      timeout_ms: timeoutMs,
    });
  }
}

/** The last moment that was made text of: many actions have the same. */
let lastMoment = { ms: Number.NaN, text: '' };

function isoOf(ms: number): string {
  if (lastMoment.ms !== ms) lastMoment = { ms, text: new Date(ms).toISOString() };
  return lastMoment.text;
}

/** The text of a value that goes over the wire; throws `ACTION_INVALID` for what would not arrive there. */
export function jsonOf(value: unknown, field: string): string {
  let json: string | undefined;
  let why = 'it is JSON';
  try {
    json = JSON.stringify(value);
  } catch (error) {
    // A cycle, or a BigInt.
    why = `it is JSON (${error instanceof Error ? error.message.split('\n')[0] : 'it is not'})`;
  }
  if (json === undefined) throw new ActionInvalidError({ field, rule: why });
  return json;
}

/** An action as the store keeps it, as everybody sees it. */
export function actionOf(workflow: string, stored: StoredAction): Action {
  const body: unknown = JSON.parse(stored.body);
  // It goes along with an action, but is no part of it.
  if (typeof body === 'object' && body !== null && 'origin' in body) delete body.origin;
  const { id: action_id, target: target_node_type, leaseId: lease_id, epoch, priority } = stored;
  const known = { action_id, workflow_id: workflow, target_node_type, lease_id, epoch, priority };
  return frozen(readAction(Object.assign(body as object, known)));
}

/** The span that an action was emitted in, if anybody traced there. */
export function originOf(stored: StoredAction): string | null {
  const { origin } = JSON.parse(stored.body) as { readonly origin?: unknown };
  return typeof origin === 'string' ? origin : null;
}

export function resultOf(workflow: string, stored: StoredResult): ActionResult {
  const { actionId, target, epoch, outcome, value, atMs } = stored;
  const success = outcome === 'succeeded';
  return frozen({
    ...{ action_id: actionId, workflow_id: workflow, target_node_type: target, epoch, success },
    value: success ? value : null,
    error: success ? null : (value as ActionFailure),
    is_dead: outcome === 'dead',
    completed_at: new Date(atMs).toISOString(),
  });
}

/** All the way down: an action that somebody could change would not be the one that was emitted. */
function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) frozen(part);
  }
  return value;
}
