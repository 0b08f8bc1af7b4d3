import { describe, expect, it } from 'vitest';
import type { EventName } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import { open } from '../../src/holdfast.ts';
import type { Intent, StreamStart } from '../../src/intents/intent.ts';
import { mayFollow } from '../../src/intents/intent-session.ts';
import type { IntentOptions } from '../../src/intents/intents.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { SESSION_STATES, startStream } from '../../src/store/port/intent-store.ts';
// The memory store loads it on first use, which takes longer than a clock that is stepped will wait.
import '../../src/store/memory/tables.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { faultyStore } from '../../testing/fakes/faulty-store.ts';

const START_STREAM = startStream('live');

const CALL = { timeoutMs: 1_000 };
const OLD = 'old'.repeat(12);
const NEW = 'new'.repeat(12);
const CHANNEL: StreamStart = { type: 'stream.start', serviceRef: '1:0:19:283D', profile: 'hd' };
const ANN = { tenant: 'acme', client: 'ann' };
const BEN = { tenant: 'acme', client: 'ben' };
const WATCHED: EventName[] = [
  ...(['intent.accepted', 'intent.replayed', 'intent.refused', 'intent.republished'] as const),
  ...(['session.advanced', 'sweep.failed'] as const),
];

function setting() {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  let opened = 0;
  const api = async (options: IntentOptions = {}) => {
    const { store: reached, faults } = faultyStore(store, clock);
    const random = seededRandom(++opened);
    const holdfast = await open(reached, { clock, random, name: `api${opened}`, history: 'off' });
    const happened: string[] = [];
    for (const name of WATCHED) holdfast.on(name, () => happened.push(name));
    return { intents: holdfast.intents(options), holdfast, faults, happened };
  };
  const consume = () =>
    store.streams.consume(START_STREAM, { ...CALL, consumer: 'w', most: 100, claimMs: 1_000 });
  const advance = async (id: string, state: (typeof SESSION_STATES)[number]) => {
    const [found] = await store.intents.read([id], CALL);
    const { revision: ifRevision = 0, status = '{}' } = found ?? {};
    return store.intents.advance(id, { ifRevision, state, status }, CALL);
  };
  return { clock, store, api, consume, advance };
}

