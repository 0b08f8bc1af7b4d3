import { describe, expect, it } from 'vitest';
import { readSinkRecords, type SinkRecord } from '../../src/incident/sink-records.ts';
import { type VerifyOptions, verify } from '../../src/incident/verify.ts';
import { fenceAt, LogWriter, lease, NOON, TTL_MS } from './logged.ts';

const TOLERANCE_MS = 1_000;

function found(log: LogWriter, options: Partial<VerifyOptions> = {}) {
  const { contradictions, unclear } = verify(log.events, { toleranceMs: TOLERANCE_MS, ...options });
  return { contradictions, unclear };
}

/** What contradicts, and what is unclear, by kind. */
function kinds(log: LogWriter, options: Partial<VerifyOptions> = {}): [string[], string[]] {
  const { contradictions, unclear } = found(log, options);
  return [contradictions.map(({ kind }) => kind), unclear.map(({ kind }) => kind)];
}

function write(ms: number, fence: string, rest: Partial<SinkRecord> = {}): SinkRecord {
  const own = { at: NOON + ms, key: 'k', fence: Number(fence), accepted: true, sink: 's', line: 1 };
  return { ...own, ...rest };
}

/** Holders that follow each other, each for as long. */
function shifts(count: number, { everyMs = 10_000, skews = {} } = {}): LogWriter {
  const log = new LogWriter(skews);
  for (let i = 0; i < count; i++) {
    const [ms, instance] = [i * everyMs, `api-${(i % 2) + 1}`];
    log.acquired(ms, instance).ended('released', ms + everyMs - 10, instance, { since: ms });
  }
  return log;
}

describe('a clean log', () => {
  const clean: readonly (readonly [string, LogWriter])[] = [
    ['no event', new LogWriter()],
    ['one lease after the other', shifts(20)],
    ['a lease that another takes while the answer to its release is under way', shifts(20, {})],
    ['hosts whose clocks differ by a minute', shifts(20, { skews: { 'api-2': -60_000 } })],
    ['hosts whose clocks differ within the tolerance', shifts(2, { skews: { 'api-2': -900 } })],
    ['a killed holder', new LogWriter().acquired(0, 'a').acquired(TTL_MS + 100, 'b')],
    [
      'a transfer',
      new LogWriter()
        .acquired(0, 'a')
        .ended('transferred', 5_000, 'a', { since: 0, successor: 'b' })
        .acquired(5_003, 'b'),
    ],
    [
      'a lost lease, noticed by a frozen process a minute late',
      new LogWriter()
        .acquired(0, 'a')
        .acquired(31_000, 'b')
        .ended('lost', 28_500, 'a', { since: 0, lateMs: 60_000 }),
    ],
    [
      'a revocation that waits until the holder can no longer act',
      new LogWriter()
        .acquired(0, 'a')
        .add(5_000, 'ops', 'lease.revoked', revoked('a', 0, { force: false }))
        .ended('lost', 6_000, 'a', { since: 0, reason: 'revoked' })
        .acquired(30_000, 'b'),
    ],
    [
      'a reassertion after data loss',
      new LogWriter()
        .acquired(0, 'a')
        .add(4_000, 'a', 'store.forgot', { store: 'redis', why: 'restarted' })
        .add(4_100, 'a', 'lease.reasserted', lease('a', 'k', fenceAt(0)))
        .ended('released', 60_000, 'a', { since: 0 })
        .acquired(60_010, 'b'),
    ],
    [
      'a log that begins in the middle',
      new LogWriter().ended('released', 60_000, 'a', { since: 0 }).acquired(60_010, 'b'),
    ],
    [
      'an entry that was written twice',
      new LogWriter()
        .acquired(0, 'a')
        .acquired(0, 'a')
        .ended('released', 50, 'a', { since: 0 })
        .ended('released', 50, 'a', { since: 0 })
        .acquired(60, 'b'),
    ],
    [
      'a holder that presents its fence and goes on',
      new LogWriter()
        .acquired(0, 'a')
        .ended('lost', 20_000, 'a', { since: 0 })
        .acquired(20_500, 'a', { fence: fenceAt(0) })
        .ended('released', 40_000, 'a', { since: 0 })
        .acquired(40_010, 'b'),
    ],
    [
      'a dead worker whose leases are free at once',
      new LogWriter()
        .acquired(0, 'a')
        .acquired(5_000, 'b')
        .add(5_100, 'b', 'worker.reclaimed', { worker: 'w', predecessor: 'a', count: 1 })
        .add(9_000, 'a', 'member.left', { member: 'a' }),
    ],
    [
      'two keys, and one key in two keyspaces',
      new LogWriter()
        .acquired(0, 'a', { key: 'k' })
        .acquired(1, 'b', { key: 'l' })
        .add(10, 'c', 'lease.acquired', { ...lease('c', 'k', fenceAt(8)), leaseClass: 'lease' }),
    ],
    [
      'a workflow that was revoked, which frees it at once',
      new LogWriter()
        .add(0, 'a', 'lease.acquired', workflowLease('uuid-a', 0))
        .add(100, 'ops', 'workflow.revoked', { workflow: 'k', leaseId: 'uuid-a', reason: 'x' })
        .add(110, 'b', 'lease.acquired', workflowLease('uuid-b', 108))
        .add(200, 'a', 'lease.lost', {
          ...workflowLease('uuid-a', 0),
          ...{ heldForMs: 200, lateMs: 0 },
        }),
    ],
  ];

  it.each(clean)('B-29 has no contradiction: %s', (_, log) => {
    expect(found(log).contradictions).toEqual([]);
  });

  it.each(clean.filter(([name]) => !/workflow/.test(name)))(
    'B-29 has nothing unclear: %s',
    (_, log) => {
      expect(found(log).unclear).toEqual([]);
    },
  );
});

