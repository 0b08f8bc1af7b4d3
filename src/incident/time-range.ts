/** From when to when: as people type it. Times without a zone are of the zone of this process. */
import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError } from '../core/errors.ts';

export interface TimeRange {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface RangeText {
  readonly last?: Duration | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

const DAY_MS = 86_400_000;

const CLOCK = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/;
const DATE =
  /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.\d{1,3})?)?(Z|[+-]\d{2}:?\d{2})?)?$/i;

const RULE =
  'a time is one of today or yesterday such as 03:10, or has a date: 2026-01-31T03:10, 2026-01-31T03:10:00Z';

/** Null: no time was given. `prefix` is put before the names of fields in errors. */
export function timeRange(text: RangeText, nowMs: number, prefix = '--'): TimeRange | null {
  const { last, from, to } = text;
  if (last === undefined && from === undefined && to === undefined) return null;
  if (last !== undefined && from !== undefined) {
    const rule = `give ${prefix}last or ${prefix}from, not both`;
    throw new ConfigError({ field: `${prefix}last`, value: last, rule });
  }
  const fromMs = from === undefined ? null : momentMs(from, nowMs, `${prefix}from`);
  const toMs = to === undefined ? nowMs : endMs(to, { fromMs, nowMs, field: `${prefix}to` });
  const lastMs = last === undefined ? null : durationMs(last, `${prefix}last`);
  const beganMs = fromMs ?? (lastMs === null ? 0 : toMs - lastMs);
  if (beganMs < toMs) return { fromMs: beganMs, toMs };
  if (fromMs !== null && to === undefined) {
    const rule = 'it is in the future';
    throw new ConfigError({ field: `${prefix}from`, value: from, rule });
  }
  const [field, value] = lastMs === null ? ['to', to] : ['last', last];
  const rule = lastMs === null ? `it has to be after ${prefix}from` : 'it is longer than 0';
  throw new ConfigError({ field: `${prefix}${field}`, value, rule });
}

/** A time of day is the last such time before now. */
function momentMs(text: string, nowMs: number, field: string): number {
  const ofDay = clockTime(text, field);
  if (ofDay === null) return dateMs(text, field);
  const today = onDayOf(nowMs, ofDay);
  return today <= nowMs ? today : onDayOf(nowMs - DAY_MS, ofDay);
}

/** A time of day is the first such time after the beginning. */
function endMs(
  text: string,
  { fromMs, nowMs, field }: { fromMs: number | null; nowMs: number; field: string },
): number {
  const ofDay = clockTime(text, field);
  if (ofDay === null || fromMs === null) return momentMs(text, nowMs, field);
  const sameDay = onDayOf(fromMs, ofDay);
  return sameDay > fromMs ? sameDay : onDayOf(fromMs + DAY_MS, ofDay);
}

type ClockTime = readonly [hours: number, minutes: number, seconds: number];

function clockTime(text: string, field: string): ClockTime | null {
  const parts = CLOCK.exec(text);
  if (parts === null) return null;
  const [hours, minutes, seconds] = [Number(parts[1]), Number(parts[2]), Number(parts[3] ?? 0)];
  if (hours > 23 || minutes > 59 || seconds > 59)
    throw new ConfigError({ field, value: text, rule: RULE });
  return [hours, minutes, seconds];
}

function onDayOf(ms: number, [hours, minutes, seconds]: ClockTime): number {
  return new Date(ms).setHours(hours, minutes, seconds, 0);
}

function dateMs(text: string, field: string): number {
  const parts = DATE.exec(text);
  const refusal = () => new ConfigError({ field, value: text, rule: RULE });
  if (parts === null) throw refusal();
  const [, year, month, day, hours] = parts;
  const lastDay = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  const ms = Date.parse(hours === undefined ? `${text}T00:00` : text.replace(' ', 'T'));
  // A date such as 31 February would be one of the next month.
  if (!Number.isFinite(ms) || Number(day) > lastDay) throw refusal();
  return ms;
}
