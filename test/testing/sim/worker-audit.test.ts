import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/core/random.ts';
import type { Reply } from '../../../src/store/redis/client/wire.ts';
import { scripts } from '../../../src/store/redis/scripts.ts';
import { Audit } from '../../../testing/sim/audit.ts';
import { Counters } from '../../../testing/sim/counters.ts';
import { SimHost, SimProcess } from '../../../testing/sim/host.ts';
import { Timeline } from '../../../testing/sim/timeline.ts';
import { SimWorkerHost } from '../../../testing/sim/worker-host.ts';

const TTL_MS = 30_000;
const GRACE_MS = 3_000;
/** Longer than a step, and what stopping takes. */
const LONG_MS = 20_000;
const WANTED = JSON.stringify({ type: 'stream.start', target: 'a', profile: 'hd', bucket: '0' });

/** An auditor of what workers run, whose store says what the test has it say. */
function scene() {
  const timeline = new Timeline();
  const counters = new Counters();
  const audit = new Audit(() => timeline.nowMs, counters);
  const held = new Map<string, string>();
  const peek = ([command = '', key = '']: readonly string[]): Reply => {
    if (command === 'GET') return held.get(key) ?? null;
    if (command === 'HMGET') return [null, null, null, null, null, null];
    if (command === 'HGET') return 'w 5 1-1';
    return command === 'EXISTS' ? 1 : [['1-1', []]];
  };
  audit.watchIntents(peek, { secrets: 'one', longestTtlMs: TTL_MS, graceMs: GRACE_MS });
  const here = new SimHost(timeline);
  const process = (name: string, host = new SimHost(timeline)) =>
    new SimProcess(host, name, seededRandom(1));
  const begin = (of: SimProcess, given: { isDeaf?: boolean; isValid?: () => boolean } = {}) => {
    const things = new Set(['slot:tuner:1', 'session:s']);
    const { isDeaf = false, isValid = () => true } = given;
    const run = audit.workers?.begun({ process: of, session: 's', things, isDeaf, isValid });
    audit.settled();
    return run;
  };
  const grant = (by: SimProcess, holder: string, fence: number, key = 'lease:tuner:1') => {
    held.set(key, holder);
    const args = ['2', 'marker', key, 'era', '1000', 'inbox', holder, ''];
    audit.served(['EVALSHA', scripts['lease/acquire'].sha, ...args], [fence], by);
  };
  const release = (by: SimProcess, holder: string, fence: number, reply: Reply = []) => {
    const args = ['1', 'lease:tuner:1', holder, String(fence)];
    audit.served(['EVALSHA', scripts['lease/release'].sha, ...args], reply, by);
  };
  const session = (
    by: SimProcess,
    verb: 'intent/start' | 'intent/advance',
    args: string[],
    reply: Reply,
  ) =>
    audit.served(['EVALSHA', scripts[verb].sha, '1', 'bus', 'channels', 's', ...args], reply, by);
  const made = (by: SimProcess) =>
    session(by, 'intent/start', ['t', 'c', WANTED, '{}', '5', '{}', 'k'], [1, 7]);
  const state = (by: SimProcess, revision: number, name: string, status: object = {}) => {
    const json = JSON.stringify({ worker: by.name, ...status });
    const facts = ['t', name, String(revision + 1), '{}', json, '1', '7', '7'];
    session(by, 'intent/advance', [String(revision), name, json], [1, facts]);
  };
  const broken = () => audit.violation?.invariant ?? null;
  const later = (ms: number) => timeline.run(timeline.nowMs + ms);
  const verbs = { begin, grant, release, made, state, later };
  return { audit, counters, held, here, process, broken, ...verbs };
}

