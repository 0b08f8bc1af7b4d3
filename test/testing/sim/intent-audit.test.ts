import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/core/random.ts';
import type { Reply } from '../../../src/store/redis/client/wire.ts';
import { type ScriptName, scripts } from '../../../src/store/redis/scripts.ts';
import { Audit } from '../../../testing/sim/audit.ts';
import { Counters } from '../../../testing/sim/counters.ts';
import { SimHost, SimProcess } from '../../../testing/sim/host.ts';
import { loseStarts } from '../../../testing/sim/intent-sight.ts';
import { Timeline } from '../../../testing/sim/timeline.ts';

const WANTED = { type: 'stream.start', target: 'a', profile: 'hd', bucket: '0' };
const STOPPED = JSON.stringify({ reason: 'R_STOPPED', outcome: 'STOPPED', worker: null });
const LANES = 'stream:lanes:intent:start:live';

interface Asked {
  readonly id: string;
  readonly client?: string;
  readonly tenant?: string;
  readonly wanted?: Partial<typeof WANTED>;
  readonly keys?: readonly string[];
}

/** An auditor of intents, whose store says what the test has it say. */
function scene(secrets: 'one' | 'made' = 'one') {
  const timeline = new Timeline();
  const counters = new Counters();
  const audit = new Audit(() => timeline.nowMs, counters);
  /** By command, key and field, without what stands before all keys. */
  const store = new Map<string, Reply>([
    [LANES, 'w 5 1-1'],
    ['stream:bus:5:intent:start:live', [['1-1', ['l', 's']]]],
  ]);
  audit.watchIntents(
    ([command = '', key = '', field = '']) => {
      const name = key.replace('{holdfast}:', '');
      if (command === 'HMGET') return store.get(name) ?? [null, null, null, null, null, null];
      if (field === 'kind') return 'live';
      if (name.startsWith('stream:lane:')) return 1;
      if (name.startsWith('stream:')) return store.get(name) ?? null;
      return store.get(`${command} ${name} ${field}`.trim()) ?? (command === 'HGET' ? null : []);
    },
    { secrets, longestTtlMs: 30_000, graceMs: 3_000 },
  );
  const by = new SimProcess(new SimHost(timeline), 'somebody', seededRandom(1));
  const served = (verb: ScriptName, args: readonly string[], reply: Reply) =>
    audit.served(['EVALSHA', scripts[verb].sha, '1', 'bus', 'channels', ...args], reply, by);
  const ask = ({ id, client = 'c', tenant = 't', wanted, keys = ['k'] }: Asked, reply: Reply) => {
    const body = JSON.stringify({ ...WANTED, ...wanted });
    served(
      'intent/start',
      [id, tenant, client, body, '{}', '5', '{}', 'live', 'a', ...keys],
      reply,
    );
  };
  const make = (asked: Asked) => ask(asked, [1, 7]);
  const replay = (asked: Asked, facts: Reply) => ask(asked, [2, facts, asked.id]);
  const stop = (id: string, client: string, reply: Reply, force = '0') =>
    served('intent/stop', [id, client, force, STOPPED, 't'], reply);
  const change = (id: string, revision: number, state: string, reply?: Reply) =>
    served(
      'intent/advance',
      [id, String(revision), state, state === 'ENDED' ? STOPPED : '{}'],
      reply ?? [1, facts(state, revision + 1)],
    );
  const toEnd = (id: string) => {
    change(id, 1, 'STARTING');
    change(id, 2, 'RUNNING');
    change(id, 3, 'ENDED');
  };
  const broken = () => audit.violation?.invariant ?? null;
  const verbs = { served, make, replay, stop, change, toEnd };
  return { audit, counters, timeline, store, broken, ...verbs };
}

/** As scripts give them. */
function facts(state: string, revision: number, clients = 1): Reply {
  return ['t', state, String(revision), '{}', '{}', String(clients), '7', '7'];
}

function wantedOf(tenant: string, wanted: Partial<typeof WANTED> = {}): string {
  const { type, target, profile, bucket } = { ...WANTED, ...wanted };
  return JSON.stringify([tenant, type, target, profile, bucket]);
}

