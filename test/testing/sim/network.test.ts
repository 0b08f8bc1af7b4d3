import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/core/random.ts';
import type { Link } from '../../../src/store/redis/client/link.ts';
import { Counters } from '../../../testing/sim/counters.ts';
import { SimHost, SimProcess } from '../../../testing/sim/host.ts';
import { Machine } from '../../../testing/sim/machine.ts';
import { Path, simDialer } from '../../../testing/sim/network.ts';
import { Timeline } from '../../../testing/sim/timeline.ts';

/** A process with a connection to a server, and what came of everything it has asked. */
async function connected() {
  const timeline = new Timeline();
  const served: string[] = [];
  const witness = (args: readonly string[]) => void served.push(args.join(' '));
  const machine = new Machine(timeline, seededRandom(1), witness);
  const process = new SimProcess(new SimHost(timeline), 'p', seededRandom(2));
  const path = new Path(seededRandom(3));
  const counters = new Counters();
  const dialer = simDialer({ timeline, process, path, machine, counters });
  const heard: string[] = [];
  const dial = async () => {
    const attempt = { timeoutMs: 1_000, signal: new AbortController().signal };
    const dialing = dialer.dial({ ...attempt, onEnd: (why) => heard.push(`end: ${why}`) });
    dialing.catch((error: Error) => heard.push(`not connected: ${error.message}`));
    await timeline.run(timeline.nowMs + 100);
    return dialing;
  };
  const link = await dial();
  const ask = (...args: string[]) =>
    void link.send(args).then(
      (reply) => heard.push(`${args.join(' ')}: ${reply}`),
      (error: Error) => heard.push(`${args.join(' ')} failed: ${error.message}`),
    );
  const later = (ms = 100) => timeline.run(timeline.nowMs + ms);
  return { machine, process, path, counters, link, heard, served, ask, later, dial };
}

describe('a simulated connection', () => {
  it('carries commands and answers in their order, and takes its time', async () => {
    const { heard, served, ask, later } = await connected();
    for (let i = 0; i < 20; i++) ask('SET', 'k', String(i));
    expect(served).toEqual([]);
    await later(1_000);
    expect(heard).toEqual(Array.from({ length: 20 }, (_, i) => `SET k ${i}: OK`));
  });

  it('K-07 that is cut keeps what was sent: it is carried out when the cut is over, also for one who has given up', async () => {
    const { path, counters, link, heard, served, ask, later } = await connected();
    path.cut({ out: true, back: true });
    ask('SET', 'k', 'late');
    await later(5_000);
    expect(served).toEqual([]);
    link.destroy();
    await later();
    expect(heard).toEqual(['SET k late failed: the connection was given up']);
    path.cut({ out: false, back: false });
    await later(5_100);
    expect(served).toEqual(['SET k late']);
    expect(counters.get('carried out late')).toBe(1);
  });

  it('K-07 that is cut on the way back carries everything out, and answers when the cut is over', async () => {
    const { path, heard, served, ask, later } = await connected();
    path.cut({ out: false, back: true });
    ask('SET', 'k', '1');
    await later();
    expect(served).toEqual(['SET k 1']);
    expect(heard).toEqual([]);
    path.cut({ out: false, back: false });
    await later();
    expect(heard).toEqual(['SET k 1: OK']);
  });

  it('K-03 that is made after a cut may be faster than one that was cut', async () => {
    const { path, served, ask, later, dial } = await connected();
    path.cut({ out: true, back: true });
    ask('SET', 'k', 'before');
    await later(15_000);
    path.cut({ out: false, back: false });
    const link = await dial();
    void link.send(['SET', 'k', 'after']);
    await later(100);
    expect(served).toEqual(['SET k after']);
    await later(15_000);
    expect(served).toEqual(['SET k after', 'SET k before']);
  });

  it('K-07 that is reset ends on both sides at once; what was on its way is lost', async () => {
    const { path, heard, served, ask, later } = await connected();
    ask('SET', 'k', '1');
    path.breakOff();
    await later();
    expect(served).toEqual([]);
    expect(heard).toEqual(['end: connection reset', 'SET k 1 failed: connection reset']);
    ask('PING');
    await later();
    expect(heard.at(-1)).toMatch(/^PING failed/);
  });

  it('of a process that is gone is read to its end', async () => {
    const { process, path, served, ask, later } = await connected();
    ask('SET', 'k', '1');
    process.kill();
    path.abandon(process);
    await later();
    expect(served).toEqual(['SET k 1']);
  });
});

describe('a simulated server', () => {
  it('that is down refuses connections, and ends those it had', async () => {
    const { machine, heard, ask, later, dial } = await connected();
    machine.goDown();
    ask('PING');
    await later();
    expect(heard).toContain('end: connection reset by peer');
    await expect(dial()).rejects.toThrow('connection refused');
    machine.isDown = false;
    const link: Link = await dial();
    expect(link).toBeDefined();
  });

  it('that is frozen carries out afterwards what has arrived meanwhile', async () => {
    const { machine, heard, served, ask, later } = await connected();
    machine.freeze(5_000);
    ask('SET', 'k', '1');
    await later(4_900);
    expect(served).toEqual([]);
    await later(200);
    expect(heard).toEqual(['SET k 1: OK']);
  });
});
