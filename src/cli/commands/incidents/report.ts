import { writeFile } from 'node:fs/promises';
import { systemClock } from '../../../core/clock.ts';
import type { Duration } from '../../../core/duration.ts';
import { ConfigError } from '../../../core/errors.ts';
import { readWindow } from '../../../incident/log-window.ts';
import { incidentReport } from '../../../incident/report.ts';
import { reportPage } from '../../../incident/report-page.ts';
import { timeRange } from '../../../incident/time-range.ts';
import { ZonedClock } from '../../../incident/zoned-clock.ts';
import type { Context } from '../../context.ts';
import { EXIT, type Exit, usageError } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { counted } from '../../ui/text.ts';
import { MOST_ENTRIES } from './verify.ts';

export interface ReportFlags {
  readonly last?: Duration;
  readonly from?: string;
  readonly to?: string;
  readonly key?: string;
  readonly out?: string;
}

const DEFAULT_LAST_MS = 3_600_000;

/** `holdfast report`. */
export async function report({ flags, output }: Context, only: ReportFlags): Promise<Exit> {
  const { key, out } = only;
  if (out === undefined && !output.json)
    throw usageError('give --out FILE for the page, or --json for the report as JSON.');
  const madeAtMs = systemClock.wallMs();
  const nowMs = Math.ceil(madeAtMs / 1_000) * 1_000;
  const range = timeRange(only, nowMs) ?? { fromMs: nowMs - DEFAULT_LAST_MS, toMs: nowMs };
  const { isTrimmed, events } = await withHoldfast(flags, ({ log }) =>
    readWindow(log, { fromMs: range.fromMs, most: MOST_ENTRIES }),
  );
  const made = incidentReport(events, { ...range, key, isTrimmed });
  const time = new ZonedClock();
  if (out !== undefined) {
    const narrow = 'give --key, or a shorter time';
    await writePage(out, reportPage(made, { time, madeAtMs, narrow }));
  }
  const { contradictions, keys, tenures } = made.verification;
  const found =
    contradictions.length === 0
      ? 'no contradiction found'
      : counted(contradictions.length, 'contradiction');
  const when = `${time.range(range.fromMs, range.toMs)} (${time.zone})`;
  const what = `${counted(tenures, 'tenure')} of ${counted(keys, 'key')}, ${found}`;
  output.result({ ...made, zone: time.zone }, () => `Wrote ${out}: ${when}, ${what}.\n`);
  return EXIT.ok;
}

async function writePage(path: string, page: string): Promise<void> {
  await writeFile(path, page).catch((error: NodeJS.ErrnoException) => {
    const rule = `the file cannot be written (${error.code ?? error.message})`;
    throw new ConfigError({ field: '--out', value: path, rule });
  });
}
