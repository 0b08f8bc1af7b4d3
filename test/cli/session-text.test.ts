import { describe, expect, it } from 'vitest';
import {
  describedSession,
  SESSION_HEAD,
  sessionJson,
  sessionRow,
} from '../../src/cli/commands/sessions/session-text.ts';
import type { IntentSession } from '../../src/intents/intent-session.ts';

const NOW_MS = Date.UTC(2026, 10, 15, 12);

const RUNNING: IntentSession = {
  ...{ id: 's-1', tenant: 'default', state: 'RUNNING', revision: 3, clients: 2 },
  ...{ type: 'stream.start', kind: 'live', target: 'channel-7', profile: 'hd', bucket: '0' },
  ...{ reason: null, outcome: null, worker: 'ana-1794739370398838000-9b0251db', slot: 'tuner:2' },
  ...{ createdAtMs: NOW_MS - 90_000, changedAtMs: NOW_MS - 1_000 },
  ...{ progress: { frames: 250 }, losses: 1, group: { group: 4_711, startedTicks: 9 } },
};

const ENDED: IntentSession = {
  ...{ ...RUNNING, state: 'ENDED', reason: 'R_PIPELINE_FAILED', outcome: 'FAILED' },
  detail: { tookMs: 61_000, code: 1, signal: null, output: ['opening\u001b[2J', 'no signal'] },
};

/** A row by its titles. */
function row(session: IntentSession): Record<string, string> {
  const cells = sessionRow(session, NOW_MS);
  return Object.fromEntries(SESSION_HEAD.map((title, i) => [title, cells[i] ?? '']));
}

describe('a session in a list', () => {
  it('shows its slot, its worker by its short name, how old it is and how far', () => {
    expect(row(RUNNING)).toEqual({
      ...{ ID: 's-1', STATE: 'RUNNING', REASON: '-', KIND: 'live', KEY: 'channel-7' },
      PARAMS: 'hd',
      ...{ CLIENTS: '2', AGE: '1 min 30 s', SLOT: 'tuner:2', WORKER: 'ana-9b0251db' },
      PROGRESS: '{"frames":250}',
    });
  });

  it('that waits has neither yet', () => {
    const { progress, ...rest } = RUNNING;
    const waiting = { ...rest, state: 'NEW', worker: null, slot: null } as const;
    expect(row(waiting)).toMatchObject({ SLOT: '-', WORKER: '-', PROGRESS: '-' });
  });

  it.each([
    [{ code: 1, tookMs: 61_000 }, 'exit 1, ran 1 min 1 s'],
    [{ signal: 'SIGKILL', code: null, tookMs: 900 }, 'SIGKILL, ran 900 ms'],
    [{ error: 'no such channel', tookMs: 5 }, 'no such channel, ran 5 ms'],
    [{ tookMs: 5, result: 7 }, 'ran 5 ms'],
    [{ why: 'all 4 slots of tuners are taken' }, 'all 4 slots of tuners are taken'],
    [{}, '-'],
  ])('that has ended with %j says %s', (detail, words) => {
    expect(row({ ...ENDED, detail })).toMatchObject({ PROGRESS: words });
  });

  it('cuts off what is too long for a list', () => {
    const long = row({ ...RUNNING, progress: 'x'.repeat(100) }).PROGRESS;
    expect([long?.length, long?.at(-1)]).toEqual([40, '…']);
  });
});

describe('all about a session', () => {
  it('says how its pipeline ended, with its last lines, and nothing that would act on a terminal', () => {
    const text = describedSession(ENDED);
    expect(text).toMatch(/^reason +R_PIPELINE_FAILED$/m);
    expect(text).toMatch(/^losses +its worker was lost 1 time$/m);
    expect(text).toMatch(/^ran for +1 min 1 s$/m);
    expect(text).toMatch(/^exit code +1$/m);
    expect(text).toMatch(/^last lines +opening\\x1b\[2J\n +no signal$/m);
    expect(text).not.toContain('\u001b');
  });

  it('says why a function failed or what it returned, and what else there is', () => {
    const failed = describedSession({ ...ENDED, detail: { error: 'boom', lost: 'tuner:2' } });
    expect(failed).toMatch(/^error +boom\nlost +tuner:2$/m);
    const done = describedSession({ ...ENDED, detail: { result: { pages: 3 } } });
    expect(done).toMatch(/^result +\{"pages":3\}$/m);
  });

  it('as JSON has all of it', () => {
    expect(sessionJson(ENDED)).toMatchObject({
      ...{ id: 's-1', serviceRef: 'channel-7', slot: 'tuner:2', losses: 1 },
      ...{ progress: { frames: 250 }, group: { group: 4_711 }, detail: { code: 1 } },
    });
  });
});
