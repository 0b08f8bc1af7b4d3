import { beforeEach, describe, expect, it } from 'vitest';
import { NonblockingWriter } from '../../src/cli/ui/nonblocking-writer.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

const MEGABYTE = 1_048_576;

let clock: FakeClock;
let writer: NonblockingWriter;
let read: string;
/** How much the reader takes before it stands still. */
let room: number;
let isGone: boolean;
let tries: number;
let dropped: number[];

beforeEach(() => {
  clock = new FakeClock();
  [read, room, isGone, tries, dropped] = ['', Number.POSITIVE_INFINITY, false, 0, []];
  writer = new NonblockingWriter({
    clock,
    accept: (bytes) => {
      tries += 1;
      if (isGone) throw new Error('EPIPE');
      const taken = Math.min(room, bytes.length);
      room -= taken;
      read += bytes.toString('utf8', 0, taken);
      return taken;
    },
    onDropped: (lines) => {
      dropped.push(lines);
      writer.write(`${lines} dropped\n`);
    },
  });
});

describe('what is written to a reader', () => {
  it('that reads is there at once', () => {
    expect(writer.write('one\n')).toBe(true);
    expect(read).toBe('one\n');
    expect([writer.isBehind, clock.pendingTimers]).toEqual([false, 0]);
  });

  it('that stands still waits, and comes in order and whole when it reads again', async () => {
    room = 2;
    for (const line of ['one\n', 'zwei €\n', 'three\n']) expect(writer.write(line)).toBe(true);
    expect([read, writer.isBehind]).toEqual(['on', true]);
    room = 1;
    await clock.advance(100);
    expect(read).toBe('one');
    room = Number.POSITIVE_INFINITY;
    await clock.advance(100);
    expect(read).toBe('one\nzwei €\nthree\n');
    expect([writer.isBehind, clock.pendingTimers, dropped]).toEqual([false, 0, []]);
  });

  it('that stands still is dropped where it does not fit; the reader is told how many lines, before it gets new ones', async () => {
    room = 0;
    const line = `${'x'.repeat(1_023)}\n`;
    for (let i = 0; i < 1_024 + 7; i++) writer.write(line);
    // There would be room for it, but it comes after what is missing.
    writer.write('late\n');
    room = MEGABYTE / 2;
    await clock.advance(100);
    writer.write('later\n');
    expect(dropped).toEqual([]);
    room = Number.POSITIVE_INFINITY;
    await clock.advance(100);
    expect(dropped).toEqual([9]);
    writer.write('new\n');
    expect(read.length).toBe(MEGABYTE + '9 dropped\nnew\n'.length);
    expect(read.endsWith('x\n9 dropped\nnew\n')).toBe(true);
  });

  it('that stands still is tried at a growing pace', async () => {
    room = 0;
    writer.write('x');
    await clock.advance(10_000);
    expect(tries).toBeGreaterThan(10_000 / 50);
    expect(tries).toBeLessThan(10_000 / 50 + 10);
  });

  it('that is gone is refused, and nothing is tried again', async () => {
    room = 0;
    writer.write('x');
    isGone = true;
    await clock.advance(100);
    expect(writer.write('y')).toBe(false);
    expect([writer.isBehind, clock.pendingTimers]).toEqual([false, 0]);
  });

  it('is waited for at the end, for a while', async () => {
    await writer.flushed(1_000);
    room = 0;
    writer.write('x');
    let ends = 0;
    const count = () => {
      ends += 1;
    };
    void writer.flushed(1_000).then(count);
    await clock.advance(999);
    expect(ends).toBe(0);
    await clock.advance(1);
    expect(ends).toBe(1);
    void writer.flushed(1_000).then(count);
    room = 1;
    await clock.advance(50);
    expect([ends, read]).toEqual([2, 'x']);
    expect(clock.pendingTimers).toBe(0);
  });
});
