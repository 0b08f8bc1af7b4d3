import { beforeEach, describe, expect, it } from 'vitest';
import { CommandOutput } from '../../../src/worker/supervisor/command-output.ts';
import { FakeClock } from '../../../testing/fakes/fake-clock.ts';

let clock: FakeClock;
let output: CommandOutput;
let reported: [string, number][];
let isReady: boolean;

beforeEach(() => {
  clock = new FakeClock();
  reported = [];
  isReady = true;
  const startedMs = clock.monotonicMs();
  output = new CommandOutput(clock, {
    isReady: () => isReady,
    onProgress: (text) => void reported.push([text, clock.monotonicMs() - startedMs]),
  });
});

/** Feeds text in pieces of that many bytes. */
function feed(text: string, pieceBytes = Number.POSITIVE_INFINITY, read = output.reader()): void {
  const bytes = Buffer.from(text);
  const step = Math.min(pieceBytes, bytes.length);
  for (let at = 0; at < bytes.length; at += step) read(bytes.subarray(at, at + step));
}

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => String(from + i));

describe('the last lines of a command', () => {
  it.each([1, 2, 3, 7, 1_000])('are the same in pieces of any size: %i', (pieceBytes) => {
    feed('one\ntwo\r\nüöß€𝄞\n\nlast', pieceBytes);
    expect(output.end()).toEqual(['one', 'two', 'üöß€𝄞', '', 'last']);
  });

  it.each([1, 5, 64, 10_000])('are twenty, in pieces of %i', (pieceBytes) => {
    feed(`${numbers(1, 500).join('\n')}\n`, pieceBytes);
    expect(output.end()).toEqual(numbers(481, 500));
  });

  it('are twenty with the unfinished one', () => {
    feed(numbers(1, 500).join('\n'));
    expect(output.end()).toEqual(numbers(481, 500));
  });

  it('are those of both outputs, in the order in which they came', () => {
    const [out, err] = [output.reader(), output.reader()];
    out(Buffer.from('out 1\nout '));
    err(Buffer.from('err 1\n'));
    out(Buffer.from('2\n'));
    expect(output.end()).toEqual(['out 1', 'err 1', 'out 2']);
  });

  it('are what a terminal would show: overwritten text is not kept', () => {
    feed('frame 1\rframe 2\rframe 3\nthen\r');
    expect(output.end()).toEqual(['frame 3', 'then']);
  });

  it('are cut between two characters', () => {
    feed(`${'a'.repeat(499)}𝄞${'b'.repeat(1_000)}\n`);
    const [line = ''] = output.end();
    expect(line).toBe(`${'a'.repeat(499)}\ufffd`);
    expect(line.isWellFormed()).toBe(true);
  });

  it('are bounded even if a line never ends', () => {
    const read = output.reader();
    const piece = Buffer.alloc(65_536, 'x');
    for (let i = 0; i < 200; i++) read(piece);
    expect(output.end()).toEqual(['x'.repeat(500)]);
  });

  it('have no control characters', () => {
    feed('\u001b[31mred\u001b[0m\ta\u0000b\u202ec\n');
    expect(output.end()).toEqual(['\ufffd[31mred\ufffd[0m a\ufffdb\ufffdc']);
  });

  it('may be bytes that are no text', () => {
    output.reader()(Buffer.from([0xff, 0xfe, 0x80, 10, 0xc3]));
    expect(output.end()).toEqual(['\ufffd\ufffd\ufffd', '\ufffd']);
  });
});

describe('the progress of a command', () => {
  it('is passed on at once, and is not kept as a line', async () => {
    feed('begin\n::progress 10 %\nend\n');
    await clock.advance(0);
    expect(reported).toEqual([['10 %', 0]]);
    expect(output.end()).toEqual(['begin', 'end']);
  });

  it('is passed on at most ten times a second, and the last one always', async () => {
    const read = output.reader();
    for (let i = 1; i <= 100; i++) {
      feed(`::progress ${i}\n`, undefined, read);
      await clock.advance(10);
    }
    expect(reported.length).toBeLessThanOrEqual(11);
    expect(reported.length).toBeGreaterThanOrEqual(10);
    await clock.advance(100);
    expect(reported.at(-1)?.[0]).toBe('100');
    expect(clock.pendingTimers).toBe(0);
  });

  it('is found among very many lines: the last one counts', async () => {
    feed(`a\n::progress 1\n${'b\n'.repeat(99)}::progress 2\n${'c\n'.repeat(99)}`);
    await clock.advance(0);
    expect(reported).toEqual([['2', 0]]);
  });

  it('is found in pieces of any size', async () => {
    feed('::progress half\n', 3);
    await clock.advance(0);
    expect(reported).toEqual([['half', 0]]);
  });

  it('waits while the listener is not ready, and then the last one is passed on', async () => {
    isReady = false;
    const read = output.reader();
    feed('::progress 1\n', undefined, read);
    await clock.advance(1_000);
    feed('::progress 2\n', undefined, read);
    expect(reported).toEqual([]);
    isReady = true;
    await clock.advance(100);
    expect(reported.map(([text]) => text)).toEqual(['2']);
  });

  it('is passed on before the end is reported', async () => {
    feed('::progress \u001bdone\n');
    output.end();
    expect(reported).toEqual([['\ufffddone', 0]]);
    expect(clock.pendingTimers).toBe(0);
  });
});
