import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/core/random.ts';
import type { Reply } from '../../../src/store/redis/client/wire.ts';
import { scripts } from '../../../src/store/redis/scripts.ts';
import { Audit } from '../../../testing/sim/audit.ts';
import { Counters } from '../../../testing/sim/counters.ts';
import { SimHost, SimProcess } from '../../../testing/sim/host.ts';
import { Timeline } from '../../../testing/sim/timeline.ts';

function scene() {
  const timeline = new Timeline();
  const counters = new Counters();
  const audit = new Audit(() => timeline.nowMs, counters);
  const host = new SimHost(timeline);
  const process = (name: string) => new SimProcess(host, name, seededRandom(1));
  const somebody = process('somebody');
  const claim = (of: SimProcess, isValid: () => boolean = () => true) =>
    audit.claim({ process: of, target: 't', isValid });
  const acquired = (holder: string, reply: Reply) =>
    audit.served(
      [
        'EVALSHA',
        scripts['lease/acquire'].sha,
        '2',
        'marker',
        'k',
        'era',
        '1000',
        'inbox',
        holder,
        '',
      ],
      [reply],
      somebody,
    );
  const transferred = (successor: string, fence: number) =>
    audit.served(
      [
        'EVALSHA',
        scripts['lease/transfer'].sha,
        '1',
        'k',
        '2000',
        'era',
        '9000',
        'a',
        '1',
        successor,
        'inbox',
      ],
      [fence],
      somebody,
    );
  const put = (fence: string, reply: Reply) =>
    audit.served(
      [
        'EVALSHA',
        scripts['record/put'].sha,
        '2',
        'index',
        'result:t',
        '1000',
        't',
        '{}',
        fence,
        '',
      ],
      [reply],
      somebody,
    );
  const revoked = (force: '0' | '1', remainingMs: number) =>
    audit.served(
      ['EVALSHA', scripts['lease/revoke'].sha, '1', 'poll:lease:t', '!revoked', force, '60000'],
      ['a', 6, remainingMs],
      somebody,
    );
  return { audit, counters, process, claim, acquired, transferred, put, revoked, timeline };
}

describe('the auditor finds', () => {
  it('K-01 exclusion: two processes that both may work, and not one that is frozen, dead or knows better', () => {
    const { audit, process, claim } = scene();
    const [a, b] = [process('a'), process('b')];
    claim(a);
    claim(a);
    audit.settled();
    expect(audit.violation).toBeNull();
    const end = claim(b, () => false);
    audit.settled();
    expect(audit.violation).toBeNull();
    end();
    claim(b);
    b.freeze(10);
    audit.settled();
    expect(audit.violation).toBeNull();
    const c = process('c');
    claim(c);
    c.kill();
    audit.settled();
    expect(audit.violation).toBeNull();
    claim(process('d'));
    audit.settled();
    expect(audit.violation).toMatchObject({ invariant: 'exclusion', target: 't' });
  });

  it('whether a target is taken: by whom it may be worked on now', () => {
    const { audit, process, claim } = scene();
    expect(audit.isTaken('t')).toBe(false);
    claim(process('a'), () => false);
    expect(audit.isTaken('t')).toBe(false);
    claim(process('b'));
    expect(audit.isTaken('t')).toBe(true);
  });

  it('nothing about a process that is gone', () => {
    const { audit, process, claim } = scene();
    const [a, b] = [process('a'), process('b')];
    claim(a);
    audit.forget(a);
    claim(b);
    audit.settled();
    expect(audit.violation).toBeNull();
  });

  it('K-11 fencing: a write that was taken with a lower fence after a higher one', () => {
    const { audit } = scene();
    audit.written({ target: 't', fence: 2, by: 'b' }, true);
    audit.written({ target: 't', fence: 1, by: 'a' }, false);
    expect(audit.violation).toBeNull();
    audit.written({ target: 't', fence: 1, by: 'a' }, true);
    expect(audit.violation).toMatchObject({ invariant: 'fencing' });
  });

  it('K-11 fencing: the same of a record in the store, unless the store has lost what it knew', () => {
    const { audit, put } = scene();
    put('2', [1, 1]);
    put('1', [2, 2]);
    expect(audit.violation).toBeNull();
    audit.storeForgot();
    put('1', [1, 1]);
    expect(audit.violation).toBeNull();
    put('3', [1, 2]);
    put('2', [1, 3]);
    expect(audit.violation).toMatchObject({ invariant: 'fencing' });
  });

  it('K-02 tenures: one fence for two holders, granted or written with', () => {
    const granted = scene();
    granted.acquired('a', 5);
    granted.acquired('a', 5);
    expect(granted.audit.violation).toBeNull();
    granted.acquired('b', 5);
    expect(granted.audit.violation).toMatchObject({ invariant: 'tenures' });
    const written = scene();
    written.audit.written({ target: 't', fence: 5, by: 'a' }, true);
    written.audit.written({ target: 't', fence: 5, by: 'b' }, false);
    expect(written.audit.violation).toMatchObject({ invariant: 'tenures' });
  });

  it('K-02 grants: a fence that is lower than one before, however it was granted', () => {
    const { audit, acquired, transferred } = scene();
    acquired('a', 5);
    acquired('b', ['a', 5, 100]);
    transferred('b', 6);
    acquired('b', 7);
    expect(audit.violation).toBeNull();
    acquired('c', 4);
    expect(audit.violation).toMatchObject({ invariant: 'grants' });
  });

  it('K-02 grants: a fence that is granted again after a higher one, also to the same holder', () => {
    const { audit, acquired } = scene();
    acquired('a', 5);
    acquired('a', 6);
    expect(audit.violation).toBeNull();
    acquired('a', 5);
    expect(audit.violation).toMatchObject({ invariant: 'grants' });
  });

  it('who claimed what was handed to it, and what nobody did', () => {
    const { counters, acquired, transferred } = scene();
    transferred('b', 6);
    acquired('b', 7);
    transferred('c', 8);
    acquired('a', 9);
    expect(counters.get('transfer claimed')).toBe(1);
    expect(counters.get('transfer never claimed')).toBe(1);
  });
});

