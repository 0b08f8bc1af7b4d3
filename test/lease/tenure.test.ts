import { describe, expect, it } from 'vitest';
import { Emitter, type EventName } from '../../src/core/events.ts';
import { confirmationNow } from '../../src/core/validity.ts';
import { Tenure } from '../../src/lease/tenure.ts';
import { deriveTimings, LEASE_CLASSES } from '../../src/lease/timings.ts';
import { LONGEST_TTL_MS } from '../../src/store/port/keyspaces.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { testRuntime } from '../support/runtime.ts';

/** TTL 3 s: guard 150 ms, valid for 2,850 ms, and a jump of more than 75 ms counts. */
const VALID_MS = 2_850;
const JUMP_MS = 75;

function makeTenure() {
  const clock = new FakeClock();
  const events = new Emitter();
  const happened: string[] = [];
  const told: unknown[] = [];
  const renewals: Tenure[] = [];
  const removed: Tenure[] = [];
  for (const name of [
    'lease.uncertain',
    'lease.confirmed',
    'lease.releasing',
    'lease.lost',
  ] satisfies EventName[]) {
    events.on(name, (facts) => {
      happened.push(name);
      told.push(facts);
    });
  }
  const renewer = {
    renew: (tenure: Tenure) => Promise.resolve(renewals.push(tenure) > 0),
    renewNow: (tenure: Tenure) => void renewals.push(tenure),
    remove: (tenure: Tenure) => void removed.push(tenure),
  };
  const policy = {
    leaseClass: LEASE_CLASSES.lease,
    timings: deriveTimings({ ttl: '3s' }, {}, LONGEST_TTL_MS),
    maxTtlMs: LONGEST_TTL_MS,
  };
  const claim = { policy, key: 'k', storeKey: 'lease:k', holder: 'h' };
  const grant = { fence: 7, sent: confirmationNow(clock) };
  const tenure = new Tenure(testRuntime({ clock, events }), renewer, claim, grant);
  return { clock, tenure, happened, told, renewals, removed };
}

