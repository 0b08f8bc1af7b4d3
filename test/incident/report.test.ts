import { describe, expect, it } from 'vitest';
import { incidentReport, MAX_KEYS } from '../../src/incident/report.ts';
import { reportPage } from '../../src/incident/report-page.ts';
import { ZonedClock } from '../../src/incident/zoned-clock.ts';
import { fenceAt, LogWriter, lease, NOON } from './logged.ts';

const FROM = NOON - 60_000;
const TO = NOON + 600_000;
const ANA = 'ana-1795061482905439000-8a6b5b95';
const BEN = 'ben-1795061482905439000-11111111';

function made(log: LogWriter, rest: { key?: string; isTrimmed?: boolean } = {}) {
  return incidentReport(log.events, { fromMs: FROM, toMs: TO, isTrimmed: false, ...rest });
}

function page(log: LogWriter): string {
  const time = new ZonedClock('Europe/Berlin');
  return reportPage(made(log), { time, madeAtMs: TO, narrow: 'give --key' });
}

/** ana is killed, ben takes over after 31 s and stands still, ana's successor takes over from it. */
function incident(): LogWriter {
  return new LogWriter()
    .acquired(0, ANA, { key: 'device-7' })
    .add(20_000, ANA, 'lease.uncertain', {
      ...lease(ANA, 'device-7', fenceAt(0)),
      reason: 'renewal_failed',
    })
    .add(21_000, ANA, 'lease.confirmed', lease(ANA, 'device-7', fenceAt(0)))
    .acquired(60_000, BEN, { key: 'device-7' })
    .add(60_003, BEN, 'target.taken', {
      ...{ target: 'device-7', fence: fenceAt(60_000), from: ANA, how: 'failover' },
      ...{ gapMs: 31_000, silentMs: 30_000, wakeMs: 990, grantMs: 10 },
    })
    .add(62_000, BEN, 'member.left', { member: ANA, reason: 'expired' })
    .add(70_000, 'cli', 'operator.acted', {
      ...{ action: 'member.drain', subject: BEN, to: null, by: 'cli:eva@host', reason: null },
    })
    .ended('lost', 130_000, BEN, { since: 60_000, key: 'device-7', lateMs: 40_000 })
    .add(200_000, BEN, 'store.quarantined', { store: 'redis', keyspace: 'poll', leftMs: 30_000 });
}

describe('a report', () => {
  it('has who held what, gaps, doubts, standstills, acts and trouble', () => {
    const report = made(incident());
    expect(report.keys).toMatchObject([{ key: 'device-7', leaseClass: 'poll' }]);
    expect(report.keys[0]?.tenures).toMatchObject([
      // The killed holder: its last renewal was when the gap began.
      { instance: ANA, fromMs: NOON + 2, untilMs: NOON + 60_002 - 31_000, isOpen: true },
      { instance: BEN, untilMs: NOON + 130_000, isOpen: false, how: 'lost', reason: 'expired' },
    ]);
    expect(report.gaps).toMatchObject([{ target: 'device-7', gapMs: 31_000, from: ANA, to: BEN }]);
    expect(report.doubts).toMatchObject([{ instance: ANA, keys: ['device-7'] }]);
    expect(report.standstills).toMatchObject([{ instance: BEN, lastedMs: 40_000, lost: 1 }]);
    expect(report.acts).toMatchObject([{ event: 'operator.acted' }]);
    expect(report.trouble).toMatchObject([{ event: 'store.quarantined' }]);
    expect(report.verification.contradictions).toEqual([]);
    expect(report.leftOut.keys).toBe(0);
  });

  it('B-26 has a lease over HTTP until any API process released it, or until its key was granted again', () => {
    const left = { since: 0, key: 'camera', holder: 'python', successor: 'python' };
    const log = new LogWriter()
      .acquired(0, 'api-1', { key: 'camera', holder: 'python' })
      .ended('transferred', 1, 'api-1', left)
      .add(5_000, 'api-2', 'lease.released', {
        ...lease('python', 'camera', fenceAt(0)),
        heldForMs: null,
      })
      .acquired(7_000, 'api-1', { key: 'camera', holder: 'go' })
      .ended('transferred', 7_001, 'api-1', {
        ...left,
        since: 7_000,
        holder: 'go',
        successor: 'go',
      })
      .acquired(40_000, 'api-2', { key: 'camera', holder: 'bash' });
    const report = made(log);
    expect(report.keys[0]?.tenures).toMatchObject([
      { holder: 'python', untilMs: NOON + 5_000, isOpen: false },
      { holder: 'go', untilMs: NOON + 40_002, isOpen: true },
      { holder: 'bash' },
    ]);
    expect(report.verification.contradictions).toEqual([]);
  });

  it('has one key alone, if that is asked for', () => {
    const log = incident().acquired(100_000, ANA, { key: 'other' });
    const report = made(log, { key: 'other' });
    expect(report.keys.map(({ key }) => key)).toEqual(['other']);
    expect(report.events).toHaveLength(1);
    expect(report.gaps).toEqual([]);
  });

  it('is bounded: it keeps the keys and events that tell most, and says how many it left out', () => {
    const log = new LogWriter();
    for (let i = 0; i < 5_000; i++) {
      const key = `k${i % 100}`;
      log
        .acquired(i * 100, 'a', { key })
        .ended('released', i * 100 + 50, 'a', { since: i * 100, key });
    }
    log.acquired(0, 'b', { key: 'last' }).ended('lost', 9_000, 'b', { since: 0, key: 'last' });
    const report = made(log);
    expect(report.keys).toHaveLength(MAX_KEYS);
    expect(report.keys.map(({ key }) => key)).toContain('last');
    expect(report.leftOut).toMatchObject({ keys: 41, events: 9_002 });
    expect(report.events).toHaveLength(1_000);
    expect(report.events.some(({ event }) => event === 'lease.lost')).toBe(true);
    expect(page(log)).toContain('41 more are not shown: give --key.');
  });
});

