import { isatty } from 'node:tty';
import { systemClock } from '../../../core/clock.ts';
import { type Duration, durationMs } from '../../../core/duration.ts';
import type { EventName } from '../../../core/events.ts';
import { shortName } from '../../../core/ids.ts';
import { isAboutMember, targetOf } from '../../../telemetry/about.ts';
import type { EventLog, Followed, LoggedEvent } from '../../../telemetry/event-log.ts';
import { LEVELS } from '../../../telemetry/levels.ts';
import { PrettyLog } from '../../../telemetry/pretty.ts';
import { sentenceOf } from '../../../telemetry/sentences.ts';
import type { Context } from '../../context.ts';
import { EXIT, type Exit, usageError } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { neverBlock, type Output, write } from '../../ui/output.ts';
import { StopSignals } from '../../ui/stop-signals.ts';
import { spanOf, toJson } from '../../ui/text.ts';

export interface WatchFlags {
  readonly target?: string;
  readonly member?: string;
  readonly event?: string;
  readonly since?: Duration;
}

/**
 * Every instance logs the end of a member. This many ended members are remembered, to print one
 * line.
 */
const MAX_GONE = 1_000;

/** `holdfast watch`. */
export async function watch({ flags, output }: Context, only: WatchFlags): Promise<Exit> {
  const isWanted = filterOf(only);
  const sinceMs = only.since === undefined ? 0 : durationMs(only.since, '--since');
  neverBlock(output.json ? { onDropped: jsonDropped } : {});
  const ending = new StopSignals();
  const over = new AbortController();
  // The reader has ended, as with `| head`.
  const onEnd = () => over.abort();
  const signal = AbortSignal.any([ending.asked, over.signal]);
  try {
    await withHoldfast(flags, async ({ log }) => {
      const start = only.since === undefined ? {} : await positionBefore(log, sinceMs);
      const past = only.since === undefined ? '' : ` the last ${spanOf(sinceMs)} and`;
      if (isatty(1)) output.note(`printing the events of${past} from now on. Ctrl-C ends it.`);
      const screen = output.json ? asJson(onEnd) : inWords(output, onEnd);
      for await (const one of log.follow({ ...start, signal })) {
        if (one.kind !== 'event' || isWanted(one.event)) screen.show(one);
      }
      screen.end();
    });
    return EXIT.ok;
  } finally {
    ending.close();
  }
}

function filterOf({ target, member, event }: WatchFlags): (event: LoggedEvent) => boolean {
  const isEvent = (name: string) => name === event || name.startsWith(`${event}.`);
  if (event !== undefined && !Object.keys(LEVELS).some(isEvent))
    throw usageError(`--event '${event}' is unknown: docs/events.md lists all events.`);
  return (one) =>
    (target === undefined || targetOf(one) === target) &&
    (member === undefined || isAboutMember(one, member)) &&
    (event === undefined || isEvent(one.event));
}

/** A position in the log before all events of that time, or its beginning. */
export async function positionBefore(
  log: Pick<EventLog, 'recall'>,
  sinceMs: number,
): Promise<{ after: string } | { from: 'oldest' }> {
  const fromMs = systemClock.wallMs() - sinceMs;
  let older: string | undefined;
  for (let before: string | undefined; ; ) {
    const page = await log.recall(before === undefined ? {} : { before });
    // The clocks of instances differ: before an old entry of a slow clock, newer ones of others may
    // stand.
    for (const { at, position } of page.entries)
      older = at >= fromMs ? undefined : (older ?? position);
    const isAllOlder = page.entries.every(({ at }) => at < fromMs);
    const isEnd = !page.more || page.position === undefined;
    if (older !== undefined && (isAllOlder || isEnd)) return { after: older };
    if (isEnd) return { from: 'oldest' };
    before = page.position;
  }
}

/** A line that marks missing events. */
function jsonDropped(lines: number): void {
  write(1, `${toJson({ gap: true, dropped: lines })}\n`);
}

interface Screen {
  show(one: Followed): void;
  end(): void;
}

function asJson(onEnd: () => void): Screen {
  return {
    show: (one) => {
      const error = one.kind === 'stalled' && one.error instanceof Error ? one.error.message : null;
      const shown =
        one.kind === 'event' ? one.event : { [one.kind]: true, ...(error !== null && { error }) };
      if (!write(1, `${toJson(shown)}\n`)) onEnd();
    },
    end: () => {},
  };
}

const INTERRUPTIONS = {
  gap: 'events are missing here: they were dropped or lost',
  stalled: 'the store does not answer; trying again',
  resumed: 'the store answers again',
};

function inWords(output: Output, onEnd: () => void): Screen {
  const gone = new Set<string>();
  const pretty = new PrettyLog({
    clock: systemClock,
    color: output.hasColor,
    columns: output.columns,
    write: (text) => {
      if (!write(1, text)) onEnd();
    },
  });
  const show = (one: Followed) => {
    if (one.kind !== 'event') {
      pretty.add({
        time: systemClock.wallMs(),
        level: 'warn',
        msg: INTERRUPTIONS[one.kind],
        who: '--',
      });
    } else if (!isRepeated(one.event, gone)) {
      const { position: _, at, instance, event, ...facts } = one.event;
      pretty.add({
        time: at,
        event,
        who: shortName(instance),
        target: targetOf(one.event),
        level: LEVELS[event as EventName] ?? 'info',
        msg: sentenceOf(event, facts, instance),
      });
    }
  };
  return { show, end: () => pretty.flush() };
}

/** Whether another instance logged the same end of a member. `gone` has those that were shown. */
export function isRepeated({ event, member }: LoggedEvent, gone: Set<string>): boolean {
  if (event !== 'member.left' || typeof member !== 'string') return false;
  if (gone.has(member)) return true;
  if (gone.size >= MAX_GONE) gone.clear();
  gone.add(member);
  return false;
}
