import { systemClock } from '../../../core/clock.ts';
import { checkTargetId, shortName } from '../../../core/ids.ts';
import type { StoredResult } from '../../../fleet/poll/result-writer.ts';
import { SessionUnreadableError } from '../../../fleet/targets/errors.ts';
import type { Holdfast } from '../../../holdfast.ts';
import { instancesOf, targetOf } from '../../../telemetry/about.ts';
import type { EventLog, LoggedEvent } from '../../../telemetry/event-log.ts';
import { sentenceOf } from '../../../telemetry/sentences.ts';
import type { Context } from '../../context.ts';
import { EXIT, type Exit } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { agoText, jsonFacts, printable, spanOf, table, withShortNames } from '../../ui/text.ts';
import { lastResultText } from '../targets/targets.ts';

/** At most this many events are shown, from at most this many pages of the log. */
const MAX_EVENTS = 10;
const MAX_PAGES = 20;

/** Events of instances: they concern every target of the instance. */
const OF_INSTANCES = /^(member|fleet|store|log)\./;

interface Place {
  state: 'polled' | 'run' | 'free' | 'paused' | 'unreadable' | 'unknown' | 'live' | 'vod';
  readonly owner: string | null;
  readonly planned: string | null;
  readonly text: string;
  readonly expiresInMs?: number;
}

/** `holdfast explain`. */
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
  // The result of a task says that its target is run.
  if (place.state === 'polled' && result?.state !== undefined) place.state = 'run';
  output.result({ target, ...jsonFacts({ ...place }), result, events }, () =>
    shown(target, place, result, events),
  );
  return place.state === 'unknown' ? EXIT.no : EXIT.ok;
}

async function placeOf(holdfast: Holdfast, id: string): Promise<Place> {
  const nowhere = { owner: null, planned: null };
  try {
    const [target, view] = await Promise.all([holdfast.targets.get(id), holdfast.fleet.view()]);
    const found = view.targets.find(({ target }) => target === id);
    if (found !== undefined) {
      const { owner, planned, text, expiresInMs } = found;
      return { state: owner === null ? 'free' : 'polled', owner, planned, text, expiresInMs };
    }
    if (target === null) {
      const text = 'this target does not exist. List the targets: holdfast targets ls';
      return { ...nowhere, state: 'unknown', text };
    }
    if (target.kind !== 'poll') {
      const text = `it has kind '${target.kind}', so no instance polls it.`;
      return { ...nowhere, state: target.kind, text };
    }
    const text = `it is paused, so no instance polls it. Resume it: holdfast targets resume ${id}`;
    return { ...nowhere, state: 'paused', text };
  } catch (error) {
    if (!(error instanceof SessionUnreadableError)) throw error;
    const text = `its record is invalid (${error.why}). Instances that read it before keep polling it as it was; others skip it. Correct the record in the program that wrote it.`;
    return { ...nowhere, state: 'unreadable', text };
  }
}

/** The latest events of the target and of the instances in them, the oldest first. */
async function recent(log: EventLog, target: string): Promise<LoggedEvent[]> {
  const about: LoggedEvent[] = [];
  const around: LoggedEvent[] = [];
  let before: string | undefined;
  for (let page = 0; page < MAX_PAGES && about.length < MAX_EVENTS; page++) {
    const { entries, more, position } = await log.recall(before === undefined ? {} : { before });
    for (const event of entries) {
      if (targetOf(event) === target) about.push(event);
      else if (OF_INSTANCES.test(event.event)) around.push(event);
      if (about.length === MAX_EVENTS) break;
    }
    if (!more || position === undefined) break;
    before = position;
  }
  const involved = new Set(about.flatMap(instancesOf));
  const firstAt = about.at(-1)?.at ?? Number.POSITIVE_INFINITY;
  const meanwhile = around.filter(
    (event) => event.at >= firstAt && instancesOf(event).some((id) => involved.has(id)),
  );
  return [...about, ...meanwhile].sort((a, b) => a.at - b.at).slice(-2 * MAX_EVENTS);
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
    lines.push(`Its lease expires in ${spanOf(expiresInMs)} unless it is renewed.`);
  if (result !== null)
    lines.push(
      `${result.state === undefined ? 'Last poll' : 'Its task'}: ${lastResultText(result, owner)}, by ${shortName(result.by)}.`,
    );
  const happened = events.map(({ position: _, at, instance, event, ...facts }) => [
    `  ${agoText(at, nowMs)}`,
    shortName(instance),
    sentenceOf(event, facts, instance),
  ]);
  const history =
    happened.length === 0
      ? '\nThe shared log has no event about it.\n'
      : `\nLatest events:\n${table(happened.map((row) => row.map(printable)))}`;
  return `${lines.map((line) => `${printable(line)}\n`).join('')}${history}`;
}
