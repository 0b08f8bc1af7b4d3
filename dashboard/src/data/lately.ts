/**
 * Recent activity, in as few lines as possible: the targets that one instance took from another at about the same time are one line, and what
 * several instances report of one instance is reported once.
 */
import { effect, signal, untracked } from '@preact/signals';
import type { ApiEvent } from '../../../src/client/messages.ts';
import { readGap } from '../../../src/core/gap.ts';
import { events, eventVersion } from './events.ts';

export type News =
  | {
      readonly kind: 'taken';
      readonly key: string;
      readonly at: number;
      readonly by: string;
      readonly from: string | null;
      readonly how: string;
      readonly count: number;
      /** The longest of the gaps. */
      readonly gapMs: number;
    }
  | {
      readonly kind: 'member';
      readonly key: string;
      readonly at: number;
      readonly member: string;
      readonly what: string;
    };

/** Events that are no further apart than this are one line. */
const TOGETHER_MS = 4_000;
const MOST_KEPT = 20;

/** In order of time, the latest first. */
export const lately = signal<readonly News[]>([]);

let lastPosition: string | undefined;

function readNew(): void {
  let first = events.length;
  while (first > 0 && events[first - 1]?.position !== lastPosition) first--;
  lastPosition = events.at(-1)?.position;
  let news = lately.value;
  for (const event of events.slice(first)) news = withNews(news, newsOf(event));
  if (news === lately.value) return;
  // Instances write in batches: what comes later in the log may have happened before.
  lately.value = [...news].sort((a, b) => b.at - a.at).slice(0, MOST_KEPT);
}

function withNews(news: readonly News[], one: News | null): readonly News[] {
  if (one === null) return news;
  const same = news.find(({ key, at }) => key === one.key && Math.abs(one.at - at) < TOGETHER_MS);
  if (same === undefined) return [one, ...news];
  if (same.kind !== 'taken' || one.kind !== 'taken') return news;
  const joined = {
    ...one,
    at: Math.max(same.at, one.at),
    count: same.count + one.count,
    gapMs: Math.max(same.gapMs, one.gapMs),
  };
  return news.map((other) => (other === same ? joined : other));
}

const MEMBER_NEWS: Readonly<Record<string, string>> = {
  'member.joined': 'joined',
  'member.draining': 'is draining: it hands over its targets',
  'member.undrained': 'has stopped draining',
};

function newsOf(event: ApiEvent): News | null {
  const { at, instance } = event;
  if (event.event === 'target.taken') return takenOf(event);
  if (typeof event.member !== 'string') return null;
  const gone = event.reason === 'expired' ? 'is gone: its heartbeat expired' : 'has stopped';
  const what = event.event === 'member.left' ? gone : MEMBER_NEWS[event.event];
  if (what === undefined) return null;
  const member = event.member;
  // Every other instance reports it; what an instance says of itself when it starts adds nothing.
  if (event.event === 'member.joined' && member === instance) return null;
  return { kind: 'member', key: `${event.event} ${member}`, at, member, what };
}

function takenOf({ at, instance, from, how, ...facts }: ApiEvent): News {
  const former = typeof from === 'string' && from !== '' ? from : null;
  return {
    kind: 'taken',
    key: `${instance} ${String(former)} ${String(how)}`,
    at,
    by: instance,
    from: former,
    how: String(how),
    count: 1,
    gapMs: readGap(facts).gapMs,
  };
}

// At the end of the file: it runs at once, and needs all of the above.
effect(() => {
  eventVersion.value;
  untracked(readNew);
});