function revoked(holder: string, since: number, facts: object) {
  return { ...lease(holder, 'k', fenceAt(since)), reason: 'stuck', mayActForMs: 25_000, ...facts };
}

function workflowLease(holder: string, ms: number) {
  return { ...lease(holder, 'k', fenceAt(ms)), leaseClass: 'workflow', remainingMs: 300_000 };
}

describe('two tenures at once', () => {
  const overlap = () =>
    new LogWriter()
      .acquired(0, 'a')
      .acquired(10_000, 'b')
      .ended('released', 14_200, 'a', { since: 0 });

  it('B-29 are named, with their events and how long they lasted', () => {
    const { contradictions } = found(overlap());
    expect(contradictions).toMatchObject([
      { kind: 'overlap', key: 'k', leaseClass: 'poll', explanation: null },
    ]);
    const [first] = contradictions;
    expect(first?.text).toMatch(/^b was granted the key while a could still act, for 4\.19\d s$/);
    expect(first?.events.map(({ event, instance }) => [event, instance])).toEqual([
      ['lease.acquired', 'a'],
      ['lease.acquired', 'b'],
      ['lease.released', 'a'],
    ]);
  });

  it('B-29 are found in one process, and by a holder that never wrote of an end', () => {
    const inOne = new LogWriter()
      .acquired(0, 'a', { holder: 'a/1' })
      .acquired(500, 'a', { holder: 'a/2' })
      .ended('released', 600, 'a', { since: 0, holder: 'a/1' });
    expect(kinds(inOne)).toEqual([['overlap'], []]);
    const silent = new LogWriter()
      .acquired(0, 'a')
      .acquired(10_000, 'b')
      .add(20_000, 'a', 'member.draining', { member: 'a' });
    expect(kinds(silent)).toEqual([['overlap'], []]);
  });

  it('B-29 are found by the store’s clock, whatever the clocks of hosts show', () => {
    const skews = { b: -60_000 };
    const log = new LogWriter(skews);
    for (let i = 0; i < 5; i++)
      for (const instance of ['a', 'b'])
        log
          .acquired(i * 1_000, instance, { key: instance })
          .ended('released', i * 1_000 + 500, instance, { since: i * 1_000, key: instance });
    log
      .acquired(10_000, 'a')
      .acquired(20_000, 'b')
      .ended('released', 21_000, 'a', { since: 10_000 });
    const [first] = found(log).contradictions;
    expect(first?.lastedMs).toBeGreaterThan(900);
    expect(first?.lastedMs).toBeLessThan(1_100);
  });

  it('B-29 are unclear if the clocks disagree, and say so', () => {
    // Only the clock of b says that it had the key at the same time: its fence has the store's time.
    const log = shifts(2, { skews: { 'api-2': -5_000 } });
    const { contradictions, unclear } = found(log);
    expect(contradictions).toEqual([]);
    expect(unclear).toMatchObject([{ kind: 'overlap' }]);
    expect(unclear[0]?.explanation).toMatch(/clock of an instance and the clock of the store/);
    const { limits } = verify(log.events, { toleranceMs: 1_000 });
    expect(limits.join('\n')).toMatch(/too few grants to compare their clocks/);
  });

  it('B-29 are explained by the tolerance if no fence has the time', () => {
    const log = new LogWriter({ b: -800 })
      .acquired(0, 'a', { fence: '1' })
      .ended('released', 5_000, 'a', { since: 0, fence: '1' })
      .acquired(5_010, 'b', { fence: '2' });
    expect(kinds(log)).toEqual([[], []]);
    const { limits } = verify(log.events, { toleranceMs: 1_000 });
    expect(limits.join('\n')).toMatch(/1 times the order of two entries is within/);
    expect(kinds(log, { toleranceMs: 100 })).toEqual([['overlap'], []]);
  });

  it('B-29 are unclear if the first holder may have crashed after its release', () => {
    const log = new LogWriter().acquired(0, 'a').acquired(10_000, 'b');
    expect(kinds(log)).toEqual([[], ['overlap']]);
    expect(found(log).unclear[0]?.explanation).toMatch(/^the log of a ends before/);
    log.add(20_000, 'a', 'log.dropped', { count: 7 });
    expect(found(log).unclear[0]?.explanation).toMatch(/^a dropped entries/);
  });

  it('B-29 are permitted by a revocation with force, for as long as it said', () => {
    const log = (untilMs: number) =>
      new LogWriter()
        .acquired(0, 'a')
        .add(5_000, 'ops', 'lease.revoked', revoked('a', 0, { force: true }))
        .acquired(5_010, 'b')
        .ended('lost', untilMs, 'a', { since: 0, reason: 'revoked' });
    expect(kinds(log(9_000))).toEqual([[], ['overlap']]);
    expect(found(log(9_000)).unclear[0]?.explanation).toMatch(/revoked with force/);
    expect(kinds(log(90_000))).toEqual([['overlap'], []]);
  });

  it('B-29 are not blamed on a revocation of another holder', () => {
    const log = overlap().add(1, 'ops', 'lease.revoked', revoked('x', 0, { force: true }));
    expect(kinds(log)).toEqual([['overlap'], []]);
  });
});

