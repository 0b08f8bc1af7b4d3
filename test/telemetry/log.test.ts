import { describe, expect, it } from 'vitest';
import { Emitter, type EventName, type Listener } from '../../src/core/events.ts';
import type { LogLevel } from '../../src/telemetry/levels.ts';
import { Log } from '../../src/telemetry/log.ts';
import { type PrettyLine, PrettyLog } from '../../src/telemetry/pretty.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { fleetWorld } from '../support/fleet-world.ts';

const INSTANCE = 'api-1794735731650762000-c586043d';
const OTHER = 'api-1794735731650763000-00c0ffee';
const LEASE = {
  leaseClass: 'poll',
  key: 'device-7',
  holder: INSTANCE,
  fence: 1794735731926001,
};
const TIME = '2026-01-01T00:00:00.000Z';
/** What every line about a target has: FR-022. */
const ABOUT = { time: TIME, instance: INSTANCE, target: 'device-7' };

function setUp(level: LogLevel = 'info') {
  const clock = new FakeClock();
  const lines: string[] = [];
  const log = new Log({ clock, level, write: (line) => lines.push(line) });
  log.identify(INSTANCE);
  const events = new Emitter();
  for (const [name, listener] of Object.entries(log.listeners()))
    events.on(name as EventName, listener as Listener<EventName>);
  const entries = () => lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  return { clock, log, events, lines, entries };
}

describe('the log of an instance', () => {
  it('FR-019 FR-022 has an entry for a lease that was had, and one for a lease that was not', () => {
    const { events, entries } = setUp();
    events.emit('lease.acquired', {
      ...LEASE,
      ttlMs: 30_000,
      remainingMs: 28_500,
      waitedMs: 0,
      tookMs: 0,
    });
    events.emit('lease.refused', { ...LEASE, by: OTHER, reason: 'held', expiresInMs: 900 });
    expect(entries()).toEqual([
      {
        ...ABOUT,
        level: 'info',
        event: 'lease.acquired',
        holder: INSTANCE,
        fence: '1794735731926001',
        ttlMs: 30_000,
        remainingMs: 28_500,
        waitedMs: 0,
        tookMs: 0,
        msg: 'took device-7',
      },
      {
        ...ABOUT,
        level: 'info',
        event: 'lease.refused',
        holder: INSTANCE,
        fence: '1794735731926001',
        by: OTHER,
        reason: 'held',
        expiresInMs: 900,
        msg: 'could not take device-7: api-00c0ffee holds it',
      },
    ]);
  });

  it('FR-020 FR-022 has one entry for a batch of renewals, one per target for who looks closely, and one for each failure', () => {
    const { events, entries } = setUp();
    events.emit('lease.extended', { ...LEASE, remainingMs: 28_500 });
    events.emit('lease.renewed', { leaseClass: 'poll', count: 1_200, tookMs: 3.2 });
    events.emit('lease.uncertain', { ...LEASE, reason: 'renewal_failed', remainingMs: 9_000 });
    expect(entries()).toMatchObject([
      { level: 'info', event: 'lease.renewed', instance: INSTANCE, time: TIME, count: 1_200 },
      { ...ABOUT, level: 'warn', event: 'lease.uncertain', reason: 'renewal_failed' },
    ]);
    const close = setUp('debug');
    close.events.emit('lease.extended', { ...LEASE, remainingMs: 28_500 });
    expect(close.entries()).toMatchObject([{ ...ABOUT, level: 'debug', event: 'lease.extended' }]);
  });

  it('FR-021 FR-022 has an entry for each end of a lease: let go of, handed over, expired', () => {
    const { events, entries } = setUp();
    events.emit('lease.released', { ...LEASE, heldForMs: 61_000, keptForMs: 0 });
    events.emit('lease.transferred', { ...LEASE, successor: OTHER, heldForMs: 2_000 });
    events.emit('lease.lost', { ...LEASE, reason: 'expired', heldForMs: 28_500, lateMs: 0 });
    expect(entries()).toMatchObject([
      { ...ABOUT, level: 'info', event: 'lease.released', heldForMs: 61_000 },
      { ...ABOUT, level: 'info', event: 'lease.transferred', successor: OTHER },
      { ...ABOUT, level: 'warn', event: 'lease.lost', reason: 'expired' },
    ]);
    expect(entries().map(({ msg }) => msg)).toEqual([
      'released device-7 after 1 min 1 s',
      'handed device-7 to api-00c0ffee',
      'lost device-7 after 29 s: it was not renewed in time',
    ]);
  });

  it('FR-022 names instance, target and time in every entry about a target, in a fleet that really runs', async () => {
    const world = fleetWorld();
    const instance = await world.instance();
    const lines: string[] = [];
    const log = new Log({ clock: world.clock, level: 'debug', write: (line) => lines.push(line) });
    log.identify(instance.id);
    for (const [name, listener] of Object.entries(log.listeners()))
      instance.holdfast.on(name as EventName, listener as Listener<EventName>);
    await world.add(3);
    await instance.poller.start();
    await world.clock.advance(1_500);
    const stopping = instance.poller.stop();
    await world.clock.advance(1_000);
    await stopping;
    const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    const names = new Set(entries.map(({ event }) => event));
    for (const name of ['lease.acquired', 'lease.renewed', 'lease.extended', 'lease.released'])
      expect(names).toContain(name);
    for (const entry of entries) {
      expect(entry).toMatchObject({ instance: instance.id, time: expect.any(String) });
      const isOfTarget = /^(lease\.(?!renewed)|poll|session)/.test(String(entry.event));
      if (isOfTarget) expect(entry.target).toMatch(/^device-00000\d$/);
    }
  });

  it('says of leases that are no targets which class they are of', () => {
    const { events, entries } = setUp();
    events.emit('lease.acquired', {
      ...LEASE,
      leaseClass: 'lease',
      ttlMs: 1,
      remainingMs: 1,
      waitedMs: 0,
      tookMs: 0,
    });
    expect(entries()).toMatchObject([
      { leaseClass: 'lease', key: 'device-7', msg: "took lease 'device-7'" },
    ]);
    expect(entries()[0]).not.toHaveProperty('target');
  });

  it('tells of the first poll that fails, not of the hundredth, and of the first that goes well again', () => {
    const { events, entries } = setUp();
    const poll = { target: 'device-7', fence: 1, tookMs: 3 };
    for (let i = 0; i < 100; i++) events.emit('poll.failed', { ...poll, why: 'reset' });
    events.emit('poll.done', poll);
    events.emit('poll.done', poll);
    events.emit('poll.failed', { ...poll, why: 'reset' });
    events.emit('lease.lost', { ...LEASE, reason: 'expired', heldForMs: 1, lateMs: 0 });
    events.emit('poll.failed', { ...poll, why: 'reset' });
    expect(entries().map(({ level, event }) => `${level} ${event}`)).toEqual([
      'warn poll.failed',
      'info poll.done',
      'warn poll.failed',
      'warn lease.lost',
      'warn poll.failed',
    ]);
  });

  it('has no secrets and nothing that acts on a terminal, whatever the facts say', () => {
    const { events, log, lines } = setUp('debug');
    const nasty = '\u001b]0;owned\u0007\u009b31m\u202e\u2028\u007f\r\n';
    const canary = 'http://user:canary"1@host/path';
    const error = new Error(`redis://:canary@host, ${canary}${nasty}`);
    events.emit('poll.failed', { target: nasty, fence: 1, tookMs: 1, why: canary });
    events.emit('fleet.stalled', { error });
    events.emit('lease.revoked', {
      ...LEASE,
      reason: `${nasty} rediss://user:ca:n@ry:canary@host:1/0`,
      force: true,
      mayActForMs: 0,
    });
    events.emit('listener.failed', { event: 'lease.lost', error });
    events.emit('log.dropped', { count: 2, error: { canary: 'hidden in an object' } });
    log.say('warn', `can not reach ${canary}`, { store: canary, nested: { canary: 1 } });
    expect(lines).toHaveLength(6);
    for (const line of lines) {
      expect(line).not.toMatch(/canary|n@ry/);
      expect(line).toMatch(/^[ -~]*\n$/);
    }
    expect(lines[0]).toContain('http://***@host/path');
  });

  it('hears no more than its level needs', () => {
    expect(Object.keys(setUp('error').log.listeners())).not.toContain('lease.renewed');
    expect(Object.keys(setUp('info').log.listeners())).not.toContain('lease.extended');
    const { events, lines } = setUp('error');
    events.emit('lease.lost', { ...LEASE, reason: 'expired', heldForMs: 1, lateMs: 0 });
    events.emit('poll.done', { target: 'a', fence: 1, tookMs: 1 });
    expect(lines).toEqual([]);
  });
});