describe('the auditor finds, about intents', () => {
  it('I-07 I-14 nothing where a session is made, shared, left by one client, stopped by the last and brought to its end', () => {
    const { audit, counters, broken, make, replay, change, stop } = scene();
    make({ id: 's', keys: ['old'] });
    audit.intents?.accepted({ session: 's', wanted: wantedOf('t'), askedMs: 0 });
    replay({ id: 's', client: 'd', keys: ['new', 'old'] }, facts('NEW', 1, 2));
    change('s', 1, 'STARTING', [1, facts('STARTING', 2, 2)]);
    change('s', 1, 'ENDED', [2, facts('STARTING', 2, 2)]);
    stop('s', 'd', [1, facts('STARTING', 2, 1)]);
    stop('s', 'c', [2, facts('STOPPING', 3, 0)]);
    stop('s', 'c', [1, facts('STOPPING', 3, 0)]);
    change('s', 3, 'ENDED', [1, facts('ENDED', 4, 0)]);
    expect(broken()).toBeNull();
    const reached = ['replayed under another secret', 'stopped for one of several'];
    for (const name of [...reached, 'stopped while STARTING', 'session ended'])
      expect(counters.get(name), name).toBe(1);
  });

  it('I-07 I-05 a second session for the same while the first has not ended; not one for another, or after its end', () => {
    const { broken, make, toEnd } = scene();
    make({ id: 's' });
    make({ id: 'of-another-tenant', tenant: 'u' });
    make({ id: 'another-profile', wanted: { profile: 'sd' } });
    make({ id: 'another-bucket', wanted: { bucket: '1' } });
    toEnd('s');
    make({ id: 'next' });
    expect(broken()).toBeNull();
    make({ id: 'second', keys: ['another'] });
    expect(broken()).toBe('intents');
  });

  it('I-06 one that is replayed after it has ended', () => {
    const { broken, make, toEnd, replay } = scene();
    make({ id: 's' });
    toEnd('s');
    replay({ id: 's' }, facts('ENDED', 4));
    expect(broken()).toBe('intents');
  });

  it('I-06 a client that is given one which had ended before it asked, and not one that ended meanwhile', async () => {
    const { audit, timeline, broken, make, toEnd } = scene();
    make({ id: 's' });
    await timeline.run(1_000);
    toEnd('s');
    await timeline.run(2_000);
    audit.intents?.accepted({ session: 's', wanted: wantedOf('t'), askedMs: 500 });
    expect(broken()).toBeNull();
    audit.intents?.accepted({ session: 's', wanted: wantedOf('t'), askedMs: 1_500 });
    expect(broken()).toBe('intents');
  });

  it('I-13 one that is accepted and was never made, and one that is made and not in the stream', () => {
    const never = scene();
    never.audit.intents?.accepted({ session: 's', wanted: wantedOf('t'), askedMs: 0 });
    expect(never.broken()).toBe('intents');
    const lost = scene();
    lost.store.set(LANES, null);
    lost.make({ id: 's' });
    expect(lost.broken()).toBe('intents');
  });

  it('I-04 another than was asked for, by the store and by who tells the client', () => {
    const replayed = scene();
    replayed.make({ id: 's' });
    replayed.replay({ id: 's', tenant: 'u' }, facts('NEW', 1));
    expect(replayed.broken()).toBe('intents');
    const { audit, broken, make } = scene();
    make({ id: 's' });
    audit.intents?.accepted({ session: 's', wanted: wantedOf('t', { target: 'b' }), askedMs: 0 });
    expect(broken()).toBe('intents');
  });

  it('I-14 a stop of one of several that stops it, a last one that does not, and a client that counts twice', () => {
    const several = scene();
    several.make({ id: 's' });
    several.replay({ id: 's', client: 'd' }, facts('NEW', 1, 2));
    several.stop('s', 'c', [2, facts('ENDED', 2, 1)]);
    expect(several.broken()).toBe('intents');
    const last = scene();
    last.make({ id: 's' });
    last.stop('s', 'c', [1, facts('NEW', 1, 0)]);
    expect(last.broken()).toBe('intents');
    const twice = scene();
    twice.make({ id: 's' });
    twice.replay({ id: 's' }, facts('NEW', 1, 2));
    expect(twice.broken()).toBe('sessions');
    const forced = scene();
    forced.make({ id: 's' });
    forced.stop('s', 'somebody', [2, facts('ENDED', 2, 0)], '1');
    expect(forced.broken()).toBeNull();
  });
});

