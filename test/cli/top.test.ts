import { beforeAll, describe, expect, it } from 'vitest';
import { drawTop, type Frame, type KeyState } from '../../src/cli/commands/top/drawing.ts';
import { NO_KEYS, pressed } from '../../src/cli/commands/top/keys.ts';
import { sharesOf } from '../../src/cli/commands/top/lines.ts';
import { MinuteMetrics } from '../../src/cli/commands/top/minute-metrics.ts';
import { type Moment, TopState } from '../../src/cli/commands/top/top-state.ts';
import type { FleetPicture, MemberView, PicturedTarget } from '../../src/fleet/watch/fleet.ts';
import type { LoggedEvent } from '../../src/telemetry/event-log.ts';
import fc from '../support/fast-check.ts';

// Times of day are those of whoever looks.
beforeAll(() => {
  process.env.TZ = 'UTC';
});

const AT = Date.UTC(2026, 10, 16, 14, 3, 22);
const NOW: Moment = { monotonicMs: 5_000, wallMs: AT };
const idOf = (name: string) => `${name}-1794735731650762000-0000000a`;
const later = (ms: number): Moment => ({ monotonicMs: NOW.monotonicMs + ms, wallMs: AT + ms });

function member(name: string, facts: Partial<MemberView> = {}): MemberView {
  return {
    ...{ id: idOf(name), name, weight: 1, isDraining: false, isForeign: false, startedAt: null },
    ...{ owned: 2, quota: 2, expiresInMs: 28_000, beatTtlMs: 30_000, version: '1.2.3' },
    vitals: {
      ...{ ttlMs: 30_000, renewEveryMs: 10_000, renewP50Ms: 1, renewP99Ms: 3.1, loopDelayMs: 2 },
    },
    ...facts,
  };
}

function target(id: string, owner: string | null, facts: Partial<PicturedTarget> = {}) {
  const whose = owner === null ? null : idOf(owner);
  return {
    ...{ id, owner: whose, planned: whose, preferred: whose, pinned: null },
    reason: owner === null ? ('free' as const) : ('kept' as const),
    expiresInMs: owner === null ? null : 20_000,
    ...facts,
  };
}

function picture(facts: Partial<FleetPicture> = {}): FleetPicture {
  return { at: AT, roundTripMs: 1.23, members: [], targets: [], ...facts };
}

function event(name: string, who: string, facts: Record<string, unknown> = {}): LoggedEvent {
  return { position: '1', at: AT - 1_000, instance: idOf(who), event: name, ...facts };
}

function board(...events: readonly LoggedEvent[]): TopState {
  const made = new TopState();
  made.update(
    {
      kind: 'picture',
      picture: picture({
        members: [
          member('ana', { owned: 3 }),
          member('ben', { owned: 1, isDraining: true, quota: 0, expiresInMs: 12_000 }),
          member('cleo', { owned: 0, vitals: null, beatTtlMs: null, version: null }),
        ],
        targets: [
          target('device-1', 'ana'),
          target('device-2', 'ana', { reason: 'late', expiresInMs: 4_200 }),
          target('device-3', 'ben', { reason: 'moving', planned: idOf('cleo') }),
          target('device-4', null, { planned: idOf('cleo') }),
          target('device-5', null, { reason: 'paused' }),
        ],
      }),
    },
    NOW,
  );
  for (const one of events) made.addEvent(one, NOW);
  return made;
}

function drawn(
  from: TopState,
  facts: Partial<Frame> = {},
  keys: Partial<KeyState> = {},
  now: Moment = NOW,
): string {
  const state = { ...NO_KEYS, ...keys };
  const frame = { ...{ columns: 80, rows: 24, store: 'sqlite:x.db', keys: state }, ...facts };
  const lines = drawTop(from.view(now, state), { style: (_, text) => text, ...frame });
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(frame.columns);
  expect(lines.length).toBeLessThanOrEqual(frame.rows);
  return `\n${lines.join('\n').trimEnd()}\n`;
}