describe('an excuse', () => {
  it('covers what it names, for as long as it says, and counts', async () => {
    const { audit, counters, timeline } = scene();
    audit.excuse({ invariants: ['exclusion'], untilMs: 100 });
    audit.report('exclusion', 't', 'two owners');
    expect(audit.violation).toBeNull();
    expect(counters.get('excused: exclusion')).toBe(1);
    await timeline.run(101);
    audit.report('exclusion', 't', 'two owners');
    expect(audit.violation).toMatchObject({ invariant: 'exclusion' });
  });

  it('covers what is written later with a fence that was granted twice meanwhile', async () => {
    const { audit, acquired, timeline } = scene();
    audit.excuse({ invariants: ['tenures'], untilMs: 10 });
    acquired('a', 5);
    acquired('b', 5);
    await timeline.run(20);
    audit.written({ target: 'k', fence: 5, by: 'a' }, true);
    audit.written({ target: 'k', fence: 5, by: 'b' }, true);
    expect(audit.violation).toBeNull();
    audit.written({ target: 'k', fence: 6, by: 'a' }, true);
    audit.written({ target: 'k', fence: 6, by: 'b' }, true);
    expect(audit.violation?.invariant).toBe('tenures');
  });

  it('covers nothing else', () => {
    const { audit } = scene();
    audit.excuse({ invariants: ['exclusion'], untilMs: 100 });
    audit.report('fencing', 't', 'went back');
    expect(audit.violation).toMatchObject({ invariant: 'fencing' });
  });

  it('comes with a revocation by force, of its target, for as long as the revoked holder may act', async () => {
    const { audit, revoked, timeline } = scene();
    revoked('1', 5_000);
    audit.report('exclusion', 'poll:t', 'two owners');
    await timeline.run(6_000);
    audit.report('exclusion', 'poll:t', 'two owners');
    expect(audit.violation).toBeNull();
    audit.report('exclusion', 'poll:other', 'two owners');
    expect(audit.violation).toMatchObject({ target: 'poll:other' });
    const patient = scene();
    patient.revoked('0', 5_000);
    patient.audit.report('exclusion', 'poll:t', 'two owners');
    expect(patient.audit.violation).toMatchObject({ target: 'poll:t' });
  });

  it('may cover some processes only', () => {
    const { audit, process } = scene();
    const [a, b, newcomer] = [process('a'), process('b'), process('c')];
    const concerns = (one: SimProcess) => one === newcomer;
    audit.excuse({ invariants: ['exclusion'], untilMs: 100, concerns });
    audit.report('exclusion', 't', 'two owners', [a, newcomer]);
    expect(audit.violation).toBeNull();
    audit.report('exclusion', 't', 'two owners', [a, b]);
    expect(audit.violation).toMatchObject({ invariant: 'exclusion' });
  });
});