describe('the auditor finds, about slots', () => {
  it('I-08 two pipelines on one slot at once, in two processes and in one, and not one after the other', () => {
    const two = scene();
    two.begin(two.process('a'))?.over(true);
    two.begin(two.process('b'));
    expect(two.broken()).toBeNull();
    two.begin(two.process('c'));
    expect(two.broken()).toBe('slots');
    const { broken, begin, process } = scene();
    const a = process('a');
    begin(a);
    begin(a);
    expect(broken()).toBe('slots');
  });

  it('I-15 one that may not go on, and is not gone when the next begins', async () => {
    const { broken, begin, process, later } = scene();
    await later(LONG_MS);
    begin(process('a'), { isValid: () => false });
    begin(process('b'));
    expect(broken()).toBe('slots');
  });

  it('I-15 not one whose process is frozen, or has just thawed; but one that goes on after that', async () => {
    const { audit, broken, begin, process, later } = scene();
    await later(LONG_MS);
    const a = process('a');
    begin(a, { isValid: () => false });
    a.freeze(LONG_MS);
    begin(process('b'));
    await later(LONG_MS + GRACE_MS);
    audit.settled();
    expect(broken()).toBeNull();
    await later(LONG_MS);
    audit.settled();
    expect(broken()).toBe('slots');
  });

  it('I-15 not one that is known not to stop in time, unless it believes that it may go on; nor what is dead', async () => {
    const { audit, broken, begin, process, later } = scene();
    await later(LONG_MS);
    const [a, b] = [process('a'), process('b')];
    begin(a, { isDeaf: true, isValid: () => false });
    begin(b);
    expect(broken()).toBeNull();
    audit.forget(b);
    begin(process('c'));
    expect(broken()).toBeNull();
    begin(process('d'), { isDeaf: true });
    expect(broken()).toBe('slots');
  });

  it('I-08 a tenure that is let go of while what it was granted for still runs, however long that takes', () => {
    const { broken, process, begin, grant, release } = scene();
    const a = process('a');
    grant(a, 'a/other', 7);
    const run = begin(a, { isDeaf: true, isValid: () => false });
    release(a, 'a/other', 7);
    grant(a, 'a/s', 8);
    run?.over(false);
    release(a, 'a/s', 8);
    expect(broken()).toBeNull();
    grant(a, 'a/s', 9);
    begin(a, { isDeaf: true, isValid: () => false });
    release(a, 'a/s', 9);
    expect(broken()).toBe('slots');
  });

  it('I-08 a tenure that is let go of when its pipeline has ended by itself, before the store knows; and not when it was told to end', () => {
    for (const [isByItself, isSaid, found] of [
      [true, false, 'slots'],
      [true, true, null],
      [false, false, null],
    ] as const) {
      const { broken, process, begin, grant, release, made, state } = scene();
      const a = process('a');
      made(a);
      state(a, 1, 'STARTING');
      grant(a, 'a/s', 7);
      begin(a)?.over(isByItself);
      if (isSaid) state(a, 2, 'STOPPING');
      release(a, 'a/s', 7);
      expect(broken()).toBe(found);
    }
  });

  it('B-11 not a tenure that is let go of after a failure that the store has counted', () => {
    const { audit, broken, process, begin, grant, release, made, state } = scene();
    const a = process('a');
    made(a);
    state(a, 1, 'STARTING');
    grant(a, 'a/s', 7);
    begin(a)?.over(true);
    audit.workers?.retried('s', 1_000, a);
    release(a, 'a/s', 7);
    expect(broken()).toBeNull();
  });

  it('I-09 a session that has ended, and runs; and one that has a lease then, if nothing is wrong', () => {
    const end = { reason: 'R_WORKER_LOST', outcome: 'FAILED' };
    const running = scene();
    const [a, b] = [running.process('a'), running.process('b')];
    running.made(a);
    running.begin(a);
    running.state(b, 1, 'ENDED', end);
    expect(running.broken()).toBe('slots');
    for (const isCalm of [false, true]) {
      const { audit, broken, process, grant, made, state } = scene();
      const c = process('c');
      made(c);
      grant(c, 'c/s', 7);
      if (isCalm) audit.workers?.calmBegins();
      state(c, 1, 'ENDED', end);
      expect(broken()).toBe(isCalm ? 'slots' : null);
    }
  });

  it('I-12 a tenure that is freed by another process, unless the one that had it is dead, on the same machine', () => {
    const { counters, broken, here, process, grant, release } = scene();
    const [a, b] = [process('a', here), process('b', here)];
    grant(a, 'a/s', 7);
    release(a, 'a/s', 7);
    grant(a, 'a/s', 8);
    a.kill();
    release(b, 'a/s', 8, [[1, 'c/s', 9]]);
    expect(counters.get('freed after a death')).toBe(0);
    release(b, 'a/s', 8);
    expect(counters.get('freed after a death')).toBe(1);
    expect(broken()).toBeNull();
    grant(b, 'b/s', 9);
    release(process('c', here), 'b/s', 9);
    expect(broken()).toBe('slots');
  });

  it('I-12 one that is freed from another machine, where nobody can know', () => {
    const { broken, process, grant, release } = scene();
    const a = process('a');
    grant(a, 'a/s', 7);
    a.kill();
    release(process('b'), 'a/s', 7);
    expect(broken()).toBe('slots');
  });

  it('I-08 a lease that a session has when it has ended long ago; not one that runs out', async () => {
    for (const isLeft of [false, true]) {
      const { audit, broken, held, process, grant, made, state, later } = scene();
      const a = process('a');
      made(a);
      grant(a, 'a/s', 7);
      state(a, 1, 'ENDED', { reason: 'R_STOPPED', outcome: 'STOPPED' });
      await later(2 * TTL_MS);
      if (!isLeft) held.clear();
      audit.workers?.ended('another');
      expect(broken()).toBe(isLeft ? 'slots' : null);
    }
  });
});