const TAKEN = event('target.taken', 'ana', {
  ...{
    target: 'device-1',
    from: idOf('dan'),
    how: 'failover',
    gapMs: 30_014,
    silentMs: 30_000,
    wakeMs: 14,
    fence: '7',
  },
});

describe('the screen', () => {
  it('shows instances, what is not well, how much moves, and what happened', () => {
    const happened = [
      event('member.joined', 'cleo', { member: idOf('cleo') }),
      event('lease.acquired', 'ana', { leaseClass: 'poll', key: 'device-1', fence: '7' }),
      TAKEN,
      { ...TAKEN, target: 'device-2', fence: '8' },
      event('lease.lost', 'ben', {
        leaseClass: 'poll',
        key: 'device-4',
        reason: 'expired',
        heldForMs: 3_000,
      }),
    ];
    expect(drawn(board(...happened))).toBe(`
holdfast top  sqlite:x.db                                 data 0 s old  14:03:22
5 targets on 3 instances, 3 held, 1 unowned, 1 late, 1 moving, 1 paused
store 1.2 ms   0.0 transitions/s, 2 failovers, 0 handovers in the last minute

INSTANCE       STATE     OWNED                   BEAT  RENEW P99    LOOP
ana-0000000a   up        ████████████  3/2        2 s     3.1 ms  2.0 ms
ben-0000000a   draining  ████████████  1/0       18 s     3.1 ms  2.0 ms
cleo-0000000a  up        ░░░░░░░░░░░░  0/2  28 s left          -       -

TARGET    STATE  OWNER         FOR            ENDS IN
device-4  free   -             cleo-0000000a        -
device-2  late   ana-0000000a  ana-0000000a       4 s

WHAT HAPPENED
14:03:21  ben-0000000a   lost device-4 after 3 s: it was not renewed in time
14:03:21  ana-0000000a   took device-2 after a gap of 30.014 s, fr… (and 1 more)
14:03:21  cleo-0000000a  joined






q quit   / filter   s order: name   p pause   ? help
`);
  });

  it('tells what was handed over from what was taken over, and of what nobody had', () => {
    const took = event('lease.acquired', 'ana', {
      leaseClass: 'poll',
      key: 'device-9',
      fence: '9',
    });
    const shown = drawn(board(took, { ...TAKEN, how: 'handover' }, TAKEN, TAKEN));
    expect(shown).toMatch(/took device-1 after a gap of 30.014 s.* \(and 1 more\)\n/);
    expect(shown).toContain('took device-1 from dan-0000000a (handover)\n');
    expect(shown).toContain('took device-9\n');
  });

  it('leaves out columns where a terminal is narrow, and lines where it is low', () => {
    expect(drawn(board(TAKEN), { columns: 44, rows: 12 })).toBe(`
holdfast top  sqlit…  data 0 s old  14:03:22
5 targets on 3 instances, 3 held, 1 unowned…
store 1.2 ms   0.0 transitions/s, 1 failove…
INSTANCE       STATE               BEAT
ana-0000000a   up        3/2        2 s
… 2 more
TARGET    STATE  OWNER         ENDS IN
device-4  free   -                   -
device-2  late   ana-0000000a      4 s
WHAT HAPPENED
14:03:21  ana-0000000a  took device-1 after…
q quit   / filter   s order: name   p pause…
`);
  });

  it('fits into any terminal, whatever there is to show', () => {
    const name = fc.string({ minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 150 }),
        fc.integer({ min: 1, max: 50 }),
        fc.array(name, { maxLength: 30 }),
        (columns, rows, names) => {
          const made = new TopState();
          const members = names.map((id) => member('x', { id }));
          const targets = names.map((id) => target(id, null));
          made.update({ kind: 'picture', picture: picture({ members, targets }) }, NOW);
          for (const id of names) made.addEvent(event('session.added', 'x', { session: id }), NOW);
          const shown = drawn(made, { columns, rows });
          // biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point
          expect(shown).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
        },
      ),
    );
  });

  it('escapes what ids could do to a terminal', () => {
    const made = new TopState();
    const members = [member('x', { id: '\u001b[2Jx', version: '\u0007' })];
    made.update({ kind: 'picture', picture: picture({ members }) }, NOW);
    expect(drawn(made)).toContain('\\x1b[2Jx ');
  });

  it('says what to do where there is nothing to show', () => {
    const made = new TopState();
    expect(drawn(made)).toContain('no data yet');
    made.update({ kind: 'picture', picture: picture() }, NOW);
    const shown = drawn(made);
    expect(shown).toContain('No instance runs. Start one: holdfast up');
    expect(shown).toContain('There are no targets. Add one: holdfast targets add URL');
    expect(shown).toContain('Nothing has happened lately.');
  });

  it('says that the store is away, since when, and how old is what it shows', () => {
    const made = board();
    made.update({ kind: 'stalled', error: new Error('nobody listens') }, later(1_000));
    const shown = drawn(made, {}, {}, later(8_000));
    expect(shown).toContain('data 8 s old');
    expect(shown).toContain('the store does not answer, for 7 s: nobody listens');
    made.update({ kind: 'resumed' }, later(9_000));
    expect(drawn(made, {}, {}, later(9_000))).not.toContain('does not answer');
  });

  it('lets times run on between two pictures', () => {
    const shown = drawn(board(), {}, {}, later(3_000));
    expect(shown).toMatch(/^ana-0000000a .* 5 s /m);
    expect(shown).toMatch(/^device-2 .* 1 s$/m);
  });

  it('takes in what changes', () => {
    const made = board();
    const change = {
      ...{ at: AT + 1_000, roundTripMs: 12.3, removed: ['device-1', 'device-5'] },
      targets: [target('device-2', 'ana'), target('device-4', 'cleo')],
      members: [member('ana'), member('cleo')],
    };
    made.update({ kind: 'change', change }, later(1_000));
    const shown = drawn(made, {}, {}, later(1_000));
    expect(shown).toContain('3 targets on 2 instances, 3 held, 1 moving\n');
    expect(shown).toContain('store 13 ms');
    expect(shown).toContain('No target needs attention.');
  });

  it('with a filter shows all targets and instances that it names, and what happened to them', () => {
    const added = event('session.added', 'dan', { session: 'device-1' });
    const made = board(TAKEN, added, event('session.added', 'dan', { session: 'device-9' }));
    const shown = drawn(made, {}, { filter: 'device-1', isTyping: true });
    expect(shown).toContain('5 targets on 3 instances');
    expect(shown).toContain('No instance matches the filter.');
    expect(shown).toMatch(/^device-1 +kept /m);
    expect(shown).not.toContain('device-2');
    expect(shown).toContain('added device-1\n');
    expect(shown).toContain('/device-1▏');
    expect(drawn(made, {}, { filter: 'ben' })).toMatch(/^device-3 +moving +ben/m);
    expect(drawn(made, {}, { filter: 'zzz' })).toContain('No target matches the filter.');
  });

  it('has the instances in the order wanted', () => {
    const order = (by: KeyState['order']) =>
      [...drawn(board(), {}, { order: by }).matchAll(/^(ana|ben|cleo)-/gm)].map(([, name]) => name);
    expect(order('name')).toEqual(['ana', 'ben', 'cleo']);
    expect(order('owned')).toEqual(['ana', 'ben', 'cleo']);
    expect(order('heartbeat')).toEqual(['ben', 'ana', 'cleo']);
    expect(order('renewals')).toEqual(['ana', 'ben', 'cleo']);
  });

  it('stands still when it is told to, whatever comes', () => {
    const made = board();
    const frozen = made.copy();
    const before = drawn(frozen, {}, { isPaused: true });
    made.update({ kind: 'picture', picture: picture() }, later(1_000));
    made.addEvent(TAKEN, later(1_000));
    expect(drawn(frozen, {}, { isPaused: true })).toBe(before);
    expect(before).toMatch(/paused {2}data 0 s old {2}14:03:22$/m);
    expect(before).toContain('p continue');
  });

  it('shows what the keys do in the place of everything else', () => {
    const shown = drawn(board(), {}, { isHelp: true });
    expect(shown).toContain('q    quit, as Ctrl-C does');
    expect(shown).not.toContain('INSTANCE');
  });

  it('has colours only where they are wanted, and cuts what is seen, not what is not', () => {
    const view = board().view(NOW, NO_KEYS);
    const style = (name: string, text: string) => `<${name}>${text}</>`;
    const frame = { columns: 44, rows: 24, store: 'sqlite:x.db', keys: null, style };
    const [, counts] = drawTop(view, frame);
    expect(counts).toBe('5 targets on 3 instances, 3 held, <red>1 unowned</>…');
  });
});