describe('fences', () => {
  it('B-29 that fall are named', () => {
    const log = new LogWriter()
      .acquired(0, 'a', { fence: '90' })
      .ended('released', 1_000, 'a', { since: 0, fence: '90' })
      .acquired(60_000, 'b', { fence: '7' });
    const { contradictions } = found(log);
    expect(contradictions).toMatchObject([{ kind: 'fence-fell', key: 'k' }]);
    expect(contradictions[0]?.text).toBe('b was granted fence 7 after a had 90');
  });

  it('B-29 that fall after a failover to a server whose clock is behind are named', () => {
    const log = shifts(10).acquired(200_000, 'api-1', { fence: fenceAt(-3_600_000) });
    expect(kinds(log)).toEqual([['fence-fell'], []]);
  });

  it('B-29 that two holders share are named', () => {
    const log = new LogWriter()
      .acquired(0, 'a', { fence: '5' })
      .ended('released', 1_000, 'a', { since: 0, fence: '5' })
      .acquired(2_000, 'b', { fence: '5' });
    expect(kinds(log)).toEqual([['fence-shared'], []]);
  });

  it('B-29 may be learned of in another order than granted', () => {
    const log = new LogWriter().acquired(0, 'b', { fence: '8' }).acquired(300, 'a', { fence: '7' });
    expect(kinds(log)[0]).not.toContain('fence-fell');
  });
});

describe('writes that a sink accepted', () => {
  const log = () => shifts(3);
  const first = fenceAt(0);
  const second = fenceAt(10_000);

  it('B-29 inside their tenures are fine, and so are those that it refused', () => {
    const writes = [
      write(500, first),
      write(9_000, first),
      write(10_500, second),
      write(15_000, first, { accepted: false }),
    ];
    expect(kinds(log(), { writes })).toEqual([[], []]);
  });

  it.each([
    ['after the tenure', 15_000, first],
    ['before the grant', 5_000, second],
  ])('B-29 are named if they came %s', (_, ms, fence) => {
    const { contradictions } = found(log(), { writes: [write(ms, fence)] });
    expect(contradictions).toMatchObject([
      { kind: 'write-outside-tenure', key: 'k', writes: [{ line: 1 }] },
    ]);
    expect(contradictions[0]?.events.length).toBeGreaterThan(0);
  });

  it('B-29 are named if a killed holder’s write came after the next grant', () => {
    const killed = new LogWriter().acquired(0, 'a').acquired(31_000, 'b');
    expect(kinds(killed, { writes: [write(30_500, fenceAt(0))] })).toEqual([[], []]);
    const { contradictions } = found(killed, { writes: [write(33_000, fenceAt(0))] });
    expect(contradictions[0]?.text).toMatch(/1\.998 s after b had been granted the key$/);
  });

  it('B-29 may come until an abandoned lease expires', () => {
    const left = new LogWriter().acquired(0, 'a').ended('abandoned', 5_000, 'a', { since: 0 });
    expect(kinds(left, { writes: [write(34_000, fenceAt(0))] })).toEqual([[], []]);
    expect(kinds(left, { writes: [write(40_000, fenceAt(0))] })[0]).toHaveLength(1);
  });

  it('B-29 with a lower fence than before are named, in the order of each sink', () => {
    const writes = [write(10_500, second), write(10_600, first)];
    expect(kinds(log(), { writes })[0]).toContain('sink-went-back');
    const [one, other] = [write(10_500, second), write(9_900, first, { sink: 't' })];
    expect(kinds(log(), { writes: [one, other] })).toEqual([[], []]);
  });

  it('B-29 with a fence that the log does not know are counted', () => {
    const { contradictions, limits, writes } = verify(log().events, {
      toleranceMs: 1_000,
      writes: [write(5, '42'), write(5, '42', { key: 'unknown' })],
    });
    expect(contradictions).toEqual([]);
    expect(writes).toBe(2);
    expect(limits).toContain('2 accepted writes have a fence that the log does not know.');
  });
});

