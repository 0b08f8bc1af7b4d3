import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  attemptOf,
  progressFacts,
  progressLine,
  REASON_MEANS,
  reasonText,
  stateWord,
  toneOf,
} from '../../dashboard/src/data/session-words.ts';
import { since } from '../../dashboard/src/data/since.ts';
import { spanOf } from '../../dashboard/src/data/words.ts';
import { startCommand, stopCommand } from '../../dashboard/src/views/sessions/commands.ts';
import {
  changedBy,
  countsByState,
  filtered,
  latest,
  withSession,
} from '../../dashboard/src/views/sessions/session-list.ts';
import { barsOf, quantile, StartTimes } from '../../dashboard/src/views/sessions/start-times.ts';
import type { ApiEvent, ApiSession, LiveSession } from '../../src/client/messages.ts';

function live(id: string, facts: Partial<LiveSession> = {}): LiveSession {
  const common = { tenant: 'default', profile: 'default', outcome: null, slot: null, clients: 1 };
  const times = { createdAt: '2026-11-16T00:00:00Z', changedAt: '2026-11-16T00:00:00Z' };
  const state = { state: 'RUNNING', reason: null, worker: null, revision: 1, losses: 0 } as const;
  const named = { key: `ref-${id}`, serviceRef: `ref-${id}`, failures: 0 };
  return { id, kind: 'live', ...named, ...common, ...times, ...state, ...facts };
}

function happened(event: string, at: number, facts: object = {}): ApiEvent {
  return { position: String(at), at, instance: 'ana-1-00000000', event, ...facts };
}

async function* all(...sessions: ApiSession[]): AsyncGenerator<ApiSession> {
  yield* sessions;
}

describe('a list of sessions', () => {
  it('has those that intents started, as many as are wanted, and says if there are more', async () => {
    const polled: ApiSession = { id: 'p', kind: 'poll', isPaused: false, revision: 1 };
    const some = await latest(all(live('a'), polled, live('b'), live('c')), 2);
    expect(some.sessions.map(({ id }) => id)).toEqual(['a', 'b']);
    expect(some.hasMore).toBe(true);
    expect((await latest(all(live('a'), live('b')), 2)).hasMore).toBe(false);
  });

  it('changes one where it stands, puts a new one in front, and drops one that is gone', () => {
    const list = { sessions: [live('a'), live('b')], hasMore: false };
    const states = withSession(list, 'b', live('b', { state: 'ENDED' })).sessions;
    expect(states.map(({ id, state }) => [id, state])).toEqual([
      ['a', 'RUNNING'],
      ['b', 'ENDED'],
    ]);
    expect(withSession(list, 'c', live('c')).sessions.map(({ id }) => id)).toEqual(['c', 'a', 'b']);
    expect(withSession(list, 'a', null).sessions.map(({ id }) => id)).toEqual(['b']);
    const polled: ApiSession = { id: 'p', kind: 'poll', isPaused: false, revision: 1 };
    expect(withSession(list, 'p', polled)).toBe(list);
  });

  it('asks again only for what events are about, once each', () => {
    const events = [
      happened('session.advanced', 1, { session: 'a' }),
      happened('pipeline.started', 2, { session: 'a' }),
      happened('intent.accepted', 3, { session: 'b' }),
      happened('worker.stalled', 4),
    ];
    expect([...changedBy(events)]).toEqual(['a', 'b']);
  });

  it('can be filtered by state, kind and text, and counted by state', () => {
    const sessions = [
      live('a', { worker: 'ben-1-00000000' }),
      live('b', { state: 'ENDED', reason: 'R_NO_TUNER' }),
    ];
    const ids = (filter: object) =>
      filtered(sessions, { state: '', kind: '', text: '', ...filter }).map(({ id }) => id);
    expect(ids({ state: 'ENDED' })).toEqual(['b']);
    expect(ids({ kind: 'vod' })).toEqual([]);
    expect(ids({ text: 'no_tuner' })).toEqual(['b']);
    expect(ids({ text: 'BEN' })).toEqual(['a']);
    expect(ids({ text: 'ref-' })).toEqual(['a', 'b']);
    expect([...countsByState(sessions)]).toEqual([
      ['NEW', 0],
      ['STARTING', 0],
      ['RUNNING', 1],
      ['STOPPING', 0],
      ['ENDED', 1],
    ]);
  });

  it('says what every reason means that docs/intents.md has', () => {
    const page = readFileSync(new URL('../../docs/intents.md', import.meta.url), 'utf8');
    const documented = new Set(page.match(/\bR_[A-Z_]+/g));
    expect(Object.keys(REASON_MEANS).sort()).toEqual([...documented].sort());
  });

  it('says every reason as a sentence, and leaves other texts alone', () => {
    for (const [code, means] of Object.entries(REASON_MEANS)) {
      expect(reasonText(code)).toBe(means);
      expect(means).toMatch(/^[A-Z].*\.$/);
      expect(means).not.toContain('R_');
    }
    expect([reasonText('too loud'), reasonText('toString')]).toEqual(['too loud', 'toString']);
    expect([stateWord('NEW'), stateWord('constructor')]).toEqual(['Waiting', 'constructor']);
  });

  it.each([
    [{ runningForMs: 16_010 }, 'running for 16 s'],
    [{ frames_done: 1_204, isLive: true }, 'frames done 1,204 · is live yes'],
    ['half way', 'half way'],
    [42, '42'],
    [{ at: { x: 1 } }, 'at {"x":1}'],
    [{ Ms: 5 }, 'Ms 5 ms'],
    [undefined, ''],
    [null, ''],
  ])('progress %j reads: %s', (progress, line) => {
    expect(progressLine(progress, spanOf)).toBe(line);
  });

  it('a long report is cut: the rest is in its JSON', () => {
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`fact${i}`, i]));
    expect(progressFacts(many, spanOf)).toHaveLength(12);
    const long = 'x'.repeat(1_000_000);
    for (const value of [long, { long }, { nested: [long] }]) {
      expect(progressFacts(value, spanOf)[0]?.value.length).toBeLessThan(310);
      expect(progressLine(value, spanOf).length).toBeLessThan(210);
    }
  });

  it('B-11 the attempt counts lost workers and failures', () => {
    expect(attemptOf({ losses: 0, failures: 0 })).toBe(1);
    expect(attemptOf({ losses: 1, failures: 2 })).toBe(4);
  });

  it('marks what ended otherwise than it should', () => {
    expect(toneOf({ state: 'ENDED', reason: 'R_STOPPED' })).toBe('');
    expect(toneOf({ state: 'ENDED', reason: 'R_NO_TUNER' })).toBe('bad');
    expect(toneOf({ state: 'RUNNING', reason: null })).toBe('good');
    expect(toneOf({ state: 'NEW', reason: null })).toBe('warn');
  });
});

