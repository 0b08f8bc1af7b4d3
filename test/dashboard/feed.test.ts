import { describe, expect, it } from 'vitest';
import { sentenceFor } from '../../dashboard/src/data/sentence.ts';
import { rememberSessions } from '../../dashboard/src/data/session-names.ts';
import { latestFirst } from '../../dashboard/src/data/time-order.ts';
import { Strip } from '../../dashboard/src/views/feed/strip.ts';
import {
  commandOf,
  EVENT_NAMES,
  historyQuery,
  isKnownEvent,
  isWanted,
  levelOf,
  wishOf,
} from '../../dashboard/src/views/feed/wish.ts';
import { ANA, BOB, entry, HANDOVER, lease } from '../support/log-entries.ts';

const everything = { event: '', member: '', target: '', text: '' };

describe('the filter of the log', () => {
  it('is what stands in the address', () => {
    const query = new URLSearchParams('event=lease&member=ana&target=t&text=%20took%20');
    expect(wishOf(query)).toEqual({ event: 'lease', member: 'ana', target: 't', text: 'took' });
    expect(wishOf(new URLSearchParams())).toEqual(everything);
  });

  it.each([
    [{ event: 'lease' }, 3],
    [{ event: 'lease.acquired' }, 2],
    [{ event: 'leas' }, 0],
    [{ member: 'bob' }, 3],
    [{ target: 't' }, 4],
    [{ target: 'other' }, 0],
    [{ text: 'HANDED' }, 1],
    [{ text: 'bbbbbbbb', event: 'target' }, 1],
  ])('%j: %d of a handover', (some, count) => {
    const wish = { ...everything, ...some };
    expect(HANDOVER.filter((event) => isWanted(wish, event))).toHaveLength(count);
  });

  it('the server gets the whole filter except for the text', () => {
    const wish = { event: 'lease', member: '', target: 't', text: 'x' };
    expect(historyQuery(wish)).toEqual({ event: 'lease', target: 't' });
  });

  it('a terminal shows the same', () => {
    expect(commandOf(everything)).toBe('holdfast watch --since 5m');
    expect(commandOf({ event: 'lease.lost', member: 'ana', target: 't', text: "it's" })).toBe(
      "holdfast watch --since 5m --event lease.lost --member ana --target t | grep -i -- 'it'\\''s'",
    );
  });

  it('names of events and what they begin with are known, others are not', () => {
    expect(EVENT_NAMES).toEqual(expect.arrayContaining(['lease', 'lease.lost', 'target.taken']));
    expect([isKnownEvent(''), isKnownEvent('lease'), isKnownEvent('lea')]).toEqual([
      ...[true, true, false],
    ]);
  });

  it('an event of a later version is shown by its name', () => {
    const event = entry('moon.risen', 1, ANA);
    expect([sentenceFor(event), levelOf(event)]).toEqual(['moon.risen', 'info']);
  });
});

describe('an event in words', () => {
  const SESSION = '70208505-95af-4c46-ad3c-c4f4c2a3142d';

  it('names instances by their names, not by their ids', () => {
    const [, handed] = HANDOVER;
    if (handed === undefined) throw new Error('there is one');
    expect(sentenceFor(handed)).toBe('handed t to bob');
  });

  it('says what a session runs once that is known, and the start of its id before', () => {
    const event = entry('pipeline.started', 1, ANA, { session: SESSION, slot: null });
    expect(sentenceFor(event)).toBe('runs session 70208505');
    const common = { tenant: 'default', profile: 'default', outcome: null, slot: null, clients: 1 };
    const times = { createdAt: '2026-11-16T00:00:00Z', changedAt: '2026-11-16T00:00:00Z' };
    const state = { state: 'RUNNING', reason: null, worker: null, revision: 1, losses: 0 } as const;
    const ref = { key: 'harbour-cam', serviceRef: 'harbour-cam', failures: 0 };
    const live = { kind: 'live', ...ref } as const;
    rememberSessions([{ id: SESSION, ...live, ...common, ...times, ...state }]);
    expect(sentenceFor(event)).toBe('runs session harbour-cam');
  });

  it('has sentences instead of codes', () => {
    const ended = { session: 's', state: 'ENDED', reason: 'R_STOPPED' };
    expect(sentenceFor(entry('session.advanced', 1, ANA, ended))).toBe(
      'set session s to Ended (Its last client stopped it.)',
    );
    const lost = lease('lost', 1, ANA, 1, { reason: 'taken_over', heldForMs: 5_000 });
    expect(sentenceFor(lost)).toBe('lost t after 5 s: the store names another owner');
  });

  it('an instance that tells of itself is not named', () => {
    expect(sentenceFor(entry('member.joined', 1, ANA, { member: ANA }))).toBe('joined');
    expect(sentenceFor(entry('member.joined', 1, BOB, { member: ANA }))).toBe('ana joined');
  });
});