describe('K-05 the states of a tenure', () => {
  it('K-05 held → uncertain → held: a renewal fails, and the next one is confirmed', () => {
    const { clock, tenure, happened } = makeTenure();
    tenure.doubt('renewal_failed');
    expect(tenure.state).toBe('uncertain');
    expect(tenure.isHeld()).toBe(false);
    expect(() => tenure.assertHeld()).not.toThrow();
    tenure.confirm(confirmationNow(clock));
    expect(tenure.state).toBe('held');
    expect(happened).toEqual(['lease.uncertain', 'lease.confirmed']);
  });

  it('K-05 uncertain → lost at the deadline, not a millisecond later', () => {
    const { clock, tenure } = makeTenure();
    tenure.doubt('renewal_failed');
    clock.block(VALID_MS - 1);
    expect(() => tenure.assertHeld()).not.toThrow();
    clock.block(1);
    expect(() => tenure.assertHeld()).toThrow(
      expect.objectContaining({ code: 'LEASE_LOST', reason: 'expired', fence: 7 }),
    );
    expect(tenure.state).toBe('lost');
  });

  it('K-05 held → lost at once if the store names another holder', () => {
    const { tenure, happened } = makeTenure();
    const { signal } = tenure;
    tenure.lose('taken_over');
    expect(tenure.state).toBe('lost');
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toMatchObject({
      code: 'LEASE_LOST',
      reason: 'taken_over',
      key: 'k',
      holder: 'h',
    });
    expect(happened).toEqual(['lease.lost']);
  });

  it('K-05 held → releasing → released: no new work begins, and work in flight may finish', () => {
    const { tenure } = makeTenure();
    const { signal } = tenure;
    expect(tenure.beginRelease()).toBe(true);
    expect(tenure.isHeld()).toBe(false);
    expect(() => tenure.assertHeld()).not.toThrow();
    expect(signal.aborted).toBe(false);
    tenure.endRelease();
    expect(tenure.state).toBe('released');
    expect(signal.aborted).toBe(true);
    expect(() => tenure.assertHeld()).toThrow(
      expect.objectContaining({ code: 'LEASE_LOST', reason: 'released' }),
    );
  });

  it('K-05 releasing → lost at the deadline', () => {
    const { clock, tenure } = makeTenure();
    tenure.beginRelease();
    clock.block(VALID_MS);
    expect(tenure.state).toBe('lost');
    tenure.endRelease();
    expect(tenure.state).toBe('lost');
  });

  it('K-05 releasing stays releasing, whatever renewals answer', () => {
    const { clock, tenure } = makeTenure();
    tenure.beginRelease();
    tenure.doubt('renewal_failed');
    tenure.confirm(confirmationNow(clock));
    expect(tenure.state).toBe('releasing');
  });

  it('K-05 released and lost are final', () => {
    const { clock, tenure } = makeTenure();
    tenure.lose('revoked');
    tenure.confirm(confirmationNow(clock));
    tenure.doubt('renewal_failed');
    expect(tenure.beginRelease()).toBe(false);
    expect(tenure.state).toBe('lost');
    expect(tenure.lossReason).toBe('revoked');
  });

  it('K-05 a second loss changes nothing: the first reason stays, with its cause', () => {
    const { tenure, happened, removed } = makeTenure();
    const { signal } = tenure;
    const cause = new Error('era');
    tenure.lose('taken_over', cause);
    tenure.lose('revoked');
    expect(tenure.lossReason).toBe('taken_over');
    expect(signal.reason.cause).toBe(cause);
    expect([happened, removed]).toEqual([['lease.lost'], [tenure]]);
  });

  it('K-05 an error of a loss without a cause has none', () => {
    const { tenure } = makeTenure();
    tenure.lose('revoked');
    expect(Object.hasOwn(tenure.lostError(), 'cause')).toBe(false);
  });

  it('K-05 an error about a tenure that has not ended says that it is over its time', () => {
    expect(makeTenure().tenure.lostError().reason).toBe('expired');
  });

  it('K-08 a tenure begins its release once, and says so once', () => {
    const { tenure, happened, told } = makeTenure();
    expect([tenure.beginRelease(), tenure.beginRelease()]).toEqual([true, false]);
    expect(happened).toEqual(['lease.releasing']);
    expect(told).toEqual([{ leaseClass: 'lease', key: 'k', holder: 'h', fence: 7 }]);
  });

  it('K-08 once handed in no check passes, no renewal counts, and its time stands still', () => {
    const { clock, tenure, happened } = makeTenure();
    tenure.beginRenewal();
    expect(tenure.isRenewing).toBe(true);
    tenure.beginRelease();
    clock.block(400);
    tenure.handIn();
    expect([tenure.isHandedIn, tenure.isRenewing, tenure.isHeld()]).toEqual([true, false, false]);
    expect([tenure.remainingMs(), tenure.deadline.validMs]).toEqual([0, 0]);
    expect(() => tenure.assertHeld()).toThrow(expect.objectContaining({ reason: 'released' }));
    expect(tenure.signal.reason).toMatchObject({ reason: 'released', heldForMs: 400 });
    tenure.endRenewal();
    expect(tenure.isHandedIn).toBe(true);
    clock.block(VALID_MS);
    expect([tenure.state, tenure.isOver]).toEqual(['releasing', false]);
    tenure.endRelease();
    expect([tenure.state, tenure.isOver, tenure.heldForMs]).toEqual(['released', true, 400]);
    expect(happened).toEqual(['lease.releasing']);
  });

  it('K-08 a signal that was read before fires when the tenure is handed in', () => {
    const { tenure } = makeTenure();
    const { signal } = tenure;
    tenure.beginRelease();
    expect(signal.aborted).toBe(false);
    tenure.handIn();
    expect(signal.reason).toMatchObject({ code: 'LEASE_LOST', reason: 'released' });
    expect(tenure.signal).toBe(signal);
  });

  it('K-08 a tenure is handed in while it is releasing, and once', () => {
    const { tenure } = makeTenure();
    expect(() => tenure.handIn()).toThrow(/releasing when it is handed in/);
    tenure.beginRelease();
    tenure.handIn();
    expect(() => tenure.handIn()).toThrow(/handed in once/);
  });

  it('K-03 a tenure has one renewal at a time, and its answer needs one that was sent', () => {
    const { tenure } = makeTenure();
    expect(tenure.isRenewing).toBe(false);
    expect(() => tenure.endRenewal()).toThrow(/only after it was sent/);
    tenure.beginRenewal();
    expect(() => tenure.beginRenewal()).toThrow(/one renewal at a time/);
    tenure.endRenewal();
    expect(tenure.isRenewing).toBe(false);
    tenure.beginRenewal();
  });

  it('K-08 a tenure that was released without being handed in counts until then', () => {
    const { clock, tenure } = makeTenure();
    tenure.beginRelease();
    clock.block(300);
    tenure.endRelease();
    clock.block(300);
    expect(tenure.heldForMs).toBe(300);
    expect(tenure.signal.reason).toMatchObject({ reason: 'released' });
  });

  it('K-05 a tenure cannot be released before it is releasing', () => {
    expect(() => makeTenure().tenure.endRelease()).toThrow(
      /a tenure is releasing before it is released/,
    );
  });
});

