/** Sessions as text and JSON. */
import { systemClock } from '../../../core/clock.ts';
import { shortName } from '../../../core/ids.ts';
import type { IntentSession } from '../../../intents/intent-session.ts';
import { intentSessionJson } from '../../../server/routes/json/session-json.ts';
import {
  agoText,
  counted,
  cut,
  printable,
  spanOf,
  table,
  timeText,
  toJson,
} from '../../ui/text.ts';

/** The width of the progress column. */
const PROGRESS_COLUMNS = 40;
const PARAMS_COLUMNS = 30;
const KEY_NAMES = { 'stream.start': 'channel', 'vod.start': 'recording', start: 'key' } as const;

export const SESSION_HEAD = [
  'ID',
  'STATE',
  'REASON',
  'KIND',
  'KEY',
  'PARAMS',
  'CLIENTS',
  'AGE',
  'SLOT',
  'WORKER',
  'PROGRESS',
];

export function sessionRow(session: IntentSession, nowMs: number): string[] {
  const { id, state, reason, kind, clients, createdAtMs, slot, worker } = session;
  return [
    id,
    state,
    reason ?? '-',
    kind,
    targetOf(session),
    cut(paramsOf(session), PARAMS_COLUMNS),
    String(clients),
    spanOf(Math.max(0, nowMs - createdAtMs)),
    slot ?? '-',
    worker === null ? '-' : shortName(worker),
    cut(progressOf(session) ?? '-', PROGRESS_COLUMNS),
  ];
}

/** All fields, with the process group that the API does not show. */
export function sessionJson(session: IntentSession): object {
  const { group } = session;
  return { ...intentSessionJson(session), ...(group !== undefined && { group }) };
}

export function describedSession(session: IntentSession): string {
  const nowMs = systemClock.wallMs();
  const { losses = 0, failures = 0, progress, detail = {} } = session;
  const lines: Line[] = [
    ['id', session.id],
    ['kind', session.kind],
    ['tenant', session.tenant],
    [KEY_NAMES[session.type], targetOf(session)],
    session.type === 'start' ? ['params', paramsOf(session)] : ['profile', session.profile],
    ['state', session.state],
    ['reason', session.reason ?? '-'],
    ['outcome', session.outcome ?? '-'],
    ['worker', session.worker ?? '-'],
    ['slot', session.slot ?? '-'],
    ['clients', counted(session.clients, 'client')],
    ['created', momentOf(session.createdAtMs, nowMs)],
    ['changed', momentOf(session.changedAtMs, nowMs)],
    ['revision', String(session.revision)],
    ...(losses > 0 ? [['losses', `its worker was lost ${counted(losses, 'time')}`] as const] : []),
    ...(failures > 0 ? [['failures', `tried again ${counted(failures, 'time')}`] as const] : []),
    ...(progress === undefined ? [] : [['progress', shown(progress)] as const]),
    ...ending(detail),
  ];
  return table(lines.map((line) => line.map(printable)));
}

type Line = readonly [name: string, value: string];
type Detail = NonNullable<IntentSession['detail']>;

/** The progress while it runs; after the end, how its pipeline ended. */
function progressOf({ state, progress, detail }: IntentSession): string | undefined {
  if (state !== 'ENDED' || detail === undefined)
    return progress === undefined ? progress : shown(progress);
  const { tookMs } = detail;
  const how = exitOf(detail) ?? [detail.error, detail.why].find((why) => typeof why === 'string');
  const span = typeof tookMs === 'number' ? `ran ${spanOf(tookMs)}` : undefined;
  return [how, span].filter((part) => part !== undefined).join(', ') || undefined;
}

function exitOf({ code, signal }: Detail): string | undefined {
  if (typeof signal === 'string') return signal;
  return typeof code === 'number' ? `exit ${code}` : undefined;
}

/** How its pipeline ended, one fact on each line. Unknown facts are shown as JSON. */
function ending({ tookMs, code, signal, output, error, result, ...rest }: Detail): Line[] {
  const lines: Line[] = [];
  if (typeof tookMs === 'number') lines.push(['ran for', spanOf(tookMs)]);
  if (typeof code === 'number') lines.push(['exit code', String(code)]);
  if (typeof signal === 'string') lines.push(['ended by', signal]);
  if (error !== undefined) lines.push(['error', shown(error)]);
  if (result !== undefined) lines.push(['result', shown(result)]);
  for (const [name, value] of Object.entries(rest)) lines.push([name, shown(value)]);
  const last = Array.isArray(output) ? output : [];
  for (const [i, text] of last.entries()) lines.push([i === 0 ? 'last lines' : '', shown(text)]);
  return lines;
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : toJson(value);
}

/** For a built-in kind, its profile. */
function paramsOf({ type, profile, params }: IntentSession): string {
  return type === 'start' ? toJson(params) : profile;
}

/** The key, the channel or the recording, and where it starts. */
function targetOf({ target, startMs = 0 }: IntentSession): string {
  return startMs === 0 ? target : `${target} from ${spanOf(startMs)}`;
}

function momentOf(atMs: number, nowMs: number): string {
  return `${timeText(atMs)}, ${agoText(atMs, nowMs)}`;
}