describe('keys', () => {
  const after = (...inputs: readonly string[]) =>
    inputs.reduce<KeyState | null>((state, input) => state && pressed(state, input), NO_KEYS);

  it.each([
    ['q quits', ['q'], null],
    ['so does Ctrl-C, even while a filter is typed', ['/', '\u0003'], null],
    ['s changes the order', ['s'], { ...NO_KEYS, order: 'owned' as const }],
    ['s comes round', ['ssss'], NO_KEYS],
    ['p pauses', ['p'], { ...NO_KEYS, isPaused: true }],
    ['p again continues', ['pp'], NO_KEYS],
    ['? helps', ['?'], { ...NO_KEYS, isHelp: true }],
    ['/ filters', ['/dev', 'iceq'], { ...NO_KEYS, filter: 'deviceq', isTyping: true }],
    ['Enter keeps the filter', ['/a\r'], { ...NO_KEYS, filter: 'a' }],
    ['Backspace takes back', ['/ab\u007f\r'], { ...NO_KEYS, filter: 'a' }],
    ['Esc clears it', ['/ab', '\u001b'], NO_KEYS],
    ['Esc clears it afterwards', ['/ab\r', '\u001b'], NO_KEYS],
    ['arrows and function keys do nothing', ['\u001b[A', '\u001bOP', '\u001b[15~'], NO_KEYS],
    ['characters that no name has are not typed', ['/a\u0001 \tb\r'], { ...NO_KEYS, filter: 'ab' }],
    ['other keys do nothing', ['xyz'], NO_KEYS],
  ])('%s', (_, inputs, expected) => {
    expect(after(...inputs)).toEqual(expected);
  });
});

