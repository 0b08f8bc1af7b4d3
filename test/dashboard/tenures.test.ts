import { describe, expect, it } from 'vitest';
import {
  compareFences,
  Tenancy,
  type Tenure,
  withPresent,
} from '../../dashboard/src/data/tenures.ts';
import type { ApiEvent } from '../../src/client/messages.ts';
import { ANA, BOB, CARL, FAILOVER, HANDOVER, lease, taken } from '../support/log-entries.ts';

const nobodyDied = () => null;

function tenuresOf(
  entries: readonly ApiEvent[],
  goneAt: (instance: string, after: number) => number | null = nobodyDied,
): readonly Tenure[] {
  const tenancy = new Tenancy();
  for (const one of entries) tenancy.add(one);
  return tenancy.tenures(goneAt);
}

/** `holder from–until how`, for short. */
function told(tenures: readonly Tenure[]): string[] {
  return tenures.map(({ holder, from, ending }) => {
    const until = ending === null ? '' : `${ending.at} ${ending.kind}`;
    return `${holder.split('-')[0]} ${from ?? '?'}–${until}`;
  });
}

describe('tenures from the log', () => {
  it('a tenure that was acquired and has not ended lasts until now', () => {
    expect(told(tenuresOf([lease('acquired', 1_000, ANA, 100)]))).toEqual(['ana 1000–']);
  });

  it('a holder that logged no end had the key until its lease expired, as its successor saw', () => {
    expect(told(tenuresOf(FAILOVER))).toEqual(['ana 1000–40000 ranOut', 'bob 40020–']);
  });

  it('one that was handed over ends when the store named the successor', () => {
    expect(told(tenuresOf(HANDOVER))).toEqual(['ana 1000–9000 transferred', 'bob 9015–']);
  });

  it('B-26 one of a client over HTTP lasts until an API process released it', () => {
    const left = lease('transferred', 1_010, 'python', 100, { successor: 'python', heldForMs: 10 });
    const entries = [lease('acquired', 1_000, 'python', 100), left];
    expect(told(tenuresOf(entries))).toEqual(['python 1000–']);
    const released = lease('released', 9_000, 'python', 100, { heldForMs: null });
    expect(told(tenuresOf([...entries, released]))).toEqual(['python 1000–9000 released']);
  });

  it.each([
    ['released', { heldForMs: 4_000 }],
    ['abandoned', { heldForMs: 4_000, why: 'the store was away' }],
    ['lost', { heldForMs: 4_000, reason: 'expired' }],
    ['transferred', { heldForMs: 4_000, successor: BOB }],
  ])('%s: its beginning is known although the log has lost it', (what, facts) => {
    const tenures = tenuresOf([lease(what, 5_000, ANA, 100, facts)]);
    expect(told(tenures)).toEqual([`ana 1000–5000 ${what}`]);
  });

  it('a revocation counts, not that its holder noticed it later', () => {
    const tenures = tenuresOf([
      lease('acquired', 1_000, ANA, 100),
      lease('lost', 3_000, ANA, 100, { reason: 'revoked', heldForMs: 2_000 }),
      lease('revoked', 2_000, ANA, 100, { reason: 'hangs', force: false, mayActForMs: 5_000 }),
    ]);
    expect(tenures).toMatchObject([{ ending: { kind: 'revoked', at: 2_000, why: 'hangs' } }]);
  });

  it('a revocation has the fence of its tombstone: it ends the tenure before, even if that is read later', () => {
    const revoked = lease('revoked', 2_000, ANA, 150, { reason: 'hangs', mayActForMs: 5_000 });
    const lost = lease('lost', 2_400, ANA, 100, { reason: 'revoked', heldForMs: 1_400 });
    const tenancy = new Tenancy();
    tenancy.add(revoked);
    expect(told(tenancy.tenures(nobodyDied))).toEqual(['ana ?–2000 revoked']);
    for (const entry of [lost, lease('acquired', 7_000, BOB, 160)]) tenancy.add(entry);
    expect(told(tenuresOf([revoked, lost, lease('acquired', 7_000, BOB, 160)]))).toEqual([
      'ana 1000–2000 revoked',
      'bob 7000–',
    ]);
    expect(told(tenancy.tenures(nobodyDied))).toEqual(['ana 1000–2000 revoked', 'bob 7000–']);
  });

  it('the predecessor that a successor names is there although the log has nothing of it', () => {
    const entries = FAILOVER.slice(1);
    expect(told(tenuresOf(entries))).toEqual(['ana ?–40000 ranOut', 'bob 40020–']);
  });

  it('a successor that never claimed has a tenure in between', () => {
    const entries = [
      lease('acquired', 1_000, ANA, 100),
      lease('transferred', 9_000, ANA, 100, { successor: BOB, heldForMs: 8_000 }),
      taken(11_030, CARL, 105, { from: BOB, how: 'failover', wakeMs: 30 }),
    ];
    expect(told(tenuresOf(entries))).toEqual([
      'ana 1000–9000 transferred',
      'bob 9000–11000 ranOut',
      'carl 11030–',
    ]);
  });

  it('who claims what it was given, and remembers itself as its last holder, had it once', () => {
    const claimed = taken(9_400, BOB, 102, { from: BOB, how: 'failover', wakeMs: 400 });
    const entries = [...HANDOVER.slice(0, 2), claimed];
    expect(told(tenuresOf(entries))).toEqual(['ana 1000–9000 transferred', 'bob 9400–']);
  });

  it('entries that are there twice change nothing', () => {
    const twice = [...FAILOVER, ...FAILOVER, ...HANDOVER.slice(0, 1)];
    expect(told(tenuresOf(twice))).toEqual(told(tenuresOf(FAILOVER)));
  });

  it('in whatever order they come, the same is told', () => {
    expect(told(tenuresOf([...HANDOVER].reverse()))).toEqual(told(tenuresOf(HANDOVER)));
  });

  it('where clocks contradict fences, the fences are right, and no two have it at once', () => {
    // BOB's clock is 5 s behind.
    const tenures = tenuresOf([
      lease('acquired', 10_000, ANA, 100),
      lease('transferred', 20_000, ANA, 100, { successor: BOB, heldForMs: 10_000 }),
      taken(15_010, BOB, 101, { from: ANA, how: 'handover' }),
    ]);
    expect(told(tenures)).toEqual(['ana 10000–15010 transferred', 'bob 15010–']);
    expect(tenures[1]).toMatchObject({ overlapMs: 4_990 });
  });

  it('a successor whose clock is behind the beginning of its predecessor still comes after it', () => {
    const tenures = tenuresOf([
      lease('acquired', 10_000, ANA, 100),
      lease('released', 10_500, ANA, 100, { heldForMs: 500 }),
      lease('acquired', 4_000, BOB, 101),
    ]);
    expect(told(tenures)).toEqual(['ana 10000–10000 released', 'bob 10000–']);
  });

  it('who hands over hears of it after the successor: that is no difference of clocks', () => {
    const tenures = tenuresOf([
      lease('acquired', 1_000, ANA, 100),
      taken(8_990, BOB, 101, { from: ANA, how: 'handover' }),
      lease('transferred', 9_000, ANA, 100, { successor: BOB, heldForMs: 8_000 }),
    ]);
    expect(told(tenures)).toEqual(['ana 1000–8990 transferred', 'bob 8990–']);
    expect(tenures[1]).toMatchObject({ overlapMs: 0 });
  });

  it('a dead holder has it until it was seen to be dead, while nobody says more', () => {
    const gone = (who: string) => (who === ANA ? 7_000 : null);
    expect(told(tenuresOf([lease('acquired', 1_000, ANA, 100)], gone))).toEqual([
      'ana 1000–7000 gone',
    ]);
  });

  it('where the log does not say how it ended, it says that another followed', () => {
    const entries = [lease('acquired', 1_000, ANA, 100), lease('acquired', 5_000, BOB, 101)];
    expect(told(tenuresOf(entries))).toEqual(['ana 1000–5000 followed', 'bob 5000–']);
  });

  it('entries of others, and what is no entry of a tenure, are left out', () => {
    const tenancy = new Tenancy();
    expect(tenancy.add(lease('refused', 1, ANA, 100))).toBe(false);
    expect(tenancy.add({ position: '1', at: 1, instance: ANA, event: 'target.taken' })).toBe(false);
    expect(tenancy.tenures(nobodyDied)).toEqual([]);
  });

  it('fences are compared as the numbers they are, however long', () => {
    const sorted = ['9', '10', '1794794973428000', '99999999999999999999'];
    expect([...sorted].reverse().sort(compareFences)).toEqual(sorted);
  });
});

describe('with who has it at present', () => {
  const now = 100_000;

  it('one that the log says nothing of has its owner since before', () => {
    expect(told(withPresent([], { owner: ANA, since: null }, now))).toEqual(['ana ?–']);
  });

  it('nothing is added where both say the same', () => {
    const tenures = tenuresOf(FAILOVER);
    expect(withPresent(tenures, { owner: BOB, since: null }, now)).toBe(tenures);
  });

  it('an owner that writes nothing follows the one that did', () => {
    const tenures = withPresent(tenuresOf(FAILOVER), { owner: CARL, since: 90_000 }, now);
    expect(told(tenures)).toEqual([
      'ana 1000–40000 ranOut',
      'bob 40020–90000 followed',
      'carl 90000–',
    ]);
  });

  it('one that nobody has any more has ended', () => {
    const tenures = withPresent(tenuresOf(FAILOVER), { owner: null, since: 90_000 }, now);
    expect(told(tenures).at(-1)).toBe('bob 40020–90000 gone');
  });

  it('what changed only just is left to the log: the picture is behind', () => {
    const tenures = tenuresOf(FAILOVER);
    expect(withPresent(tenures, { owner: ANA, since: null }, 40_500)).toBe(tenures);
  });
});
