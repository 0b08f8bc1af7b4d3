import { systemClock } from '../../../core/clock.ts';
import { checkTargetId, shortName } from '../../../core/ids.ts';
import type { StoredResult } from '../../../fleet/poll/results.ts';
import { SessionUnreadableError } from '../../../fleet/targets/errors.ts';
import type { Holdfast } from '../../../holdfast.ts';
import { instancesOf, targetOf } from '../../../telemetry/about.ts';
import type { EventLog, LoggedEvent } from '../../../telemetry/event-log.ts';
import { sentenceOf } from '../../../telemetry/sentences.ts';
import type { Context } from '../../context.ts';
import { EXIT, type Exit } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { jsonFacts, printable, spanOf, table, withShortNames } from '../../ui/text.ts';
import { lastOf } from '../sessions/last-result.ts';

/** How many events about the target are shown, and how much of the log is searched for them. */
const MOST_EVENTS = 10;
const MOST_PAGES = 20;

/** What happens to an instance, and so to all it owns. */
const OF_INSTANCES = /^(member|fleet|store|log)\./;

interface Place {
  readonly state: 'polled' | 'free' | 'paused' | 'unreadable' | 'unknown' | 'live' | 'vod';
  readonly owner: string | null;
  readonly planned: string | null;
  readonly text: string;
  readonly expiresInMs?: number;
}

/** Why a target is where it is, and what happened to it lately. */
export async function explain({ flags, output }: Context, target: string): Promise<Exit> {
  checkTargetId(target, 'TARGET');
  const { place, result, events } = await withHoldfast(flags, async (holdfast) => {
    const [place, results, events] = await Promise.all([
      placeOf(holdfast, target),
      holdfast.fleet.results([target]),
      recent(holdfast.log, target),
    ]);
    return { place, result: results.get(target) ?? null, events };
  });
  output.result({ target, ...jsonFacts({ ...place }), result, events }, () =>
    shown(target, place, result, events),
  );
  return place.state === 'unknown' ? EXIT.no : EXIT.ok;
}

async function placeOf(holdfast: Holdfast, id: string): Promise<Place> {
  const nowhere = { owner: null, planned: null };
  try {
    const [session, view] = await Promise.all([holdfast.targets.get(id), holdfast.fleet.view()]);
    const found = view.targets.find(({ target }) => target === id);
    if (found !== undefined) {
      const { owner, planned, text, expiresInMs } = found;
      return { state: owner === null ? 'free' : 'polled', owner, planned, text, expiresInMs };
    }
    if (session === null) {
      const text = 'there is no such session: nobody has added it, or it was removed.';
      return { ...nowhere, state: 'unknown', text };
    }
    if (session.kind !== 'poll') {
      const text = `it is of kind '${session.kind}', which is not polled.`;
      return { ...nowhere, state: session.kind, text };
    }
    const text = `it is paused, so nobody polls it. Go on with: holdfast sessions resume ${id}`;
    return { ...nowhere, state: 'paused', text };
  } catch (error) {
    if (!(error instanceof SessionUnreadableError)) throw error;
    const text = `its record makes no sense (${error.why}). Instances that knew it before go on with what they knew; others skip it.`;
    return { ...nowhere, state: 'unreadable', text };
  }
}

/** The last events about the target, and what happened to the instances they name meanwhile; the oldest first. */
async function recent(log: EventLog, target: string): Promise<LoggedEvent[]> {
  const about: LoggedEvent[] = [];
  const around: LoggedEvent[] = [];
  let before: string | undefined;
  for (let page = 0; page < MOST_PAGES && about.length < MOST_EVENTS; page++) {
    const { entries, more, position } = await log.recall(before === undefined ? {} : { before });
    for (const event of entries) {
      if (targetOf(event) === target) about.push(event);
      else if (OF_INSTANCES.test(event.event)) around.push(event);
      if (about.length === MOST_EVENTS) break;
    }
    if (!more || position === undefined) break;
    before = position;
  }
  const involved = new Set(about.flatMap(instancesOf));
  const firstAt = about.at(-1)?.at ?? Number.POSITIVE_INFINITY;
  const meanwhile = around.filter(
    (event) => event.at >= firstAt && instancesOf(event).some((id) => involved.has(id)),
  );
  return [...about, ...meanwhile].sort((a, b) => a.at - b.at).slice(-2 * MOST_EVENTS);
}

function shown(
  target: string,
  { text, expiresInMs, owner }: Place,
  result: StoredResult | null,
  events: readonly LoggedEvent[],
): string {
  const nowMs = systemClock.wallMs();
  const lines = [`${target}: ${withShortNames(text)}`];
  if (owner !== null && expiresInMs !== undefined)
    lines.push(`Its lease runs out in ${spanOf(expiresInMs)}, unless it is renewed.`);
  if (result !== null) lines.push(`Last poll: ${lastOf(result)}, by ${shortName(result.by)}.`);
  const happened = events.map(({ position: _, at, instance, event, ...facts }) => [
    `  ${spanOf(Math.max(0, nowMs - at))} ago`,
    shortName(instance),
    sentenceOf(event, facts, instance),
  ]);
  const history =
    happened.length === 0
      ? '\nNothing about it is in the log of the last day.\n'
      : `\nWhat happened lately:\n${table(happened.map((row) => row.map(printable)))}`;
  return `${lines.map((line) => `${printable(line)}\n`).join('')}${history}`;
}