describe('what happened in the last minute', () => {
  it('is counted, and forgotten after it', () => {
    const minute = new MinuteMetrics();
    minute.add(AT, AT);
    minute.add(AT - 59_000, AT);
    minute.add(AT - 61_000, AT);
    // By the clock of somebody whose clock is ahead.
    minute.add(AT + 5_000, AT);
    expect(minute.count(AT)).toBe(3);
    expect(minute.perSecond(AT)).toBe(0.05);
    expect(minute.count(AT + 30_000)).toBe(2);
    expect(minute.count(AT + 60_000)).toBe(0);
  });

  it('is not counted twice where two instances tell of it', () => {
    const left = (who: string) =>
      event('member.left', who, { member: idOf('dan'), reason: 'expired' });
    const shown = drawn(board(left('ana'), left('ben')));
    expect(shown.match(/dan-0000000a is gone/g)).toHaveLength(1);
  });
});

it('lines are shared so that who wants few has them all', () => {
  expect(sharesOf(10, [2, 3, 50])).toEqual([2, 3, 5]);
  expect(sharesOf(10, [50, 50, 1])).toEqual([4, 5, 1]);
  expect(sharesOf(0, [1, 2])).toEqual([0, 0]);
  expect(sharesOf(-3, [1, 2])).toEqual([0, 0]);
});
