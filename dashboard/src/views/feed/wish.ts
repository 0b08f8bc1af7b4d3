/** The filters of the feed: as they stand in the address, as the server gets them, and as a command. */
import type { ApiEvent } from '../../../../src/client/messages.ts';
import type { HistoryQuery } from '../../../../src/client/operating-messages.ts';
import { isAboutMember, targetOf } from '../../../../src/telemetry/about.ts';
import { LEVELS, type LogLevel } from '../../../../src/telemetry/levels.ts';
import { sentenceFor } from '../../data/sentence.ts';
import { shellWord } from '../../data/words.ts';

export interface Wish {
  /** A name, or the part before the dot; '' for all, as of the others. */
  readonly event: string;
  readonly member: string;
  /** A target or a session. */
  readonly target: string;
  /** Any text in its words or facts. The dashboard searches for it, the server does not. */
  readonly text: string;
}

export function wishOf(query: URLSearchParams): Wish {
  const of = (name: string) => (query.get(name) ?? '').trim();
  return { event: of('event'), member: of('member'), target: of('target'), text: of('text') };
}

/** Names of events, and what several begin with. */
export const EVENT_NAMES: readonly string[] = [
  ...new Set(Object.keys(LEVELS).flatMap((name) => [name.split('.')[0] ?? name, name])),
].sort();

/** The server refuses what names no event; so does `holdfast watch`. */
export function isKnownEvent(name: string): boolean {
  return name === '' || EVENT_NAMES.includes(name);
}

export function isWanted(wish: Wish, event: ApiEvent): boolean {
  const { event: name, member, target, text } = wish;
  return (
    (name === '' || event.event === name || event.event.startsWith(`${name}.`)) &&
    (member === '' || isAboutMember(event, member)) &&
    (target === '' || targetOf(event) === target) &&
    (text === '' || hasText(event, text.toLowerCase()))
  );
}

function hasText(event: ApiEvent, text: string): boolean {
  return (
    sentenceFor(event).toLowerCase().includes(text) ||
    JSON.stringify(event).toLowerCase().includes(text)
  );
}

const LEVEL_OF = new Map<string, LogLevel>(Object.entries(LEVELS));

/** Events of later versions are told of as they come. */
export function levelOf({ event }: ApiEvent): LogLevel {
  return LEVEL_OF.get(event) ?? 'info';
}

export function historyQuery({ event, member, target }: Wish): HistoryQuery {
  return {
    ...(event !== '' && { event }),
    ...(member !== '' && { member }),
    ...(target !== '' && { target }),
  };
}

/** The same in a terminal. */
export function commandOf({ event, member, target, text }: Wish): string {
  const flags = Object.entries({ event, member, target })
    .filter(([, value]) => value !== '')
    .map(([name, value]) => ` --${name} ${shellWord(value)}`);
  const searched = text === '' ? '' : ` | grep -i -- ${shellWord(text)}`;
  return `holdfast watch --since 5m${flags.join('')}${searched}`;
}