describe('the auditor finds, about sessions', () => {
  it.each([
    ['a state that may not follow', 1, 'RUNNING', undefined],
    ['a change at another revision', 3, 'STARTING', undefined],
    ['a revision that does not grow', 1, 'STARTING', [1, facts('STARTING', 1)]],
  ])('I-20 %s', (_, revision, state, reply) => {
    const { broken, make, change } = scene();
    make({ id: 's' });
    change('s', revision, state, reply);
    expect(broken()).toBe('sessions');
  });

  it.each([
    [null, null],
    ['R_STOPPED', null],
    ['R_NO_TUNER', 'REJECTED_BUSY'],
    ['R_NONE', 'FAILED'],
  ])('I-20 an end with reason %s and outcome %s', (reason, outcome) => {
    const { broken, make, served } = scene();
    make({ id: 's' });
    const status = JSON.stringify({ reason, outcome, worker: 'w' });
    served('intent/advance', ['s', '1', 'ENDED', status], [1, facts('ENDED', 2)]);
    expect(broken()).toBe('sessions');
  });

  it('I-09 I-11 nothing where a session goes from worker to worker, is left, and found again; and counts it', () => {
    const { broken, counters, make, served } = scene();
    make({ id: 's' });
    const says = (revision: number, state: string, worker: string | null) => {
      const status = JSON.stringify({ reason: null, outcome: null, worker });
      const args = ['s', String(revision), state, status];
      served('intent/advance', args, [1, facts(state, revision + 1)]);
    };
    says(1, 'STARTING', 'a');
    served('stream/consume', ['stream', 'b', '1', '9'], [['s', 7, 2, '{}']]);
    says(2, 'RUNNING', 'b');
    says(3, 'RUNNING', null);
    says(4, 'RUNNING', 'c');
    says(5, 'STOPPING', 'c');
    says(6, 'STOPPING', 'a');
    expect(broken()).toBeNull();
    const reached = ['delivered again', 'session recovered', 'session handed over'];
    for (const name of [...reached, 'session gone on with', 'STOPPING session recovered'])
      expect(counters.get(name), name).toBe(1);
  });

  it('I-20 a change after the end', () => {
    const { broken, make, toEnd, change } = scene();
    make({ id: 's' });
    toEnd('s');
    change('s', 4, 'ENDED');
    expect(broken()).toBe('sessions');
  });

  it('I-06 an end after which a key still leads to it', () => {
    const { broken, store, make, toEnd } = scene();
    make({ id: 's' });
    store.set('HGET intent:keys k', 's');
    toEnd('s');
    expect(broken()).toBe('sessions');
  });

  it('I-20 what the store shows and what it was told not being the same', () => {
    const { broken, store, make, change } = scene();
    make({ id: 's' });
    store.set('intent:session:s', facts('NEW', 1));
    change('s', 1, 'STARTING');
    expect(broken()).toBe('sessions');
  });

  it('I-13 one that is started once more, and is not new', () => {
    const { broken, make, served, change } = scene();
    make({ id: 's' });
    served('intent/republish', ['s', '{}'], [1]);
    expect(broken()).toBeNull();
    change('s', 1, 'STARTING');
    served('intent/republish', ['s', '{}'], [1]);
    expect(broken()).toBe('sessions');
  });

  it('I-06 one that is forgotten, or can not be stopped, before its end', () => {
    const pruned = scene();
    pruned.make({ id: 's' });
    pruned.toEnd('s');
    pruned.served('intent/prune', ['9', '500'], [1, 1]);
    pruned.stop('s', 'c', null);
    expect(pruned.broken()).toBeNull();
    pruned.make({ id: 'open' });
    pruned.served('intent/prune', ['9', '500'], [1, 1]);
    expect(pruned.broken()).toBe('sessions');
    const { broken, make, stop } = scene();
    make({ id: 's' });
    stop('s', 'c', null);
    expect(broken()).toBe('sessions');
  });
});