describe('what a tenure says of itself', () => {
  it('K-01 the store knows it by its stored key, events by key and class', () => {
    const { tenure } = makeTenure();
    expect(tenure.tenancy).toEqual({ key: 'lease:k', holder: 'h', fence: 7 });
    expect(tenure.facts).toEqual({ leaseClass: 'lease', key: 'k', holder: 'h', fence: 7 });
  });

  it('K-14 it was acquired when its request was sent, by the wall clock, and renewed when it was confirmed', async () => {
    const { clock, tenure, renewals } = makeTenure();
    const startMs = clock.wallMs();
    clock.block(700);
    expect([tenure.acquiredAt, tenure.lastRenewedAt]).toEqual([
      new Date(startMs),
      new Date(startMs),
    ]);
    tenure.confirm(confirmationNow(clock));
    expect([tenure.acquiredAt, tenure.lastRenewedAt]).toEqual([
      new Date(startMs),
      new Date(startMs + 700),
    ]);
    expect(tenure.heldForMs).toBe(700);
    expect(await tenure.renew()).toBe(true);
    expect(renewals).toEqual([tenure]);
  });

  it('K-14 doubt is told with its reason and the time that is left', () => {
    const { clock, tenure, told } = makeTenure();
    clock.block(850);
    clock.jumpWall(JUMP_MS + 1);
    tenure.isHeld();
    expect(told).toMatchObject([{ key: 'k', reason: 'clock_jump', remainingMs: 2_000 }]);
  });

  it('K-14 a loss is told with how long the tenure was held, and how late the event is', () => {
    const { clock, tenure, told } = makeTenure();
    clock.block(VALID_MS + 500);
    expect(tenure.isHeld()).toBe(false);
    expect(told).toMatchObject([{ reason: 'expired', heldForMs: VALID_MS + 500, lateMs: 500 }]);
    clock.block(1_000);
    expect(tenure.heldForMs).toBe(VALID_MS + 500);
  });

  it('K-04 to ask how long it lasts is a check as well: the loss is told at once', () => {
    const { clock, tenure, happened } = makeTenure();
    clock.block(VALID_MS);
    expect(tenure.remainingMs()).toBe(0);
    expect(happened).toEqual(['lease.lost']);
  });

  it('K-14 a loss before the deadline is not late', () => {
    const { tenure, told } = makeTenure();
    tenure.lose('revoked');
    expect(told).toMatchObject([{ reason: 'revoked', lateMs: 0 }]);
  });

  it('K-04 the facts for another process are those of the last confirmation, and worth nothing after a loss', () => {
    const { clock, tenure } = makeTenure();
    const sent = confirmationNow(clock);
    expect(tenure.deadline).toEqual({ ...sent, validMs: VALID_MS, jumpMs: JUMP_MS });
    tenure.lose('revoked');
    expect(tenure.deadline).toEqual({ ...sent, validMs: 0, jumpMs: JUMP_MS });
    expect(tenure.remainingMs()).toBe(0);
  });

  it('K-03 an answer to an earlier request does not shorten what a later one has confirmed', () => {
    const { clock, tenure } = makeTenure();
    const early = confirmationNow(clock);
    clock.block(100);
    tenure.confirm(confirmationNow(clock));
    tenure.confirm(early);
    expect(tenure.remainingMs()).toBe(VALID_MS);
  });
});

describe('K-08 the work of a tenure', () => {
  it('K-08 is asked to stop with a reason, while the tenure is held', () => {
    const { tenure } = makeTenure();
    const reason = new Error('draining');
    tenure.stopWork(reason);
    expect(tenure.signal.reason).toBe(reason);
    expect(tenure.isHeld()).toBe(true);
    const { tenure: other } = makeTenure();
    const { signal } = other;
    other.stopWork(reason);
    expect(signal.reason).toBe(reason);
  });

  it('K-01 its end is told once, to everyone who waits for it and to who asks later', () => {
    const { tenure } = makeTenure();
    const told: string[] = [];
    tenure.onWorkEnded(() => told.push('a'));
    tenure.onWorkEnded(() => told.push('b'));
    expect(told).toEqual([]);
    tenure.endWork();
    tenure.endWork();
    expect(told).toEqual(['a', 'b']);
    tenure.onWorkEnded(() => told.push('c'));
    expect(told).toEqual(['a', 'b', 'c']);
  });

  it('K-01 the same holder waits for it without limit, after a loss until the deadline', () => {
    const { clock, tenure } = makeTenure();
    expect(tenure.workLeftMs()).toBe(Number.POSITIVE_INFINITY);
    clock.block(VALID_MS - 200);
    tenure.lose('revoked');
    expect(tenure.workLeftMs()).toBe(200);
    clock.block(300);
    expect(tenure.workLeftMs()).toBe(0);
  });

  it('K-01 work until the release is waited for after a loss too, and no longer than it lasts', () => {
    const { tenure } = makeTenure();
    tenure.untilReleased = true;
    tenure.lose('revoked');
    expect(tenure.workLeftMs()).toBe(Number.POSITIVE_INFINITY);
    tenure.endWork();
    expect(tenure.workLeftMs()).toBe(0);
  });

  it('K-01 is under way, in the store and detached when the tenure begins', () => {
    const { tenure } = makeTenure();
    expect([tenure.mayBeAttached, tenure.hasLeftStore, tenure.untilReleased]).toEqual([
      false,
      false,
      false,
    ]);
  });
});

