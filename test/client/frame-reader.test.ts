import { describe, expect, it } from 'vitest';
import { type Frame, FrameReader } from '../../src/client/frame-reader.ts';
import fc from '../support/fast-check.ts';

const encoder = new TextEncoder();

function framesOf(...pieces: readonly (string | Uint8Array)[]): Frame[] {
  const reader = new FrameReader();
  return pieces.flatMap((piece) =>
    reader.read(typeof piece === 'string' ? encoder.encode(piece) : piece),
  );
}

describe('an event stream', () => {
  it.each<[string, readonly Frame[]]>([
    ['id: 1\nevent: a\ndata: {}\n\n', [{ id: '1', event: 'a', data: '{}' }]],
    ['id:1\r\nevent:a\r\ndata:{}\r\n\r\n', [{ id: '1', event: 'a', data: '{}' }]],
    ['id: 1\revent: a\rdata: {}\r\r', [{ id: '1', event: 'a', data: '{}' }]],
    ['\ufeffdata: x\n\n', [{ id: null, event: 'message', data: 'x' }]],
    ['data: a\ndata: b\n\n', [{ id: null, event: 'message', data: 'a\nb' }]],
    ['data\n\n', [{ id: null, event: 'message', data: '' }]],
    ['data:  two\n\n', [{ id: null, event: 'message', data: ' two' }]],
    ['data: a: b\n\n', [{ id: null, event: 'message', data: 'a: b' }]],
    ['id: 7\n\n', [{ id: '7', event: 'message', data: null }]],
    ['id: a\0b\n\n', []],
    [': ping\n\n', []],
    ['event: a\n\ndata: b\n\n', [{ id: null, event: 'message', data: 'b' }]],
    ['unknown: x\n\n', []],
    ['id: 1\nevent: a\ndata: {}\n', []],
    ['id: 1\nevent: a\nda', []],
    ['', []],
  ])('%j is taken apart', (text, frames) => {
    expect(framesOf(text)).toEqual(frames);
  });

  it('says how long to wait, if that is a number', () => {
    const reader = new FrameReader();
    reader.read(encoder.encode('retry: 250\n\nretry: soon\n\nretry: -1\n\n'));
    expect(reader.retryMs).toBe(250);
  });

  it('is the same in whatever pieces it comes', () => {
    const line = fc.constantFrom(
      ...['id: 1', 'id: ü€😀', 'event: a', 'data: {"text":"grüße 😀"}', 'data:', ': ping', ''],
    );
    const text = fc
      .array(fc.tuple(line, fc.constantFrom('\n', '\r\n', '\r')), { maxLength: 30 })
      .map((lines) => lines.flat().join(''));
    fc.assert(
      fc.property(text, fc.array(fc.nat(400), { maxLength: 40 }), (whole, cuts) => {
        const bytes = encoder.encode(whole);
        const places = [0, ...cuts.filter((at) => at < bytes.length).sort((a, b) => a - b)];
        const pieces = places.map((at, i) => bytes.subarray(at, places[i + 1]));
        expect(framesOf(...pieces)).toEqual(framesOf(bytes));
      }),
      { numRuns: 2_000 },
    );
  });

  it('of a frame without end is given up', () => {
    const reader = new FrameReader();
    const much = encoder.encode(`data: ${'x'.repeat(200_000)}\n`);
    const read = () => {
      for (let i = 0; i < 10; i++) reader.read(much);
    };
    expect(read).toThrow(expect.objectContaining({ code: 'UNEXPECTED_ANSWER' }));
    const line = () => {
      const other = new FrameReader();
      for (let i = 0; i < 10; i++) other.read(encoder.encode('x'.repeat(200_000)));
    };
    expect(line).toThrow(expect.objectContaining({ code: 'UNEXPECTED_ANSWER' }));
  });
});