describe('what has come', () => {
  const [a, b, c] = [1, 2, 3].map((at) => happened('session.advanced', at)) as [
    ApiEvent,
    ApiEvent,
    ApiEvent,
  ];

  it('is what stands behind the last that was seen', () => {
    expect(since([a, b, c], a)).toEqual([b, c]);
    expect(since([a, b, c], c)).toEqual([]);
  });

  it('is everything, where nothing was seen, or the last that was is not kept any more', () => {
    expect(since([a, b], undefined)).toEqual([a, b]);
    expect(since([b, c], a)).toEqual([b, c]);
  });
});

describe('how long starts take', () => {
  it('is from the first time it was accepted until it first ran', () => {
    const times = new StartTimes();
    times.add([
      happened('intent.accepted', 100, { session: 'a', type: 'stream.start' }),
      happened('intent.accepted', 150, { session: 'a', type: 'stream.start' }),
      happened('pipeline.started', 340, { session: 'a' }),
    ]);
    times.add([
      happened('pipeline.started', 340, { session: 'a' }),
      happened('pipeline.started', 9_000, { session: 'a' }),
    ]);
    expect(times.tookMs).toEqual([240]);
  });

  it('is not counted for stops, for what was accepted before the log begins, and never less than nothing', () => {
    const times = new StartTimes();
    times.add([
      happened('intent.accepted', 100, { session: 'a', type: 'stream.stop' }),
      happened('pipeline.started', 200, { session: 'a' }),
      happened('pipeline.started', 200, { session: 'unknown' }),
      happened('intent.accepted', 300, { session: 'b', type: 'vod.start' }),
      happened('pipeline.started', 298, { session: 'b' }),
    ]);
    expect(times.tookMs).toEqual([0]);
  });

  it('has quantiles that are among what was measured', () => {
    const sorted = Array.from({ length: 100 }, (_, i) => i + 1);
    expect([quantile(sorted, 0.5), quantile(sorted, 0.95)]).toEqual([50, 95]);
    expect(quantile([7], 0.95)).toBe(7);
    expect(quantile([], 0.5)).toBeNull();
  });

  it('falls into bars, the last of which has no end', () => {
    const bars = barsOf([1, 50, 51, 1_000_000]);
    expect(bars[0]).toBe(2);
    expect(bars[1]).toBe(1);
    expect(bars.at(-1)).toBe(1);
  });
});

describe('as a command', () => {
  const asker = { client: 'admin', tenant: null };

  it('a start is what one would type', () => {
    const start = { kind: 'live', ref: '1:0:19:283D:', profile: '', startMs: 0 } as const;
    expect(startCommand(start, asker)).toBe('holdfast intents start --client admin 1:0:19:283D:');
    const vod = { kind: 'vod', ref: 'my film', profile: 'hd', startMs: 90_000 } as const;
    expect(startCommand(vod, { client: 'admin', tenant: 'acme' })).toBe(
      "holdfast intents start --recording --at 90000ms --profile hd --client admin --tenant acme 'my film'",
    );
  });

  it('what looks like an option is not taken for one', () => {
    const start = { kind: 'live', ref: '--force', profile: '', startMs: 0 } as const;
    expect(startCommand(start, asker)).toBe('holdfast intents start --client admin -- --force');
  });

  it('a stop is, too', () => {
    expect(stopCommand('a-b', asker, true)).toBe(
      'holdfast intents stop --force --client admin a-b',
    );
  });
});
