/**
 * Intents: requests of clients to start or stop a session. Types and fields are those of the HTTP
 * API. `checkIntent` validates intents that do not come through the server.
 */
import { ConfigError } from '../core/errors.ts';
import { isForeignText, isTargetId, TARGET_ID_RULE } from '../core/ids.ts';
import { isKindName, KIND_NAME_RULE } from './kind.ts';

/** Starts a channel, or joins the session that runs it. */
export interface StreamStart {
  readonly type: 'stream.start';
  /** The channel: text that its provider chooses. */
  readonly serviceRef: string;
  /** The name of a profile; default `default`. */
  readonly profile?: string;
}

/** Plays a recording from a given time. */
export interface VodStart {
  readonly type: 'vod.start';
  readonly recordingId: string;
  readonly profile?: string;
  /** The time in the recording; default 0. Starts within the same second share a session. */
  readonly startMs?: number;
}

/** The client needs the session no more. The session stops when its last client has said so. */
export interface StreamStop {
  readonly type: 'stream.stop';
  readonly sessionId: string;
  /** Stops the session even if other clients need it. */
  readonly force?: boolean;
}

/**
 * Starts a session of a declared kind, or finds the session that the same request started. See
 * `KindOptions` for what counts as the same.
 */
export interface Start {
  readonly type: 'start';
  readonly kind: string;
  /** The client's name for the work. Default: what `exclusive` makes of the params, or a new id. */
  readonly key?: string;
  /** Validated by the schema of the kind; default an empty object. */
  readonly params?: Readonly<Record<string, unknown>>;
}

/** As `stream.stop`, for sessions of any kind. */
export interface Stop {
  readonly type: 'stop';
  readonly sessionId: string;
  readonly force?: boolean;
}

/** Stops all open sessions of a kind with this key, as `Stop` stops one. */
export interface StopKey {
  readonly kind: string;
  readonly key: string;
  readonly force?: boolean;
}

export type Intent = StreamStart | VodStart | StreamStop | Start | Stop;

/** The client that submits an intent. */
export interface Requester {
  /**
   * A tenant sees only its own sessions. Null sees all tenants, and starts sessions of
   * `DEFAULT_TENANT`.
   */
  readonly tenant: string | null;
  /** Counts once for each session. */
  readonly client: string;
}

export const INTENT_TYPES = ['stream.start', 'vod.start', 'stream.stop', 'start', 'stop'] as const;
/** For requesters without a tenant. */
export const DEFAULT_TENANT = 'default';
export const DEFAULT_PROFILE = 'default';
/** Bytes of UTF-8 in a reference that a client chooses. */
const MAX_REF_BYTES = 512;
/** A hundred years: no recording is longer. */
export const LATEST_START_MS = 100 * 365 * 24 * 3_600_000;
const BUCKET_MS = 1_000;

export const REF_RULE = `it must be 1 to ${MAX_REF_BYTES} bytes of well-formed text without control characters`;

/** The work that a start asks for, in one form for all types. */
export interface Wanted {
  /** `live`, `vod`, or a declared kind. */
  readonly kind: string;
  readonly type: 'stream.start' | 'vod.start' | 'start';
  /** The channel, the recording, or the key of a declared kind. Several sessions may have it. */
  readonly target: string;
  readonly profile: string;
  /** Starts of one target and profile in the same bucket share a session. */
  readonly bucket: string;
  readonly startMs?: number;
  /** Of a declared kind: sessions with the same text exclude each other. */
  readonly exclusive?: string;
  /** Of a declared kind: JSON, as its schema returned it. */
  readonly params?: unknown;
}

export function wantedBy(intent: StreamStart | VodStart): Wanted {
  const { type, profile = DEFAULT_PROFILE } = intent;
  if (type === 'stream.start')
    return { kind: 'live', type, target: intent.serviceRef, profile, bucket: '0' };
  const { recordingId: target, startMs = 0 } = intent;
  return { kind: 'vod', type, target, profile, bucket: bucketOf(startMs), startMs };
}

/** Throws `CONFIG_INVALID` for an invalid intent. */
export function checkIntent(intent: Intent): void {
  const fields: Readonly<Record<string, unknown>> = { ...intent };
  switch (fields.type) {
    case 'stream.start':
      checkRef('serviceRef', fields.serviceRef);
      checkProfile(fields.profile);
      break;
    case 'vod.start':
      checkRef('recordingId', fields.recordingId);
      checkStart(fields.startMs);
      checkProfile(fields.profile);
      break;
    case 'stream.stop':
    case 'stop':
      checkId('sessionId', fields.sessionId);
      break;
    case 'start':
      checkKind(fields.kind);
      if (fields.key !== undefined) checkRef('key', fields.key);
      checkParams(fields.params);
      break;
    default: {
      const rule = `it must be one of ${INTENT_TYPES.join(', ')}`;
      throw new ConfigError({ field: 'type', value: fields.type, rule });
    }
  }
}

export function checkRequester({ tenant, client }: Requester): void {
  if (tenant !== null) checkId('tenant', tenant);
  checkId('client', client);
}

export function checkStopKey({ kind, key }: StopKey): void {
  checkKind(kind);
  checkRef('key', key);
}

export function isRef(value: unknown): value is string {
  return isForeignText(value, MAX_REF_BYTES);
}

export function isStartMs(value: unknown): value is number {
  return (
    Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= LATEST_START_MS
  );
}

function bucketOf(startMs: number): string {
  return String(Math.floor(startMs / BUCKET_MS));
}

function checkRef(field: string, value: unknown): void {
  if (!isRef(value)) throw new ConfigError({ field, value, rule: REF_RULE });
}

function checkKind(value: unknown): void {
  if (!isKindName(value)) throw new ConfigError({ field: 'kind', value, rule: KIND_NAME_RULE });
}

function checkParams(value: unknown): void {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (value === undefined || isObject) return;
  throw new ConfigError({ field: 'params', value, rule: 'it must be an object' });
}

function checkStart(startMs: unknown): void {
  if (startMs === undefined || isStartMs(startMs)) return;
  const rule = `it must be a whole number of milliseconds from 0 to ${LATEST_START_MS}`;
  throw new ConfigError({ field: 'startMs', value: startMs, rule });
}

function checkProfile(profile: unknown): void {
  if (profile !== undefined) checkId('profile', profile);
}

function checkId(field: string, value: unknown): void {
  if (!isTargetId(value)) throw new ConfigError({ field, value, rule: TARGET_ID_RULE });
}
