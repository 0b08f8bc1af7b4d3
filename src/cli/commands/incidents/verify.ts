import { readFile } from 'node:fs/promises';
import { systemClock } from '../../../core/clock.ts';
import { type Duration, durationMs } from '../../../core/duration.ts';
import { ConfigError } from '../../../core/errors.ts';
import { shortName } from '../../../core/ids.ts';
import { readWindow } from '../../../incident/log-window.ts';
import { readSinkRecords, type SinkRecord } from '../../../incident/sink-records.ts';
import { type TimeRange, timeRange } from '../../../incident/time-range.ts';
import {
  DEFAULT_TOLERANCE_MS,
  type Finding,
  type Verification,
  verify,
} from '../../../incident/verify.ts';
import { ZonedClock } from '../../../incident/zoned-clock.ts';
import { LOG_KEPT } from '../../../store/port/log-store.ts';
import { sentenceOf } from '../../../telemetry/sentences.ts';
import type { Context } from '../../context.ts';
import { EXIT, type Exit } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import type { Output } from '../../ui/output.ts';
import { counted, printable, withShortNames } from '../../ui/text.ts';

export interface VerifyFlags {
  readonly last?: Duration;
  readonly from?: string;
  readonly to?: string;
  readonly key?: string;
  readonly sink?: readonly string[];
  readonly tolerance?: Duration;
}

/** A log may have a few more entries than it keeps. */
export const MOST_ENTRIES = LOG_KEPT + 10_000;

const TESTIMONY =
  'This is testimony, not proof: the log has what instances wrote about themselves.';

/** `holdfast verify`. */
export async function verifyLog({ flags, output }: Context, only: VerifyFlags): Promise<Exit> {
  const range = timeRange(only, systemClock.wallMs());
  const toleranceMs =
    only.tolerance === undefined ? DEFAULT_TOLERANCE_MS : durationMs(only.tolerance, '--tolerance');
  const writes = (await Promise.all((only.sink ?? []).map(recordsIn))).flat();
  const fromMs = range?.fromMs ?? null;
  const window = await withHoldfast(flags, ({ log }) =>
    readWindow(log, { fromMs, most: MOST_ENTRIES }),
  );
  const { isTrimmed, events } = window;
  const options = { ...range, toleranceMs, writes, key: only.key, isTrimmed };
  const verification = verify(events, options);
  const isClean = verification.contradictions.length === 0;
  const value = {
    verdict: isClean ? 'no contradiction found' : 'contradiction',
    basis: 'testimony',
    from: range?.fromMs ?? events[0]?.at ?? null,
    to: range?.toMs ?? events.at(-1)?.at ?? null,
    entries: events.length,
    ...verification,
  };
  output.result(value, () => inWords(verification, range, output));
  return isClean ? EXIT.ok : EXIT.contradicted;
}

async function recordsIn(path: string): Promise<SinkRecord[]> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    const rule = `the file cannot be read (${error.code ?? error.message})`;
    throw new ConfigError({ field: '--sink', value: path, rule });
  });
  return readSinkRecords(text, path);
}

function inWords(
  { contradictions, unclear, limits, keys, tenures, writes }: Verification,
  range: TimeRange | null,
  output: Output,
): string {
  const time = new ZonedClock();
  const checked = [
    `${counted(tenures, 'tenure')} of ${counted(keys, 'key')}`,
    ...(writes > 0 ? [`${counted(writes, 'record')} of sinks`] : []),
  ].join(' and ');
  const when = range === null ? 'in all of the log' : time.range(range.fromMs, range.toMs);
  const scope = `${checked}, ${when} (${time.zone})`;
  const verdict =
    contradictions.length === 0
      ? `${output.style('green', 'no contradiction found')} in ${scope}\n${TESTIMONY}\n`
      : `${output.style('red', counted(contradictions.length, 'contradiction'))} in ${scope}\n`;
  const listed = (title: string, findings: readonly Finding[]) =>
    findings.length === 0
      ? ''
      : `\n${output.style('bold', title)}\n${findings.map((one) => findingText(one, time)).join('')}`;
  const told = limits.map((line) => `- ${printable(withShortNames(line))}\n`).join('');
  return [
    verdict,
    listed('Contradictions', contradictions),
    listed('Unclear: something else explains it as well', unclear),
    `\n${output.style('bold', 'What the log cannot tell')}\n${told}`,
  ].join('');
}

function findingText({ key, kind, text, explanation, events, writes }: Finding, time: ZonedClock) {
  const lines = [
    ...events.map(({ at, instance, event, position: _, ...facts }) => ({
      at,
      line: `${shortName(instance)} ${sentenceOf(event, facts, instance)}${fenceOf(facts.fence)}`,
    })),
    ...writes.map(({ at, fence, sink, line }) => ({
      at,
      line: `${sink}:${line} accepted a write with fence ${fence}`,
    })),
  ].sort((a, b) => a.at - b.at);
  const entries = lines.map(({ at, line }) => `    ${time.moment(at)}  ${printable(line)}\n`);
  const why = explanation === null ? '' : `    ${printable(withShortNames(explanation))}\n`;
  return `  ${printable(key)} (${kind}): ${printable(withShortNames(text))}\n${why}${entries.join('')}`;
}

function fenceOf(fence: unknown): string {
  return typeof fence === 'string' ? ` (fence ${fence})` : '';
}
