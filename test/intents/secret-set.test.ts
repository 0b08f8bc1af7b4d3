import { describe, expect, it } from 'vitest';
import { Emitter, type EventName } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import { untraced } from '../../src/core/tracing.ts';
import { type SecretOptions, SecretSet } from '../../src/intents/secret-set.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { faultyStore } from '../../testing/fakes/faulty-store.ts';

const OLD = 'old'.repeat(12);
const NEW = 'new'.repeat(12);
const WATCHED: EventName[] = ['secret.created', 'secret.differs'];

function setting() {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  let made = 0;
  const instance = (options: SecretOptions = {}) => {
    const events = new Emitter();
    const happened: string[] = [];
    for (const name of WATCHED) events.on(name, () => happened.push(name));
    const { store: reached, faults } = faultyStore(store, clock);
    const random = seededRandom(++made);
    const rt = { store: reached, clock, random, events, tracing: untraced, instanceId: 'api' };
    const secrets = new SecretSet(rt, options);
    const all = async () => (await secrets.all()).map(String);
    return {
      all,
      refresh: () => secrets.refresh(),
      isMissing: () => secrets.isMissing,
      happened,
      events,
      faults,
    };
  };
  const lose = () => store.records.remove('secret', [{ id: 'idempotency' }], { timeoutMs: 1_000 });
  return { instance, lose };
}

describe('SecretSet', () => {
  it('I-05 without a configured secret, one is generated for all instances, and an event warns of it', async () => {
    const { instance } = setting();
    const [a, b] = [instance(), instance()];
    const [first, second] = await Promise.all([a.all(), b.all()]);
    expect(first).toEqual(second);
    expect(Buffer.from(first[0] as string, 'hex')).toHaveLength(32);
    expect([...a.happened, ...b.happened]).toEqual(['secret.created']);
  });

  it('I-05 a generated secret outlives every instance', async () => {
    const { instance } = setting();
    const before = await instance().all();
    const later = instance();
    expect(await later.all()).toEqual(before);
    expect(later.happened).toEqual([]);
  });

  it('I-05 the current secret comes first, then the previous one', async () => {
    const { instance } = setting();
    expect(await instance({ secret: NEW, previousSecret: OLD }).all()).toEqual([NEW, OLD]);
  });

  it('I-05 a generated secret stays known after others are configured', async () => {
    const { instance } = setting();
    const [made] = await instance().all();
    expect(await instance({ secret: NEW }).all()).toEqual([NEW, made]);
    expect(await instance().all()).toEqual([made]);
  });

  it('I-05 an instance without a secret throws SECRET_MISSING if others have one configured', async () => {
    const { instance } = setting();
    await instance({ secret: OLD }).all();
    const bare = instance();
    await expect(bare.all()).rejects.toMatchObject({ code: 'SECRET_MISSING' });
    expect(bare.isMissing()).toBe(true);
  });

  it('I-05 a change of secrets is reported only if the previous one is not configured', async () => {
    const { instance } = setting();
    await instance({ secret: OLD }).all();
    const careful = instance({ secret: NEW, previousSecret: OLD });
    await careful.all();
    const careless = instance({ secret: 'x'.repeat(32) });
    await careless.all();
    expect([careful.happened, careless.happened]).toEqual([[], ['secret.differs']]);
  });

  it('I-05 a generated secret is put back after the store has lost it', async () => {
    const { instance, lose } = setting();
    const a = instance();
    const before = await a.all();
    await lose();
    a.events.emit('store.forgot', { store: 'memory', why: 'it was restarted empty' });
    expect(await a.all()).toEqual(before);
    expect(await instance().all()).toEqual(before);
  });

  it('I-05 an instance reads the secret again after its connection broke, because another may have generated one', async () => {
    const { instance, lose } = setting();
    const a = instance();
    await a.all();
    await lose();
    const made = await instance().all();
    a.events.emit('store.disconnected', { store: 'memory', why: 'connection reset by peer' });
    expect(await a.all()).toEqual(made);
  });

  it('I-05 refresh puts a lost generated secret back, or takes over the next one', async () => {
    const { instance, lose } = setting();
    const a = instance();
    const before = await a.all();
    await lose();
    await a.refresh();
    expect(await instance().all()).toEqual(before);
    await lose();
    const made = await instance().all();
    expect(await a.all()).toEqual(before);
    await a.refresh();
    expect(await a.all()).toEqual(made);
  });

  it('I-05 a known secret counts while the store is unavailable, and a configured one is never read', async () => {
    const { instance } = setting();
    const a = instance();
    const before = await a.all();
    const configured = instance({ secret: NEW });
    await configured.all();
    for (const { faults } of [a, configured]) faults.refuse = true;
    await expect(a.refresh()).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
    expect(await a.all()).toEqual(before);
    await configured.refresh();
  });

  it('a failed read of secrets is tried again', async () => {
    const { instance } = setting();
    const a = instance();
    a.faults.refuse = true;
    await expect(a.all()).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
    a.faults.refuse = false;
    expect(await a.all()).toHaveLength(1);
  });

  it.each([
    [{ secret: 'x'.repeat(31) }, 'secret'],
    [{ secret: '' }, 'secret'],
    [{ secret: NEW, previousSecret: 'short' }, 'previousSecret'],
    [{ previousSecret: OLD }, 'previousSecret'],
  ])('refuses %j, and does not repeat it', (options, field) => {
    const made = () => setting().instance(options);
    expect(made).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID', field }));
    expect(made).not.toThrow(/short|xxx|old|''/);
  });
});
