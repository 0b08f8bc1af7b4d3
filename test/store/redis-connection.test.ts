import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random.ts';
import { Connection } from '../../src/store/redis/client/connection.ts';
import type { Deadline, Dialer, Link } from '../../src/store/redis/client/link.ts';
import { TOO_LATE, UnsentError } from '../../src/store/redis/client/socket-connection.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

/** A connection to a server whose answers take a while. */
class Setup {
  readonly clock = new FakeClock();
  readonly sent: string[] = [];
  readonly dropped: string[] = [];
  answerMs = 10;
  /** How long a command lies before it is written: the event loop is blocked. */
  blockedMs = 0;
  isAway = false;
  dials = 0;
  readonly connection: Connection;

  constructor() {
    const dialer: Dialer = {
      name: 'redis://slow',
      dial: async () => {
        this.dials++;
        if (this.isAway) throw new Error('refused');
        return this.#link();
      },
    };
    const rt = { clock: this.clock, random: seededRandom(1) };
    this.connection = new Connection(rt, dialer, {
      role: 'leases',
      prepare: async () => {},
      onConnected: () => {},
      onDisconnected: (why) => this.dropped.push(why),
    });
  }

  #link(): Link {
    const ends = new Set<(error: Error) => void>();
    const send = async ([word = '']: readonly string[], deadline?: Deadline) => {
      if (this.blockedMs > 0) await this.clock.sleep(this.blockedMs);
      if (deadline?.isOver()) throw new UnsentError(TOO_LATE);
      this.sent.push(word);
      return new Promise((resolve, reject) => {
        ends.add(reject);
        this.clock.after(this.answerMs, () => resolve('OK'));
      });
    };
    const destroy = () => {
      for (const end of ends) end(new Error('given up'));
    };
    return { send, destroy, subscribe: async () => {}, unsubscribe: async () => {} };
  }
}

async function outcome(promise: Promise<unknown>): Promise<unknown> {
  return promise.catch((error: { code?: string }) => error.code ?? error);
}

describe('a connection', () => {
  it('B-01 tells STORE_UNREACHABLE of a request that its time kept from being written', async () => {
    const setup = new Setup();
    await setup.connection.open();
    setup.blockedMs = 2_000;
    setup.answerMs = 100_000;
    const request = setup.connection.send('acquire', ['SET'], 500).catch((error: Error) => error);
    await setup.clock.advance(2_500);
    // It was told at its time; what matters is that nothing was written afterwards.
    expect(await request).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    expect(setup.sent).toEqual([]);
  });

  it('B-01 a blocked event loop runs the write before the timer, and nothing is written', async () => {
    const setup = new Setup();
    await setup.connection.open();
    const deadlines: Deadline[] = [];
    const request = setup.connection.use('acquire', 500, async (_link, deadline) => {
      deadlines.push(deadline);
      expect(deadline.isOver()).toBe(false);
      throw new UnsentError(TOO_LATE);
    });
    await expect(request).rejects.toMatchObject({
      code: 'STORE_UNREACHABLE',
      message: expect.stringContaining('the time for it was over before it could be sent'),
    });
    await setup.clock.advance(500);
    expect(deadlines[0]?.isOver()).toBe(true);
    expect(setup.dropped).toEqual([]);
  });

  it('K-07 a caller with hardly any time left does not take the connection from the others', async () => {
    const setup = new Setup();
    await setup.connection.open();
    const hasty = outcome(setup.connection.send('read', ['hasty'], 2));
    const patient = outcome(setup.connection.send('renew', ['patient'], 1_000));
    await setup.clock.advance(20);
    expect(await hasty).toBe('OUTCOME_UNKNOWN');
    expect(await patient).toBe('OK');
    await setup.clock.advance(2_000);
    expect(setup.dropped).toEqual([]);
  });

  it('K-07 a connection that stays silent after a hasty request is dropped all the same', async () => {
    const setup = new Setup();
    await setup.connection.open();
    setup.answerMs = 100_000;
    const hasty = outcome(setup.connection.send('read', ['hasty'], 2));
    await setup.clock.advance(50);
    expect(await hasty).toBe('OUTCOME_UNKNOWN');
    expect(setup.dropped).toEqual([]);
    await setup.clock.advance(60);
    expect(setup.dropped).toEqual(['no answer within 2 ms']);
  });

  it('K-07 a request whose time is over is refused before it is sent', async () => {
    const setup = new Setup();
    await setup.connection.open();
    expect(await outcome(setup.connection.send('read', ['over'], 1))).toBe('STORE_UNREACHABLE');
    await setup.clock.advance(5_000);
    expect([setup.sent, setup.dials]).toEqual([[], 1]);
  });

  it('K-07 who waited for a connection until almost the end is refused, and may try again', async () => {
    const setup = new Setup();
    setup.isAway = true;
    setup.connection.connect();
    await setup.clock.advance(1);
    const late = outcome(setup.connection.send('renew', ['late'], 2_000));
    const early = outcome(setup.connection.send('renew', ['early'], 4_000));
    await setup.clock.advance(1_990);
    setup.isAway = false;
    setup.connection.retryNow();
    await setup.clock.advance(20);
    expect(await late).toBe('STORE_UNREACHABLE');
    expect(await early).toBe('OK');
    expect(setup.sent).toEqual(['early']);
  });

  it('K-07 leaves no timer behind when it is closed during an attempt to connect', async () => {
    const setup = new Setup();
    await setup.connection.open();
    setup.isAway = true;
    setup.connection.drop('cut');
    await setup.clock.advance(300);
    const closing = setup.connection.close();
    await setup.clock.advance(1);
    await closing;
    const { dials } = setup;
    await setup.clock.advance(10_000);
    expect(setup.dials).toBe(dials);
  });
});
