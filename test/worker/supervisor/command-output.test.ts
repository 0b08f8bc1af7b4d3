import { beforeEach, describe, expect, it } from 'vitest';
import { CommandOutput } from '../../../src/worker/supervisor/command-output.ts';
import { FakeClock } from '../../../testing/fakes/fake-clock.ts';

let clock: FakeClock;
let output: CommandOutput;
let said: [string, number][];
let isReady: boolean;

beforeEach(() => {
  clock = new FakeClock();
  said = [];
  isReady = true;
  const startedMs = clock.monotonicMs();
  output = new CommandOutput(clock, {
    isReady: () => isReady,
    onProgress: (text) => void said.push([text, clock.monotonicMs() - startedMs]),
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
  it.each([1, 2, 3, 7, 1_000])('are the same in whatever pieces they come: of %i', (pieceBytes) => {
    feed('one\ntwo\r\nüöß€𝄞\n\nlast', pieceBytes);
    expect(output.end()).toEqual(['one', 'two', 'üöß€𝄞', '', 'last']);
  });

  it.each([1, 5, 64, 10_000])('are twenty, in pieces of %i', (pieceBytes) => {
    feed(`${numbers(1, 500).join('\n')}\n`, pieceBytes);
    expect(output.end()).toEqual(numbers(481, 500));
  });

  it('are twenty with the one that has no end', () => {
    feed(numbers(1, 500).join('\n'));
    expect(output.end()).toEqual(numbers(481, 500));
  });

  it('are those of both outputs, as they came', () => {
    const [out, err] = [output.reader(), output.reader()];
    out(Buffer.from('out 1\nout '));
    err(Buffer.from('err 1\n'));
    out(Buffer.from('2\n'));
    expect(output.end()).toEqual(['out 1', 'err 1', 'out 2']);
  });

  it('are what a terminal would show: what was written over is not kept', () => {
    feed('frame 1\rframe 2\rframe 3\nthen\r');
    expect(output.end()).toEqual(['frame 3', 'then']);
  });

  it('are cut, and are never half a character', () => {
    feed(`${'a'.repeat(499)}𝄞${'b'.repeat(1_000)}\n`);
    const [line = ''] = output.end();
    expect(line).toBe(`${'a'.repeat(499)}\ufffd`);
    expect(line.isWellFormed()).toBe(true);
  });

  it('are bounded also where there is no end of a line', () => {
    const read = output.reader();
    const piece = Buffer.alloc(65_536, 'x');
    for (let i = 0; i < 200; i++) read(piece);
    expect(output.end()).toEqual(['x'.repeat(500)]);
  });

  it('act on nobody’s terminal', () => {
    feed('\u001b[31mred\u001b[0m\ta\u0000b\u202ec\n');
    expect(output.end()).toEqual(['\ufffd[31mred\ufffd[0m a\ufffdb\ufffdc']);
  });

  it('may be no text at all', () => {
    output.reader()(Buffer.from([0xff, 0xfe, 0x80, 10, 0xc3]));
    expect(output.end()).toEqual(['\ufffd\ufffd\ufffd', '\ufffd']);
  });
});

describe('what a command says of how far it is', () => {
  it('is passed on at once, and is none of the lines that are kept', async () => {
    feed('begin\n::progress 10 %\nend\n');
    await clock.advance(0);
    expect(said).toEqual([['10 %', 0]]);
    expect(output.end()).toEqual(['begin', 'end']);
  });

  it('is passed on ten times a second, and the last of it always', async () => {
    const read = output.reader();
    for (let i = 1; i <= 100; i++) {
      feed(`::progress ${i}\n`, undefined, read);
      await clock.advance(10);
    }
    expect(said.length).toBeLessThanOrEqual(11);
    expect(said.length).toBeGreaterThanOrEqual(10);
    await clock.advance(100);
    expect(said.at(-1)?.[0]).toBe('100');
    expect(clock.pendingTimers).toBe(0);
  });

  it('is found among very many lines, the last of it', async () => {
    feed(`a\n::progress 1\n${'b\n'.repeat(99)}::progress 2\n${'c\n'.repeat(99)}`);
    await clock.advance(0);
    expect(said).toEqual([['2', 0]]);
  });

  it('is found in whatever pieces it comes', async () => {
    feed('::progress half\n', 3);
    await clock.advance(0);
    expect(said).toEqual([['half', 0]]);
  });

  it('waits while nobody listens; then it is the last that is heard', async () => {
    isReady = false;
    const read = output.reader();
    feed('::progress 1\n', undefined, read);
    await clock.advance(1_000);
    feed('::progress 2\n', undefined, read);
    expect(said).toEqual([]);
    isReady = true;
    await clock.advance(100);
    expect(said.map(([text]) => text)).toEqual(['2']);
  });

  it('is said before its end, however soon that is', async () => {
    feed('::progress \u001bdone\n');
    output.end();
    expect(said).toEqual([['\ufffddone', 0]]);
    expect(clock.pendingTimers).toBe(0);
  });
});
