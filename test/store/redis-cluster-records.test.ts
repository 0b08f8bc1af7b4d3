import { describe, expect, it } from 'vitest';
import { Emitter } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import { keysOf } from '../../src/store/redis/keys.ts';
import type { PrimaryServer } from '../../src/store/redis/topology/primary-server.ts';
import type { Part, Servers, Work } from '../../src/store/redis/topology/servers.ts';
import { RedisRecords } from '../../src/store/redis/verbs/records.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { SimRedis } from '../../testing/sim-redis/server.ts';
import fc from '../support/fast-check.ts';

// On a Cluster a record and the index of its collection lie on different servers, so every change takes several requests. Here a test
// decides in which order the requests of several clients arrive.

const CALL = { timeoutMs: 5_000 };

interface Request {
  readonly verb: string;
  arrive(): void;
}

/** Several clients of one store whose records and indexes lie apart. */
function scene() {
  const clock = new FakeClock();
  const [wallMs, nowMs] = [() => clock.wallMs(), () => clock.monotonicMs()];
  const server = new SimRedis({ wallMs, nowMs, random: seededRandom(1) });
  const link = server.connect(() => {});
  const waiting: Request[] = [];
  let isOrdered = false;

  /** One key at a time, as on a Cluster. */
  function execute({ script, keys, perKey, head, before }: Work): Part[] {
    return keys.map((key, from) => {
      const args = [...(head?.({} as PrimaryServer) ?? []), ...(perKey[from] ?? [])];
      const all = before === undefined ? [key] : [key, key];
      const words = ['EVAL', script.source, String(all.length), ...all, ...args];
      const reply = server.execute(link, words);
      return { kind: 'reply', from, count: 1, reply, primary: {} as PrimaryServer };
    });
  }

  const servers = {
    name: 'cluster',
    shardOf: (key: string) => key,
    run: async (work: Work) => {
      const { operation: verb } = work.script;
      if (isOrdered) await new Promise<void>((arrive) => waiting.push({ verb, arrive }));
      return execute(work);
    },
    scan: async (pattern: string) => {
      const words = ['SCAN', '0', 'MATCH', pattern, 'COUNT', '1000'];
      const [, names] = server.execute(link, words) as [string, string[]];
      return { names };
    },
  } as unknown as Servers;
  const rt = { clock, random: seededRandom(1), events: new Emitter() };
  const client = () => new RedisRecords(rt, keysOf(''), servers, 1_000);

  /** Lets the requests arrive in the order that the picks say, until all that was begun is done. */
  async function inOrder(work: readonly Promise<unknown>[], picks: readonly number[]) {
    let isDone = false;
    const all = Promise.allSettled(work).finally(() => {
      isDone = true;
    });
    for (let n = 0; !isDone; n++) {
      await clock.advance(1);
      const [next] = waiting.splice((picks[n] ?? 0) % Math.max(1, waiting.length), 1);
      next?.arrive();
    }
    return all;
  }

  return {
    ...{ clock, client, waiting, inOrder },
    /** From now on requests arrive when a test says so. */
    order: () => {
      isOrdered = true;
    },
    /** What is there, and what is listed. */
    async look(ids: readonly string[]) {
      isOrdered = false;
      const records = client();
      const found = await records.get('c', ids, CALL);
      const { written } = await records.changes('c', { ...CALL, since: 0 });
      return {
        there: ids.filter((_, i) => found[i]?.kind === 'found'),
        listed: [...written].sort(),
      };
    },
  };
}

const write = (id: string) => [{ id, value: 1 }];

describe('FR-011 records on a Cluster', () => {
  it('a removal that tells the index late does not hide a record that was written meanwhile', async () => {
    const { client, waiting, clock, order, look } = scene();
    const [one, other] = [client(), client()];
    await one.put('c', write('a'), CALL);
    order();
    const arrive = async (who: number) => {
      await clock.advance(1);
      waiting.splice(who, 1)[0]?.arrive();
      await clock.advance(1);
    };
    const removing = one.remove('c', [{ id: 'a' }], CALL);
    await arrive(0);
    expect(waiting.map(({ verb }) => verb)).toEqual(['announce']);
    const writing = other.put('c', write('a'), CALL);
    await clock.advance(1);
    // All of the writer's requests, and then what the other has to tell.
    for (let n = 0; n < 4; n++) await arrive(1);
    expect(await writing).toEqual([{ kind: 'written', revision: 2 }]);
    while (waiting.length > 0) await arrive(0);
    expect(await removing).toEqual([{ kind: 'removed' }]);
    expect(await look(['a'])).toEqual({ there: ['a'], listed: ['a'] });
  });

  it('what is listed is what is there, in whatever order the requests of several clients arrive', async () => {
    const ids = ['a', 'b'];
    const verb = fc.record({ isPut: fc.boolean(), id: fc.constantFrom(...ids) });
    const plan = fc.record({
      clients: fc.array(fc.array(verb, { minLength: 1, maxLength: 3 }), {
        minLength: 2,
        maxLength: 4,
      }),
      picks: fc.array(fc.nat({ max: 11 }), { maxLength: 80 }),
    });
    const property = fc.asyncProperty(plan, async ({ clients, picks }) => {
      const { client, inOrder, look, order } = scene();
      order();
      const work = clients.map(async (verbs) => {
        const records = client();
        for (const { isPut, id } of verbs)
          if (isPut) await records.put('c', write(id), CALL);
          else await records.remove('c', [{ id }], CALL);
      });
      await inOrder(work, picks);
      const { there, listed } = await look(ids);
      expect(listed).toEqual(there);
    });
    await fc.assert(property, { numRuns: Number(process.env.HOLDFAST_RUNS ?? 200) });
  }, 60_000);

  it('a client that dies between writing and telling leaves a change that the next look tells of', async () => {
    const { client, waiting, clock, order, look } = scene();
    const records = client();
    await records.put('c', write('a'), CALL);
    const { version } = await records.changes('c', { ...CALL, since: 0 });
    order();
    void client().put('c', [{ id: 'a', value: 2 }], CALL);
    // It tells the index that the record comes, and a reader looks too early; then it writes.
    for (const expected of ['announce', 'put']) {
      await clock.advance(1);
      expect(waiting[0]?.verb).toBe(expected);
      waiting.shift()?.arrive();
    }
    await clock.advance(1);
    waiting.length = 0;
    await look([]);
    const early = await records.changes('c', { ...CALL, since: version });
    expect(early.written).toEqual(['a']);
    expect(await records.discover('c', CALL)).toBe(1);
    expect((await records.changes('c', { ...CALL, since: early.version })).written).toEqual(['a']);
    expect(await records.discover('c', CALL)).toBe(0);
  });
});
