/** The states and reasons of sessions in plain words. The codes are those of docs/intents.md and docs/workers.md. */
import type { RunSession, SessionState } from '../../../src/client/messages.ts';

export const STATES: readonly SessionState[] = ['NEW', 'STARTING', 'RUNNING', 'STOPPING', 'ENDED'];

const WORDS: Readonly<Record<SessionState, string>> = {
  NEW: 'Waiting',
  STARTING: 'Starting',
  RUNNING: 'Running',
  STOPPING: 'Stopping',
  ENDED: 'Ended',
};

/** `Running` for RUNNING; anything that is no state as it is. */
export function stateWord(state: string): string {
  return Object.hasOwn(WORDS, state) ? WORDS[state as SessionState] : state;
}

export const STATE_MEANS: Readonly<Record<SessionState, string>> = {
  NEW: 'No worker has taken it yet.',
  STARTING: 'A worker has it and acquires its leases.',
  RUNNING: 'Its pipeline runs, and its worker holds its leases.',
  STOPPING: 'Its worker has told its pipeline to end.',
  ENDED: 'Nothing of it runs, and it never changes again.',
};

export const REASON_MEANS: Readonly<Record<string, string>> = {
  R_STOPPED: 'Its last client stopped it.',
  R_LEASE_BUSY: 'Another session runs this channel. Start it again when that session has ended.',
  R_NO_SLOT: 'Every slot of the pool was taken. Stop a session, or configure more slots.',
  R_TIME_LIMIT: 'Its time limit was over, and it was told to end.',
  R_NO_TUNER: 'Every slot of the pool was taken. Stop a session, or configure more slots.',
  R_LEASE_EXPIRED:
    'Its worker lost a lease: the worker froze, an operator revoked the lease, or the store was unavailable.',
  R_PIPELINE_ENDED: 'Its pipeline finished.',
  R_PIPELINE_FAILED: 'Its pipeline failed. The exit code and the last lines say how.',
  R_WORKER_LOST: 'Its worker died, and no other worker could continue.',
};

/** The sentence for a code such as `R_STOPPED`; any other text as it is. */
export function reasonText(reason: string): string {
  return Object.hasOwn(REASON_MEANS, reason) ? (REASON_MEANS[reason] ?? reason) : reason;
}

const GOOD_REASONS = new Set(['R_STOPPED', 'R_PIPELINE_ENDED']);

/** Running is good; a session that ended for a bad reason is bad. */
export function toneOf({ state, reason }: Pick<RunSession, 'state' | 'reason'>): string {
  if (reason !== null && !GOOD_REASONS.has(reason)) return 'bad';
  if (state === 'RUNNING') return 'good';
  return state === 'ENDED' ? '' : 'warn';
}

/** What a session runs: the channel, the recording, or the key of a declared kind. */
export function refOf({ key }: RunSession): string {
  return key;
}

/** The params of a session of a declared kind; undefined for a channel or a recording. */
export function paramsOf(session: RunSession): unknown {
  return 'params' in session ? session.params : undefined;
}

/** One fact of a progress report: `running for`, `16 s`. */
export interface ProgressFact {
  readonly name: string;
  readonly value: string;
}

/** Reports are any JSON. Of larger ones the first so many facts are shown; the rest is in the raw report. */
const MOST_FACTS = 12;
/** Of one fact, in characters. */
const MOST_TEXT = 300;
/** Of all on one line. */
const MOST_LINE = 200;

/** A report as facts with readable names; a single value has no name. Empty for nothing. */
export function progressFacts(
  progress: unknown,
  spanOf: (ms: number) => string,
): readonly ProgressFact[] {
  if (progress === undefined || progress === null) return [];
  if (typeof progress !== 'object')
    return [{ name: '', value: cutAt(String(progress), MOST_TEXT) }];
  return Object.entries(progress)
    .slice(0, MOST_FACTS)
    .map(([key, value]) => ({ name: nameOfKey(key), value: textOf(key, value, spanOf) }));
}

/** The same on one line: `running for 16 s · frame 1,204`. */
export function progressLine(progress: unknown, spanOf: (ms: number) => string): string {
  const line = progressFacts(progress, spanOf)
    .map(({ name, value }) => `${name} ${value}`.trim())
    .join(' · ');
  return cutAt(line, MOST_LINE);
}

function cutAt(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)} …` : text;
}

/** Which try of a session runs, or was the last: a worker that was lost and a failure are one each. */
export function attemptOf({ losses, failures }: Pick<RunSession, 'losses' | 'failures'>): number {
  return losses + failures + 1;
}

const MS_AT_END = /(?:Ms|_ms|Millis)$/;

/** `runningForMs` is `running for`, `frames_done` is `frames done`. */
function nameOfKey(key: string): string {
  const words = key
    .replace(MS_AT_END, '')
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/[_-]+/g, ' ')
    .toLowerCase()
    .trim();
  return words === '' ? key : words;
}

function textOf(key: string, value: unknown, spanOf: (ms: number) => string): string {
  if (typeof value === 'number' && MS_AT_END.test(key)) return spanOf(value);
  if (typeof value === 'number') return value.toLocaleString('en');
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return cutAt(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''), MOST_TEXT);
}