describe('the log on a terminal', () => {
  function pretty({ color = false, columns = 56 } = {}) {
    const { clock, events, log } = setUp();
    const shown: string[] = [];
    const prettyLog = new PrettyLog({
      clock,
      color,
      columns,
      write: (text) => shown.push(text),
    });
    const printed = new Log({
      clock,
      level: 'info',
      write: (line) => prettyLog.add(JSON.parse(line) as PrettyLine),
    });
    printed.identify(INSTANCE);
    for (const [name, listener] of Object.entries(printed.listeners()))
      events.on(name as EventName, listener as Listener<EventName>);
    const take = (key: string) =>
      events.emit('lease.acquired', {
        ...LEASE,
        key,
        ttlMs: 1,
        remainingMs: 1,
        waitedMs: 0,
        tookMs: 0,
      });
    return { clock, events, log, printed, shown, take };
  }

  it('is the time and what happened, in words', async () => {
    const { clock, events, shown, take } = pretty();
    take('device-7');
    await clock.advance(100);
    events.emit('member.joined', { member: OTHER, isForeign: false });
    expect(shown.map((line) => line.replace(/^\d\d:\d\d:\d\d/, 'TIME'))).toEqual([
      'TIME  took device-7\n',
      'TIME  api-00c0ffee joined\n',
    ]);
  });

  it('says in one line what happens to many targets at once, before whatever comes next', () => {
    const { events, shown, take } = pretty();
    for (let i = 0; i < 5_000; i++) take(`d-${i}`);
    events.emit('fleet.resumed', { afterMs: 2_000 });
    expect(shown.map((line) => line.slice(10))).toEqual([
      'took 5000 targets: d-0, d-1, d-2, d-3, d-4, …\n',
      'sees the fleet again after 2 s\n',
    ]);
  });

  it('has colours only where they are wanted, and nothing from outside acts on the terminal', () => {
    const plain = pretty();
    const coloured = pretty({ color: true });
    for (const { events } of [plain, coloured])
      events.emit('fleet.stalled', { error: new Error('\u001b[31mred') });
    expect(plain.shown.join('')).toMatch(/^[\n -~]*$/);
    expect(coloured.shown.join('')).toContain('\u001b[31mcannot see the fleet');
    expect(coloured.shown.join('')).toContain('\\x1b[31mred');
  });
});
