/** What a sink recorded of the writes that reached it: one JSON object per line. */
import { ConfigError } from '../core/errors.ts';

/** A write as the sink saw it. Records of one sink are in the order in which it decided. */
export interface SinkRecord {
  /** In milliseconds since 1970, by the clock of the sink. */
  readonly at: number;
  readonly key: string;
  readonly fence: number;
  readonly accepted: boolean;
  /** The file that it is from, and its line there. */
  readonly sink: string;
  readonly line: number;
}

/** Further lines are refused: `--from` and `--to` do not make a file shorter. */
const MAX_RECORDS = 500_000;

/** Reads a file of records. Throws for a line that is not one, with its number and the rule. */
export function readSinkRecords(text: string, sink: string): SinkRecord[] {
  const records: SinkRecord[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    if (records.length === MAX_RECORDS) {
      const rule = `a file has at most ${MAX_RECORDS} records. Cut it to the time in question`;
      throw new ConfigError({ field: '--sink', value: sink, rule });
    }
    records.push(recordOf(line, sink, index + 1));
  }
  return records;
}

function recordOf(json: string, sink: string, line: number): SinkRecord {
  const field = (name: string) => `--sink ${sink}, line ${line}${name === '' ? '' : `: ${name}`}`;
  const refuse = (name: string, value: unknown, rule: string): never => {
    throw new ConfigError({ field: field(name), value, rule });
  };
  const found = parsed(json);
  if (found === null)
    return refuse('', json.slice(0, 80), 'each line is a JSON object { at, key, fence, accepted }');
  const { key, accepted } = found;
  const at = typeof found.at === 'string' ? Date.parse(found.at) : found.at;
  if (typeof at !== 'number' || !Number.isFinite(at))
    return refuse(
      'at',
      found.at,
      'milliseconds since 1970, or a time such as 2026-01-31T03:10:00Z',
    );
  if (typeof key !== 'string' || key === '')
    return refuse('key', key, 'the key of the lease, as text');
  const fence = /^\d{1,16}$/.test(String(found.fence)) ? Number(found.fence) : Number.NaN;
  if (!Number.isSafeInteger(fence))
    return refuse('fence', found.fence, 'the fence of the write, a whole number');
  if (typeof accepted !== 'boolean') return refuse('accepted', accepted, 'true or false');
  return { at, key, fence, accepted, sink, line };
}

function parsed(json: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(json);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