describe('the auditor of intents', () => {
  it('blames nobody for what the store has lost: what it still knows counts', () => {
    const { audit, counters, store, broken, make, change } = scene();
    make({ id: 'lost' });
    make({ id: 'kept', tenant: 'u' });
    change('kept', 1, 'STARTING');
    store.set('intent:session:kept', facts('NEW', 1));
    store.set('HKEYS intent:session:kept', ['tenant', 'c:c']);
    audit.storeForgot();
    audit.intents?.accepted({ session: 'lost', wanted: wantedOf('t'), askedMs: 0 });
    make({ id: 'next' });
    store.set('intent:session:kept', facts('STARTING', 2));
    change('kept', 1, 'STARTING');
    expect(broken()).toBeNull();
    expect(counters.get('session lost with the store')).toBe(1);
    make({ id: 'second', tenant: 'u' });
    expect(broken()).toBe('intents');
  });

  it('blames nobody for sessions of which some keys were deleted by hand', () => {
    const { audit, store, broken, make } = scene();
    make({ id: 's' });
    store.set('intent:session:s', facts('NEW', 1));
    audit.storeForgot({ isTorn: true, isSilent: true });
    make({ id: 'second' });
    expect(broken()).toBeNull();
    make({ id: 'third' });
    expect(broken()).toBe('intents');
  });

  it.each([
    ['made', true, null],
    ['made', false, 'intents'],
    ['one', true, 'intents'],
  ] as const)(
    'I-05 where secrets are %s, and a loss of data is silent: %s, for two sessions blames: %s',
    (secrets, isSilent, found) => {
      const { audit, store, broken, make } = scene(secrets);
      store.set('EXISTS secret:idempotency', 0);
      audit.storeForgot({ isSilent });
      make({ id: 's' });
      make({ id: 'second' });
      expect(broken()).toBe(found);
    },
  );

  it('I-14 finds a session that takes long to stop although nothing is wrong; not one that was told before that', async () => {
    for (const isCalm of [true, false]) {
      const { audit, timeline, broken, make, change, stop } = scene();
      make({ id: 's' });
      change('s', 1, 'STARTING');
      if (isCalm) audit.intents?.calmBegins();
      await timeline.run(1_000);
      stop('s', 'c', [2, facts('STOPPING', 3, 0)]);
      if (!isCalm) audit.intents?.calmBegins();
      await timeline.run(100_000);
      change('s', 3, 'ENDED', [1, facts('ENDED', 4, 0)]);
      expect(broken()).toBe(isCalm ? 'healing' : null);
    }
  });

  it('I-13 finds a session that does not come to its end once nothing is wrong any more, and starts that nobody accepts', async () => {
    const { audit, timeline, broken, make } = scene();
    make({ id: 's' });
    audit.intents?.accepted({ session: 's', wanted: wantedOf('t'), askedMs: 0 });
    audit.intents?.checkHealed(0);
    expect(broken()).toBeNull();
    await timeline.run(200_000);
    const wanted = wantedOf('t');
    audit.intents?.accepted({ session: 's', wanted, askedMs: 0 });
    audit.intents?.checkHealed(100_000);
    expect(broken()).toBe('healing');
    const idle = scene();
    idle.audit.intents?.checkHealed(1);
    expect(idle.broken()).toBe('healing');
  });
});

describe('what waits in the stream of starts', () => {
  it.each([
    [0, ['XDEL', '{holdfast}:stream:bus:5:intent:start:live', '1-1']],
    [0.5, ['DEL', '{holdfast}:stream:lane:{intent:start:live}:s']],
    [0.9, ['HDEL', '{holdfast}:stream:lanes:intent:start:live', 's']],
  ])(
    'I-13 is lost in one of three ways (%s), and what somebody has in hands is not',
    (choice, lost) => {
      const asked: (readonly string[])[] = [];
      const lanes = ['s', 'w 5 1-1', 'in-hands', 'h 7 1 i0.1', 'started', 'w 5 2-1'];
      const ids = loseStarts((args) => {
        if (args[0] === 'HGETALL') return args[1]?.endsWith(':live') ? lanes : [];
        if (args[0] === 'HGET') return args[1]?.endsWith(':s') ? 'NEW' : 'STARTING';
        asked.push(args);
        return 1;
      }, choice);
      expect(asked).toEqual([lost]);
      expect(ids).toEqual(['s']);
    },
  );
});