describe('the auditor finds, once nothing is wrong any more', () => {
  it('B-11 not a session that waits for its next try, but one that waits for too long', async () => {
    for (const [passedMs, found] of [
      [0, null],
      [3 * LONG_MS, 'healing'],
    ] as const) {
      const { audit, broken, process, made, state, later } = scene();
      const a = process('a');
      made(a);
      state(a, 1, 'STARTING');
      state(a, 2, 'RUNNING');
      audit.workers?.retried('s', LONG_MS, a);
      await later(LONG_MS + passedMs);
      audit.workers?.checkHealed(audit.intents?.running() ?? [], () => true);
      expect(broken()).toBe(found);
    }
  });

  it('I-11 a session that is RUNNING, and does not run, or elsewhere', async () => {
    for (const [of, found] of [
      ['a', null],
      ['b', 'healing'],
      ['', 'healing'],
    ] as const) {
      const { audit, broken, process, begin, made, state, later } = scene();
      const a = process('a');
      made(a);
      state(a, 1, 'STARTING');
      state(a, 2, 'RUNNING');
      await later(LONG_MS);
      if (of !== '') begin(of === 'a' ? a : process(of));
      audit.workers?.checkHealed(audit.intents?.running() ?? [], () => true);
      expect(broken()).toBe(found);
    }
  });

  it('I-11 a slot that stays taken; not one that was given to another meanwhile, or that no session has', () => {
    for (const [next, isSession, found] of [
      ['a/s', true, 'healing'],
      ['a/s', false, null],
      ['b/s', true, null],
    ] as const) {
      const { audit, broken, process, grant } = scene();
      grant(process('a'), 'a/s', 7);
      audit.workers?.calmBegins();
      if (next === 'b/s') grant(process('b'), next, 8);
      audit.workers?.checkHealed([], () => isSession);
      expect(broken()).toBe(found);
    }
  });
});

describe('a simulated machine', () => {
  it('I-12 gives a lock to one process at a time, and to the next when it is given back, or soon after its owner is dead', async () => {
    const { here, process, later } = scene();
    const [a, b] = [process('a', here), process('b', here)];
    const [ofA, ofB] = [new SimWorkerHost(a, 'm'), new SimWorkerHost(b, 'm')];
    const lock = await ofA.lock('w');
    expect(await ofB.lock('w')).toBeNull();
    lock?.close();
    expect(await ofB.lock('w')).not.toBeNull();
    expect([ofA.isAlive('b'), ofA.self]).toEqual([true, 'a']);
    b.kill();
    expect(ofA.isAlive('b')).toBe(false);
    await later(1_000);
    expect(await ofA.lock('w')).not.toBeNull();
    lock?.close();
    expect(await ofA.endGroup()).toBe(true);
  });
});