describe('what is asked for', () => {
  it('is one key, or a time, with what came before as context', () => {
    const log = new LogWriter()
      .acquired(0, 'a')
      .acquired(10_000, 'b')
      .ended('released', 14_200, 'a', { since: 0 });
    expect(kinds(log, { key: 'other' })).toEqual([[], []]);
    expect(kinds(log, { fromMs: NOON + 9_000, toMs: NOON + 11_000 })).toEqual([['overlap'], []]);
    expect(kinds(log, { fromMs: NOON + 11_000 })).toEqual([[], []]);
  });

  it('has its gaps named: what was dropped, trimmed, left open, and held over HTTP', () => {
    const log = new LogWriter()
      .acquired(0, 'a', { key: 'open' })
      .acquired(0, 'api', { key: 'remote', holder: 'python' })
      .ended('transferred', 1, 'api', {
        since: 0,
        ...{ key: 'remote', holder: 'python', successor: 'python' },
      })
      .acquired(5_000, 'b', { key: 'remote' })
      .add(9, 'c', 'log.dropped', { count: 12 });
    const { contradictions, unclear, limits } = verify(log.events, {
      toleranceMs: 1_000,
      isTrimmed: true,
    });
    expect([...contradictions, ...unclear]).toEqual([]);
    const text = limits.join('\n');
    expect(text).toMatch(/does not go back to the beginning/);
    expect(text).toMatch(/c could not write 12 entries/);
    expect(text).toMatch(/2 tenures have no end in the log.*\(open, remote\)/);
    expect(text).toMatch(/1 lease was granted over HTTP.*\(remote\)/);
    expect(text).toMatch(/No record of a sink/);
  });

  it('is bounded: of many findings it lists the first, and says so', () => {
    const log = new LogWriter();
    for (let i = 0; i < 250; i++) {
      log.acquired(i * 10, 'a', { key: `k${i}`, fence: '5' });
      log.acquired(i * 10 + 5_000, 'b', { key: `k${i}`, fence: '5' });
    }
    const { contradictions, limits } = verify(log.events, { toleranceMs: 1_000 });
    expect(contradictions).toHaveLength(200);
    expect(limits[0]).toMatch(/^Of 250 contradictions, the first 200 are listed/);
  });
});

describe('a record of a sink', () => {
  it('is one JSON object per line, with its time as a number or as text', () => {
    const text = [
      '{"at":1780315200000,"key":"k","fence":"1780315200000123","accepted":true}',
      '',
      '{"at":"2026-06-01T12:00:00Z","key":"k","fence":7,"accepted":false,"more":1}',
      '',
    ].join('\n');
    expect(readSinkRecords(text, 'w.jsonl')).toEqual([
      { ...write(0, '1780315200000123'), sink: 'w.jsonl', line: 1 },
      { ...write(0, '7', { accepted: false }), sink: 'w.jsonl', line: 3 },
    ]);
  });

  it.each([
    ['no', /line 1 is "no": each line is a JSON object/],
    ['[1]', /line 1 is/],
    ['{"at":"soon","key":"k","fence":1,"accepted":true}', /line 1: at is "soon": milliseconds/],
    ['{"at":1,"fence":1,"accepted":true}', /line 1: key is undefined: the key of the lease/],
    ['{"at":1,"key":"k","fence":-1,"accepted":true}', /line 1: fence is -1: the fence/],
    ['{"at":1,"key":"k","fence":1,"accepted":"yes"}', /line 1: accepted is "yes": true or false/],
  ])('is refused with its line, field, value and rule: %s', (text, message) => {
    expect(() => readSinkRecords(text, 'w.jsonl')).toThrow(message);
  });
});