it('events are shown in order of time, the latest first, whatever the order of the log', () => {
  const events = [3, 1, 2, 2].map((at) => lease('acquired', at, ANA, at));
  expect(latestFirst(events).map(({ at }) => at)).toEqual([3, 2, 2, 1]);
  expect(latestFirst(events)[1]).toBe(events[2]);
});

describe('the strip of events', () => {
  const events = [1, 2, 3].map((i) => lease('acquired', i, ANA, i));
  const none = new Set<string>();
  const times = ({ items }: Strip) =>
    items.map((item) => (item.kind === 'event' ? item.event.at : 'gap'));

  it('has the latest first, and the past behind', () => {
    const strip = new Strip();
    strip.push(events, none);
    strip.append([lease('acquired', 0, ANA, 0)], undefined);
    expect(times(strip)).toEqual([3, 2, 1, 0]);
    expect(strip.isWhole).toBe(true);
  });

  it('is in order of time, even if an instance writes late', () => {
    const strip = new Strip();
    strip.push([lease('acquired', 30, ANA, 1), lease('acquired', 20, BOB, 2)], none);
    strip.append([lease('acquired', 5, ANA, 3), lease('acquired', 25, BOB, 4)], undefined);
    strip.push([lease('acquired', 28, BOB, 5)], none);
    expect(times(strip)).toEqual([30, 28, 25, 20, 5]);
  });

  it('while it is held, what is new is counted and does not move the rest', () => {
    const strip = new Strip();
    strip.push(events.slice(0, 1), none);
    strip.hold(true);
    strip.push(events, none);
    expect([times(strip), strip.aside]).toEqual([[1], 2]);
    strip.hold(false);
    expect([times(strip), strip.aside]).toEqual([[3, 2, 1], 0]);
  });

  it('what the page had already, and a page of the past has again, is there once', () => {
    const strip = new Strip();
    strip.push(events, none);
    strip.append([...events].reverse(), 'x');
    expect(times(strip)).toEqual([3, 2, 1]);
    expect([strip.before, strip.isWhole]).toEqual(['x', false]);
  });

  it('asks for older events by the order of the log, not by their times', () => {
    const strip = new Strip();
    strip.append([], undefined);
    const many = Array.from({ length: 20_001 }, (_, i) => lease('acquired', -i, BOB, i));
    strip.push(many, none);
    expect([strip.isWhole, strip.before]).toEqual([false, many[1]?.position]);
  });

  it('shows where something is missing', () => {
    const strip = new Strip();
    strip.push(events, new Set([events[1]?.position ?? '']));
    expect(times(strip)).toEqual([3, 'gap', 2, 1]);
  });

  it('drops the oldest of very many, which can be fetched again', () => {
    const strip = new Strip();
    strip.append([], undefined);
    const many = Array.from({ length: 20_010 }, (_, i) => lease('acquired', i, BOB, i));
    strip.push(many, none);
    expect(strip.items).toHaveLength(20_000);
    expect([strip.isWhole, strip.before]).toEqual([false, many[10]?.position]);
    strip.append([...many.slice(0, 10)].reverse(), undefined);
    expect(times(strip).at(-1)).toBe(0);
  });
});