describe('K-04 validity', () => {
  it('K-04 a tenure counts from when its request was sent, to the millisecond', () => {
    const { clock, tenure } = makeTenure();
    clock.block(VALID_MS - 1);
    expect(tenure.isHeld()).toBe(true);
    expect(tenure.remainingMs()).toBe(1);
    clock.block(1);
    expect(tenure.isHeld()).toBe(false);
    expect(tenure.remainingMs()).toBe(0);
    expect(tenure.state).toBe('lost');
  });

  it('K-04 after a blocked event loop the very next statement sees the loss, and so does the signal', () => {
    const { clock, tenure, happened } = makeTenure();
    const { signal } = tenure;
    clock.block(60_000);
    expect(tenure.isHeld()).toBe(false);
    expect(signal.aborted).toBe(true);
    expect(happened).toEqual(['lease.lost']);
  });

  it('K-04 a signal that is first read after the loss is aborted already', () => {
    const { clock, tenure } = makeTenure();
    clock.block(VALID_MS);
    expect(tenure.signal.aborted).toBe(true);
  });

  it('K-03 an answer after the deadline does not resurrect a tenure', () => {
    const { clock, tenure } = makeTenure();
    clock.block(VALID_MS - 10);
    const sent = confirmationNow(clock);
    clock.block(10);
    tenure.confirm(sent);
    expect(tenure.isHeld()).toBe(false);
    expect(tenure.state).toBe('lost');
  });

  it('K-04 a renewal counts from when it was sent, not from when it was answered', () => {
    const { clock, tenure } = makeTenure();
    clock.block(1_000);
    const sent = confirmationNow(clock);
    clock.block(500);
    tenure.confirm(sent);
    expect(tenure.remainingMs()).toBe(VALID_MS - 500);
  });

  it('K-04 a jump of the wall clock within the tolerance changes nothing', () => {
    const { clock, tenure, renewals } = makeTenure();
    clock.jumpWall(JUMP_MS);
    expect(tenure.isHeld()).toBe(true);
    expect(renewals).toEqual([]);
  });

  it.each([JUMP_MS + 1, 3_600_000, -(JUMP_MS + 1)])(
    'K-04 a jump by %i ms is uncertain until a renewal, sent at once, is confirmed',
    (jumpMs) => {
      const { clock, tenure, happened, renewals } = makeTenure();
      clock.jumpWall(jumpMs);
      expect(tenure.isHeld()).toBe(false);
      expect(tenure.state).toBe('uncertain');
      expect(renewals).toEqual([tenure]);
      tenure.confirm(confirmationNow(clock));
      expect(tenure.isHeld()).toBe(true);
      expect(happened).toEqual(['lease.uncertain', 'lease.confirmed']);
    },
  );

  it('K-04 after a jump past the deadline even work in flight has to wait for the renewal', () => {
    const { clock, tenure } = makeTenure();
    clock.jumpWall(VALID_MS + 1);
    expect(() => tenure.assertHeld()).toThrow(
      expect.objectContaining({ code: 'LEASE_UNCERTAIN', jumpMs: VALID_MS + 1 }),
    );
    expect(tenure.remainingMs()).toBe(0);
    expect(tenure.state).toBe('uncertain');
    tenure.confirm(confirmationNow(clock));
    expect(() => tenure.assertHeld()).not.toThrow();
  });

  it('K-04 after a jump back even work in flight has to wait for the renewal, because the jump may hide a sleep', () => {
    const { clock, tenure } = makeTenure();
    clock.jumpWall(-3_600_000);
    expect(() => tenure.assertHeld()).toThrow(expect.objectContaining({ code: 'LEASE_UNCERTAIN' }));
    expect(tenure.remainingMs()).toBe(0);
    tenure.confirm(confirmationNow(clock));
    expect(() => tenure.assertHeld()).not.toThrow();
    expect(tenure.remainingMs()).toBe(VALID_MS);
  });

  it('K-04 after a shorter jump work in flight may continue until the deadline on the wall clock', () => {
    const { clock, tenure } = makeTenure();
    clock.jumpWall(1_000);
    expect(() => tenure.assertHeld()).not.toThrow();
    expect(tenure.remainingMs()).toBe(VALID_MS - 1_000);
    clock.block(VALID_MS - 1_000);
    expect(() => tenure.assertHeld()).toThrow(expect.objectContaining({ code: 'LEASE_UNCERTAIN' }));
  });
});