describe('Intents: starts', () => {
  it('I-07 two hundred starts at once through two instances are one session, once in the stream', async () => {
    const { api, consume } = setting();
    const [a, b] = [await api(), await api()];
    const starts = Array.from({ length: 200 }, (_, i) => {
      const by = { tenant: 'acme', client: `client-${i}` };
      return (i % 2 === 0 ? a : b).intents.submit(CHANNEL, by);
    });
    const accepted = await Promise.all(starts);
    expect(new Set(accepted.map(({ session }) => session.id)).size).toBe(1);
    expect(accepted.filter(({ isReplay }) => !isReplay)).toHaveLength(1);
    expect(await consume()).toMatchObject([{ value: { session: accepted[0]?.session.id } }]);
    expect(a.happened.concat(b.happened).filter((name) => name === 'intent.accepted')).toHaveLength(
      1,
    );
  });

  it('I-05 during a change of secrets, instances with the old, the new and both secrets find the same session', async () => {
    const { api } = setting();
    const all = [
      await api({ secret: OLD }),
      await api({ secret: NEW, previousSecret: OLD }),
      await api({ secret: OLD }),
      await api({ secret: NEW, previousSecret: OLD }),
    ];
    for (let round = 0; round < 4; round++) {
      const order = [...all.slice(round), ...all.slice(0, round)];
      const channel = { ...CHANNEL, serviceRef: `channel-${round}` };
      const ids = [];
      for (const { intents } of order) ids.push((await intents.submit(channel, ANN)).session.id);
      expect(new Set(ids).size).toBe(1);
    }
  });

  it('I-05 after the change, an instance with only the new secret finds a session of the old one that was requested since', async () => {
    const { api } = setting();
    const before = await (await api({ secret: OLD })).intents.submit(CHANNEL, ANN);
    const during = await (await api({ secret: NEW, previousSecret: OLD })).intents.submit(
      CHANNEL,
      BEN,
    );
    const after = await (await api({ secret: NEW })).intents.submit(CHANNEL, ANN);
    expect([during.session.id, after.session.id]).toEqual([before.session.id, before.session.id]);
  });

  it('I-06 a start does not find a session that has ended: it creates another', async () => {
    const { api, advance } = setting();
    const { intents } = await api({ secret: NEW, previousSecret: OLD });
    const first = await intents.submit(CHANNEL, ANN);
    for (const state of ['STARTING', 'RUNNING'] as const) {
      await advance(first.session.id, state);
      expect((await intents.submit(CHANNEL, ANN)).session.id).toBe(first.session.id);
    }
    await advance(first.session.id, 'ENDED');
    const second = await intents.submit(CHANNEL, ANN);
    expect(second).toMatchObject({ isReplay: false, session: { state: 'NEW' } });
    expect(second.session.id).not.toBe(first.session.id);
  });

  it('I-10 starts with different profiles are different sessions, and both are accepted', async () => {
    const { api } = setting();
    const { intents } = await api();
    const a = await intents.submit(CHANNEL, ANN);
    const b = await intents.submit({ ...CHANNEL, profile: 'sd' }, ANN);
    expect(b).toMatchObject({ isReplay: false, session: { state: 'NEW', profile: 'sd' } });
    expect(b.session.id).not.toBe(a.session.id);
  });

  it('I-01 a start acquires no lease', async () => {
    const { api, store } = setting();
    const { intents, holdfast } = await api();
    await intents.submit(CHANNEL, ANN);
    expect(holdfast.held).toBe(0);
    expect((await store.leases.list('', CALL)).leases).toEqual([]);
  });

  it('the same start of another tenant is another session, which the first tenant does not see', async () => {
    const { api } = setting();
    const { intents } = await api();
    const mine = await intents.submit(CHANNEL, ANN);
    const theirs = await intents.submit(CHANNEL, { tenant: 'other', client: 'ann' });
    expect(theirs.session.id).not.toBe(mine.session.id);
    expect(await intents.session(theirs.session.id, 'acme')).toBeNull();
    expect(await intents.session(theirs.session.id, null)).toMatchObject({ tenant: 'other' });
    const stop: Intent = { type: 'stream.stop', sessionId: theirs.session.id, force: true };
    await expect(intents.submit(stop, ANN)).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' });
  });

  it('I-03 a start writes nothing while the store is unreachable, and works again after that', async () => {
    const { api, store } = setting();
    const { intents, faults } = await api();
    await intents.submit(CHANNEL, ANN);
    faults.refuse = true;
    const other = { ...CHANNEL, serviceRef: 'other' };
    await expect(intents.submit(other, ANN)).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
    expect((await store.intents.list(CALL)).sessions).toHaveLength(1);
    faults.refuse = false;
    expect(await intents.submit(other, ANN)).toMatchObject({ isReplay: false });
  });

  it('I-13 a client without an answer submits again, and gets the session that was created', async () => {
    const { api, clock, consume } = setting();
    const { intents, faults } = await api({ secret: NEW });
    await intents.submit({ ...CHANNEL, serviceRef: 'first' }, ANN);
    await consume();
    faults.loseReplies = true;
    const lost = expect(intents.submit(CHANNEL, ANN)).rejects.toMatchObject({
      code: 'OUTCOME_UNKNOWN',
    });
    await clock.advance(2_000);
    await lost;
    faults.loseReplies = false;
    const again = await intents.submit(CHANNEL, ANN);
    expect(again.isReplay).toBe(true);
    const starts = (await consume()).filter(({ lane }) => lane === again.session.id);
    expect(starts).toMatchObject([{ tries: 1 }]);
  });

  it.each<[string, unknown]>([
    ['type', { type: 'stream.pause' }],
    ['serviceRef', { type: 'stream.start', serviceRef: '' }],
    ['serviceRef', { type: 'stream.start', serviceRef: 'x'.repeat(513) }],
    ['serviceRef', { type: 'stream.start', serviceRef: '\ud800' }],
    ['serviceRef', { type: 'stream.start', serviceRef: 'a\u0000b' }],
    ['serviceRef', { type: 'stream.start', serviceRef: 'a\nb' }],
    ['profile', { ...CHANNEL, profile: '{x}y' }],
    ['startMs', { type: 'vod.start', recordingId: 'r', startMs: -1 }],
    ['startMs', { type: 'vod.start', recordingId: 'r', startMs: 0.5 }],
    ['startMs', { type: 'vod.start', recordingId: 'r', startMs: Number.NaN }],
    ['startMs', { type: 'vod.start', recordingId: 'r', startMs: 1e300 }],
    ['startMs', { type: 'vod.start', recordingId: 'r', startMs: '10500' }],
    ['sessionId', { type: 'stream.stop', sessionId: 'a b' }],
  ])(
    'I-02 refuses an intent for its %s before anything is asked of the store: %j',
    async (field, intent) => {
      const { api } = setting();
      const { intents, faults } = await api();
      faults.hang = true;
      await expect(intents.submit(intent as Intent, ANN)).rejects.toMatchObject({
        ...{ code: 'CONFIG_INVALID', field },
      });
    },
  );
});