describe('the page of a report', () => {
  it('says what happened by names, in the zone, with the verdict on top', () => {
    const text = page(incident());
    expect(text).toContain('<h1>2026-06-01 13:59:00 to 14:10:00</h1>');
    expect(text).toContain('in the time zone Europe/Berlin');
    expect(text.indexOf('No contradiction found.')).toBeLessThan(text.indexOf('Who held what'));
    expect(text).toContain('<b>31 s</b>');
    expect(text).toContain('ana → ben');
    expect(text).toContain('a renewal failed');
    expect(text).toContain('member.drain');
    expect(text).not.toContain(ANA);
    expect(text).not.toContain(BEN);
  });

  it('shows a contradiction with its entries', () => {
    const log = new LogWriter()
      .acquired(0, ANA)
      .acquired(10_000, BEN)
      .ended('released', 20_000, ANA, { since: 0 });
    const text = page(log);
    expect(text).toContain('<strong>1 contradiction</strong>');
    expect(text).toMatch(/ben was granted the key while ana could still act, for 9\.99\d s/);
  });

  it('escapes what users named, wherever it is shown', () => {
    const evil = '"><script>alert(1)</script><img src=x onerror=alert(1)>';
    const log = new LogWriter()
      .acquired(0, evil, { key: evil })
      .acquired(50_000, `${evil}2`, { key: evil })
      .ended('released', 70_000, evil, { since: 0, key: evil })
      .add(20, evil, 'lease.uncertain', { ...lease(evil, evil, fenceAt(0)), reason: evil })
      .add(30, evil, 'operator.acted', {
        action: evil,
        subject: evil,
        to: evil,
        by: evil,
        reason: evil,
      })
      .add(40, evil, 'store.forgot', { store: evil, why: evil })
      .add(50, evil, 'lease.lost', {
        ...lease(evil, evil, '7'),
        reason: evil,
        lateMs: 900,
        heldForMs: 1,
      })
      .add(60, evil, 'target.taken', {
        target: evil,
        fence: '1',
        from: evil,
        how: 'failover',
        gapMs: 9,
      })
      .add(70, evil, 'log.dropped', { count: 1, error: evil });
    const text = page(log);
    expect(text).toContain('&lt;script&gt;');
    expect(text).not.toMatch(/<script|<img/);
    // Every quote in an attribute is one of the page: none of a name.
    expect(text).not.toContain(evil);
  });

  it('loads nothing and runs nothing', () => {
    const text = page(incident());
    expect(text).not.toMatch(/<script|<link|<img|<iframe|@import|\bon[a-z]+=|javascript:/i);
    expect(text.match(/(?:src|href)=/g)).toBeNull();
    expect([...text.matchAll(/url\(([^)]*)\)/g)].map(([, url]) => url)).toEqual(['#doubt']);
  });

  it('says that there is nothing, if the log has nothing', () => {
    const text = page(new LogWriter());
    expect(text).toContain('The log has no tenure of this time.');
    expect(text).toContain('No instance recorded a lease in this time.');
    expect(text).toContain('The log has no events of this time.');
  });

  it('refuses a zone that is none', () => {
    expect(() => new ZonedClock('Mars/Base')).toThrow(
      /^zone is "Mars\/Base": the name of a time zone/,
    );
  });
});
