/**
 * What a client can ask for: that something is started, or stopped. Types and fields are those of the HTTP interface; what the
 * server has not validated (a call from the same process), `checkIntent` does.
 */
import { ConfigError } from '../core/errors.ts';
import { isForeignText, isTargetId, TARGET_ID_RULE } from '../core/ids.ts';

/** Starts a channel, or finds that it has been started. */
export interface StreamStart {
  readonly type: 'stream.start';
  /** What is to be run: text of whoever names channels. */
  readonly serviceRef: string;
  /** How it is to be run; default `default`. */
  readonly profile?: string;
}

/** Plays a recording from a time on. */
export interface VodStart {
  readonly type: 'vod.start';
  readonly recordingId: string;
  readonly profile?: string;
  /** Where in the recording; default 0. Starts within the same second share a session. */
  readonly startMs?: number;
}

/** Says that the caller does not need a session any more. The last one who says so stops it. */
export interface StreamStop {
  readonly type: 'stream.stop';
  readonly sessionId: string;
  /** Stops it whoever else needs it. */
  readonly force?: boolean;
}

export type Intent = StreamStart | VodStart | StreamStop;

/** Who wants it. */
export interface Requester {
  /** Sessions of other tenants do not exist for this one. Null: whoever may see all; what it starts belongs to `DEFAULT_TENANT`. */
  readonly tenant: string | null;
  /** Counted once for each session. */
  readonly client: string;
}

const INTENT_TYPES = ['stream.start', 'vod.start', 'stream.stop'] as const;
/** Of those who name none. */
export const DEFAULT_TENANT = 'default';
export const DEFAULT_PROFILE = 'default';
/** Longest name that others choose, in bytes of UTF-8. */
const LONGEST_REF_BYTES = 512;
/** A hundred years: above that it is no time within a recording. */
export const LATEST_START_MS = 100 * 365 * 24 * 3_600_000;
const BUCKET_MS = 1_000;

export const REF_RULE = `it is 1 to ${LONGEST_REF_BYTES} bytes of well-formed text without control characters`;

/** What is to be run, without how its requester said it. */
export interface Wanted {
  readonly kind: 'live' | 'vod';
  readonly type: 'stream.start' | 'vod.start';
  readonly target: string;
  readonly profile: string;
  /** Starts of one target and profile share a session if they are of the same bucket. */
  readonly bucket: string;
  readonly startMs?: number;
}

export function wantedBy(intent: StreamStart | VodStart): Wanted {
  const { type, profile = DEFAULT_PROFILE } = intent;
  if (type === 'stream.start')
    return { kind: 'live', type, target: intent.serviceRef, profile, bucket: '0' };
  const { recordingId: target, startMs = 0 } = intent;
  return { kind: 'vod', type, target, profile, bucket: bucketOf(startMs), startMs };
}

/** Refuses what makes no sense, before anything is written. */
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
      checkId('sessionId', fields.sessionId);
      break;
    default: {
      const rule = `it is one of ${INTENT_TYPES.join(', ')}`;
      throw new ConfigError({ field: 'type', value: fields.type, rule });
    }
  }
}

export function checkRequester({ tenant, client }: Requester): void {
  if (tenant !== null) checkId('tenant', tenant);
  checkId('client', client);
}

export function isRef(value: unknown): value is string {
  return isForeignText(value, LONGEST_REF_BYTES);
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

function checkStart(startMs: unknown): void {
  if (startMs === undefined || isStartMs(startMs)) return;
  const rule = `it is a whole number of milliseconds from 0 to ${LATEST_START_MS}`;
  throw new ConfigError({ field: 'startMs', value: startMs, rule });
}

function checkProfile(profile: unknown): void {
  if (profile !== undefined) checkId('profile', profile);
}

function checkId(field: string, value: unknown): void {
  if (!isTargetId(value)) throw new ConfigError({ field, value, rule: TARGET_ID_RULE });
}