describe('Intents: stops', () => {
  it('I-14 a session stops when its last client stops it; a repeated start does not count a client twice', async () => {
    const { api, advance } = setting();
    const { intents } = await api();
    const { session } = await intents.submit(CHANNEL, ANN);
    await intents.submit(CHANNEL, ANN);
    await intents.submit(CHANNEL, BEN);
    expect(await intents.session(session.id, 'acme')).toMatchObject({ clients: 2 });
    await advance(session.id, 'STARTING');
    await advance(session.id, 'RUNNING');
    const stop: Intent = { type: 'stream.stop', sessionId: session.id };
    expect(await intents.submit(stop, ANN)).toMatchObject({
      ...{ isReplay: true, session: { state: 'RUNNING', clients: 1 } },
    });
    expect(await intents.submit(stop, ANN)).toMatchObject({
      session: { state: 'RUNNING', clients: 1 },
    });
    expect(await intents.submit(stop, BEN)).toMatchObject({
      isReplay: false,
      session: { state: 'STOPPING' },
    });
    expect(await intents.submit(stop, BEN)).toMatchObject({
      isReplay: true,
      session: { state: 'STOPPING' },
    });
  });

  it('I-14 force stops a session even if other clients need it', async () => {
    const { api, advance } = setting();
    const { intents } = await api();
    const { session } = await intents.submit(CHANNEL, ANN);
    await intents.submit(CHANNEL, BEN);
    await advance(session.id, 'STARTING');
    const stop: Intent = { type: 'stream.stop', sessionId: session.id, force: true };
    const by = { tenant: null, client: 'root' };
    expect(await intents.submit(stop, by)).toMatchObject({
      session: { state: 'STOPPING', clients: 0 },
    });
  });

  it('I-14 a session that no worker has claimed ends at once, however many starts wait before it', async () => {
    const { api, happened } = await apiWithStarts(300);
    const { session } = await api.submit(CHANNEL, ANN);
    const stopped = await api.submit({ type: 'stream.stop', sessionId: session.id }, ANN);
    expect(stopped.session).toMatchObject({
      state: 'ENDED',
      reason: 'R_STOPPED',
      outcome: 'STOPPED',
    });
    expect(happened.slice(-2)).toEqual(['intent.accepted', 'session.advanced']);
  });

  it('I-20 a stop of an absent session throws SESSION_NOT_FOUND', async () => {
    const { api } = setting();
    const { intents } = await api();
    const stop: Intent = { type: 'stream.stop', sessionId: 'nobody' };
    await expect(intents.submit(stop, ANN)).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' });
    expect(await intents.session('nobody', null)).toBeNull();
    expect(await intents.session('no id', null)).toBeNull();
  });
});

async function apiWithStarts(count: number) {
  const { api } = setting();
  const { intents, happened } = await api();
  const refs = Array.from({ length: count }, (_, i) => ({ ...CHANNEL, serviceRef: `other-${i}` }));
  await Promise.all(refs.map((intent) => intents.submit(intent, ANN)));
  return { api: intents, happened };
}

describe('states of a session', () => {
  it('I-20 states go from NEW over STARTING, RUNNING and STOPPING to ENDED, which is final', () => {
    const allowed = SESSION_STATES.flatMap((from) =>
      SESSION_STATES.filter((to) => mayFollow(from, to)).map((to) => `${from} ${to}`),
    );
    expect(allowed).toEqual([
      ...['NEW STARTING', 'NEW ENDED', 'STARTING RUNNING', 'STARTING STOPPING', 'STARTING ENDED'],
      ...['RUNNING STOPPING', 'RUNNING ENDED', 'STOPPING ENDED'],
    ]);
  });
});

