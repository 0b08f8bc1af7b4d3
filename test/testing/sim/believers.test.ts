import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/core/random.ts';
import { Believers } from '../../../testing/sim/believers.ts';
import { Counters } from '../../../testing/sim/counters.ts';
import { SimHost, SimProcess } from '../../../testing/sim/host.ts';
import { Timeline } from '../../../testing/sim/timeline.ts';

const BOUND_MS = 30_000;

function scene() {
  const timeline = new Timeline();
  const counters = new Counters();
  const told: string[] = [];
  const believers = new Believers({
    ...{ nowMs: () => timeline.nowMs, counters, boundMs: BOUND_MS },
    report: (invariant) => void told.push(invariant),
  });
  const host = new SimHost(timeline);
  const process = (name: string) => new SimProcess(host, name, seededRandom(1));
  const hold = (by: SimProcess, fence: number, { isOff = false, storeKey = 'lease:k' } = {}) => {
    believers.granted(by, [fence]);
    const belief = { storeKey, process: by, holder: by.name, fence, ttlMs: BOUND_MS, isOff };
    return believers.watch({ ...belief, isBelieved: () => true });
  };
  const judged = () => {
    believers.settled();
    return told.splice(0);
  };
  const pass = (ms: number) => timeline.run(timeline.nowMs + ms);
  return { believers, counters, process, hold, judged, pass };
}

describe('the judge of a mixed world', () => {
  it('K-01 finds two clients that believe in one key of the store, and not in two', () => {
    const { process, hold, judged } = scene();
    hold(process('a'), 1);
    const end = hold(process('b'), 1, { storeKey: 'poll:lease:k' });
    expect(judged()).toEqual([]);
    end();
    hold(process('c'), 2);
    expect(judged()).toEqual(['exclusion']);
  });

  it('leaves out a client that is frozen or dead: it can not ask', () => {
    const { believers, process, hold, judged } = scene();
    const [a, b, c] = [process('a'), process('b'), process('c')];
    hold(a, 1);
    hold(b, 2);
    b.freeze(10);
    expect(judged()).toEqual([]);
    hold(c, 3);
    c.kill();
    expect(judged()).toEqual([]);
    believers.forget(a);
    expect(believers.of('lease:k')).toEqual([]);
  });

  it('K-02 finds a fence that did not grow from one grant to the next', async () => {
    const { process, hold, judged, pass } = scene();
    hold(process('a'), 5)();
    await pass(10);
    hold(process('b'), 5);
    expect(judged()).toEqual(['grants']);
  });

  it('excuses a client with quarantine off while the quarantine lasts, and no longer', async () => {
    const { believers, counters, process, hold, judged, pass } = scene();
    hold(process('a'), 1);
    await pass(10);
    believers.lost('noticeable');
    await pass(BOUND_MS);
    const end = hold(process('off'), 2, { isOff: true });
    expect(judged()).toEqual([]);
    expect(counters.get('not promised: granted with quarantine off')).toBe(1);
    end();
    await pass(2_000);
    hold(process('off too'), 3, { isOff: true });
    expect(judged()).toEqual(['exclusion']);
  });

  it('excuses a newcomer after an emptying until a client that remembers has examined the store', async () => {
    const { believers, counters, process, hold, judged, pass } = scene();
    const [a, early, late] = [process('a'), process('early'), process('late')];
    believers.examined(a);
    hold(a, 1);
    await pass(10);
    believers.lost('emptied');
    await pass(10);
    believers.examined(early);
    const end = hold(early, 2);
    expect(judged()).toEqual([]);
    expect(counters.get('not promised: unnoticed emptying')).toBe(1);
    end();
    await pass(10);
    believers.examined(a);
    await pass(10);
    believers.examined(late);
    hold(late, 3);
    expect(judged()).toEqual(['exclusion']);
  });

  it('excuses a newcomer whose server was emptied, if a client that remembers has examined another server', async () => {
    const { believers, process, hold, judged, pass } = scene();
    const [a, b, newcomer] = [process('a'), process('b'), process('newcomer')];
    for (const one of [a, b]) believers.examined(one, 1);
    hold(a, 1);
    await pass(10);
    believers.lost('emptied');
    await pass(10);
    believers.examined(b, 2);
    await pass(10);
    hold(newcomer, 2);
    expect(judged()).toEqual([]);
  });

  it('excuses at the old primary only who was not at the other one, before anybody who was', async () => {
    const { believers, counters, process, hold, judged, pass } = scene();
    const [a, stranger, other] = [process('a'), process('stranger'), process('other')];
    believers.examined(stranger);
    await pass(10);
    believers.examined(a);
    believers.examined(other);
    hold(a, 1);
    await pass(10);
    believers.lost('returned', 10);
    await pass(10);
    const end = hold(stranger, 2);
    expect(judged()).toEqual([]);
    expect(counters.get('not promised: old primary')).toBe(1);
    end();
    hold(other, 3);
    expect(judged()).toEqual(['exclusion']);
  });

  it('excuses a lease that the clock of the store cut short, for as long as its TTL', async () => {
    const { believers, counters, process, hold, judged, pass } = scene();
    hold(process('a'), 1);
    await pass(10);
    believers.clockSet(40_000);
    await pass(10);
    hold(process('b'), 2);
    expect(judged()).toEqual([]);
    expect(counters.get('not promised: store clock set forward')).toBe(1);
    await pass(BOUND_MS + 1_000);
    expect(judged()).toEqual(['exclusion']);
  });

  it('excuses the holder that a forced revocation meant, and no later one of the same name', () => {
    const { believers, process, hold, judged } = scene();
    const a = process('a');
    believers.revokesByForce({ storeKey: 'lease:k', holder: 'a', fence: 1 });
    const end = hold(a, 1);
    const endOther = hold(process('b'), 2);
    expect(judged()).toEqual([]);
    end();
    endOther();
    hold(a, 3);
    hold(process('c'), 4);
    expect(judged()).toEqual(['exclusion']);
  });
});
