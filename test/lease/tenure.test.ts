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
  const renewals: Tenure[] = [];
  for (const name of [
    'lease.uncertain',
    'lease.confirmed',
    'lease.releasing',
    'lease.lost',
  ] satisfies EventName[]) {
    events.on(name, () => happened.push(name));
  }
  const renewer = {
    renew: () => Promise.resolve(false),
    renewNow: (tenure: Tenure) => void renewals.push(tenure),
    remove: () => {},
  };
  const policy = {
    leaseClass: LEASE_CLASSES.lease,
    timings: deriveTimings({ ttl: '3s' }, {}, LONGEST_TTL_MS),
    maxTtlMs: LONGEST_TTL_MS,
  };
  const claim = { policy, key: 'k', storeKey: 'lease:k', holder: 'h' };
  const grant = { fence: 7, sent: confirmationNow(clock) };
  const tenure = new Tenure(testRuntime({ clock, events }), renewer, claim, grant);
  return { clock, tenure, happened, renewals };
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

  it('K-05 a tenure cannot be released before it is releasing', () => {
    expect(() => makeTenure().tenure.endRelease()).toThrow(
      /a tenure is releasing before it is released/,
    );
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