describe('Intents: lists', () => {
  it('a list has the newest sessions first, by kind, state and tenant, page by page', async () => {
    const { api, advance } = setting();
    const { intents } = await api();
    const ids: string[] = [];
    for (let i = 0; i < 7; i++) {
      const intent: Intent =
        i % 2 === 0
          ? { ...CHANNEL, serviceRef: `c${i}` }
          : { type: 'vod.start', recordingId: `r${i}`, startMs: 0 };
      ids.push((await intents.submit(intent, ANN)).session.id);
    }
    await advance(ids[0] as string, 'ENDED');
    await intents.submit(CHANNEL, { tenant: 'other', client: 'x' });
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const from = cursor === undefined ? {} : { cursor };
      const page = await intents.sessions({ tenant: 'acme', kind: 'live', most: 2, ...from });
      expect(page.sessions.length).toBeLessThanOrEqual(2);
      found.push(...page.sessions.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(found).toEqual([ids[6], ids[4], ids[2], ids[0]]);
    const open = await intents.sessions({ tenant: 'acme', kind: 'live', states: ['NEW'] });
    expect(open.sessions.map(({ id }) => id)).toEqual([ids[6], ids[4], ids[2]]);
    const ended = await intents.sessions({ tenant: null, states: ['ENDED'] });
    expect(ended.sessions.map(({ id }) => id)).toEqual([ids[0]]);
  });
});

describe('StartRecoveryLoop', () => {
  it('I-13 starts that the stream has lost are put back, and no others', async () => {
    const { api, clock, consume, store } = setting();
    const { intents, happened } = await api();
    intents.start();
    const lost = await intents.submit(CHANNEL, ANN);
    const [delivery] = await consume();
    await store.streams.ack(
      START_STREAM,
      [{ lane: delivery?.lane ?? '', fence: delivery?.fence ?? 0 }],
      CALL,
    );
    await intents.submit({ ...CHANNEL, serviceRef: 'waits' }, ANN);
    await clock.advance(30_000);
    expect(happened.filter((name) => name === 'intent.republished')).toHaveLength(1);
    const again = (await consume()).map(({ value }) => (value as { session: string }).session);
    expect(again.filter((id) => id === lost.session.id)).toHaveLength(1);
    expect(again).toHaveLength(2);
    await intents.stop();
  });

  it('a failed recovery is reported, and runs again when the store is back', async () => {
    const { api, clock, consume, store } = setting();
    const { intents, faults, happened } = await api();
    intents.start();
    await intents.submit(CHANNEL, ANN);
    const [delivery] = await consume();
    await store.streams.ack(
      START_STREAM,
      [{ lane: delivery?.lane ?? '', fence: delivery?.fence ?? 0 }],
      CALL,
    );
    faults.refuse = true;
    await clock.advance(30_000);
    faults.refuse = false;
    await clock.advance(30_000);
    expect(happened.slice(-2)).toEqual(['sweep.failed', 'intent.republished']);
    await intents.stop();
  });

  it('a stopped recovery leaves no timer', async () => {
    const { api, clock } = setting();
    const { intents, holdfast } = await api();
    intents.start();
    await holdfast.close();
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('Intents: a client that has hung up', () => {
  const GONE = new Error('the client has gone');

  it('I-13 a client is not served if it hung up after its request was read', async () => {
    const { api, store } = setting();
    const { intents, happened } = await api();
    await intents.submit({ ...CHANNEL, profile: 'sd' }, ANN);
    const client = new AbortController();
    const submitted = intents.submit(CHANNEL, ANN, { signal: client.signal });
    client.abort(GONE);
    await expect(submitted).rejects.toBe(GONE);
    expect((await store.intents.list(CALL)).sessions).toHaveLength(1);
    expect(happened).toEqual(['intent.accepted', 'intent.refused']);
  });

  it('I-13 a client is not served if it hung up while the secret was read', async () => {
    const { api, store } = setting();
    const { records } = store;
    const get = records.get.bind(records);
    let answer: () => void = () => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    records.get = async (...asked) => {
      await answered;
      return get(...asked);
    };
    const { intents } = await api();
    const client = new AbortController();
    const submitted = intents.submit(CHANNEL, ANN, { signal: client.signal });
    client.abort(GONE);
    answer();
    await expect(submitted).rejects.toBe(GONE);
    expect((await store.intents.list(CALL)).sessions).toEqual([]);
  });

  it('I-14 a client that hung up does not stop a session that it may have started again elsewhere', async () => {
    const { api } = setting();
    const { intents } = await api();
    const { session } = await intents.submit(CHANNEL, ANN);
    const stop: Intent = { type: 'stream.stop', sessionId: session.id };
    await expect(intents.submit(stop, ANN, { signal: AbortSignal.abort(GONE) })).rejects.toBe(GONE);
    expect(await intents.session(session.id, 'acme')).toMatchObject({ state: 'NEW', clients: 1 });
  });

  it('I-16 a client that hung up leaves no lease', async () => {
    const { api, store } = setting();
    const { intents } = await api({ apiLeases: 'on' });
    const client = new AbortController();
    const submitted = intents.submit(CHANNEL, ANN, { signal: client.signal });
    client.abort(GONE);
    await expect(submitted).rejects.toBe(GONE);
    expect((await store.leases.list('lease:', CALL)).leases).toEqual([]);
  });
});

describe('Intents: leases of the API', () => {
  it('I-16 of two starts of one channel at once, one is accepted and one refused with the time that is left', async () => {
    const { api, store } = setting();
    const [a, b] = [await api({ apiLeases: 'on' }), await api({ apiLeases: 'on' })];
    const results = await Promise.allSettled([
      a.intents.submit(CHANNEL, ANN),
      b.intents.submit(CHANNEL, BEN),
    ]);
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(results.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'LEASE_HELD', expiresInMs: 30_000 },
    });
    expect((await store.intents.list(CALL)).sessions).toHaveLength(1);
    expect(a.happened.concat(b.happened).sort()).toEqual(['intent.accepted', 'intent.refused']);
  });

  it('I-16 K-15 a start during quarantine is refused with the time that is left, and not as held', async () => {
    const { api, store } = setting();
    const { intents, holdfast } = await api({ apiLeases: 'on' });
    const whys: string[] = [];
    holdfast.on('intent.refused', ({ why }) => whys.push(why));
    const busy = { reason: 'quarantine', holder: '', fence: 0, expiresInMs: 20_000 } as const;
    store.leases.acquire = async (requests) => requests.map(() => ({ kind: 'busy', ...busy }));
    await expect(intents.submit(CHANNEL, ANN)).rejects.toMatchObject({
      ...{ code: 'STORE_QUARANTINED', expiresInMs: 20_000 },
    });
    expect(whys).toEqual([
      'the store is in quarantine after data loss, and makes no new grants yet',
    ]);
  });

  it('I-16 a refused tenant does not learn whose session has the channel', async () => {
    const { api } = setting();
    const { intents, holdfast } = await api({ apiLeases: 'on' });
    const whys: string[] = [];
    holdfast.on('intent.refused', ({ why }) => whys.push(why));
    const { session } = await intents.submit(CHANNEL, ANN);
    const theirs = { tenant: 'beta', client: 'x' };
    await expect(intents.submit(CHANNEL, theirs)).rejects.toMatchObject({ code: 'LEASE_HELD' });
    expect(whys).toHaveLength(1);
    expect(whys[0]).not.toContain(session.id);
    expect(whys[0]).not.toContain(holdfast.instanceId);
  });

  it('I-16 the lease goes with the session, and a worker that presents it can renew it', async () => {
    const { api, store, clock } = setting();
    const { intents } = await api({ apiLeases: 'on' });
    const { session } = await intents.submit(CHANNEL, ANN);
    const { key, holder, fence } = session.tenure as NonNullable<typeof session.tenure>;
    await clock.advance(20_000);
    const call = { ...CALL, ttlMs: 30_000, inbox: 'worker' };
    const [reply] = await store.leases.acquire([{ key: `lease:${key}`, holder, fence }], call);
    expect(reply).toEqual({ kind: 'granted', fence });
    expect(key).toBe('service:1:0:19:283D');
  });

  it('I-16 an unused lease is released: the session existed already, or the store took nothing', async () => {
    const { api, store, clock } = setting();
    const phase2 = await api();
    const { session } = await phase2.intents.submit(CHANNEL, ANN);
    const phase1 = await api({ apiLeases: 'on' });
    const again = await phase1.intents.submit(CHANNEL, BEN);
    expect(again).toMatchObject({ isReplay: true, session: { id: session.id } });
    expect((await store.leases.list('', CALL)).leases).toEqual([]);
    await clock.advance(1);
  });

  it('I-16 leases of the API are off by default', async () => {
    const { api } = setting();
    const { intents } = await api();
    const [a, b] = await Promise.all([intents.submit(CHANNEL, ANN), intents.submit(CHANNEL, BEN)]);
    expect(a.session.id).toBe(b.session.id);
    expect(a.session.tenure).toBeUndefined();
  });
});
