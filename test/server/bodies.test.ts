import { describe, expect, it } from 'vitest';
import { MAX_BODY_BYTES } from '../../src/server/http/body.ts';
import { RequestGate } from '../../src/server/http/request-gate.ts';
import { requestOf, serverWorld } from '../support/server-world.ts';

const { app, ask, calls, clock } = await serverWorld();
const START = { type: 'stream.start', serviceRef: '1:0:19:2B66' };
const PATH = '/api/v3/intents';

/** A body that comes in pieces, and says nothing of its length. */
function inPieces(text: string, size: number): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) controller.close();
      else controller.enqueue(bytes.slice(at, at + size));
      at += size;
    },
  });
}

function padded(length: number): string {
  const text = JSON.stringify(START);
  return text + ' '.repeat(length - text.length);
}

describe('a body', () => {
  it.each([
    ['application/json', 202],
    ['application/json; charset=utf-8', 202],
    ['Application/JSON;charset="UTF-8"', 202],
    ['application/json ; charset = utf-8', 202],
    ['application/json; charset=latin1', 415],
    ['application/json; charset=utf-8; charset=latin1', 415],
    ['application/json; boundary=x', 415],
    ['application/json, application/json', 415],
    ['application/problem+json', 415],
    ['application/jsonx', 415],
    ['text/json', 415],
    ['text/plain', 415],
    ['text/plain; application/json', 415],
    ['application/x-www-form-urlencoded', 415],
    ['multipart/form-data; boundary=x', 415],
    ['', 415],
  ])('I-02 of the type "%s" is answered %i', async (type, status) => {
    calls.length = 0;
    const got = await ask('POST', PATH, { body: START, headers: { 'content-type': type } });
    expect(got.status).toBe(status);
    if (status === 415) expect(calls).toEqual([]);
  });

  it('that is compressed is refused', async () => {
    const headers = { 'content-encoding': 'gzip' };
    expect((await ask('POST', PATH, { body: START, headers })).status).toBe(415);
  });

  it('I-02 may have so many bytes, and not one more, whether it says so or not', async () => {
    const asked = async (body: unknown, headers = {}) =>
      (await ask('POST', PATH, { body, headers })).status;
    expect(await asked(padded(MAX_BODY_BYTES))).toBe(202);
    expect(await asked(inPieces(padded(MAX_BODY_BYTES), 1_000))).toBe(202);
    calls.length = 0;
    expect(await asked(padded(MAX_BODY_BYTES + 1))).toBe(413);
    expect(await asked(inPieces(padded(MAX_BODY_BYTES + 1), 1_000))).toBe(413);
    expect(
      await asked(inPieces(padded(MAX_BODY_BYTES + 1), 1_000), { 'content-length': '5' }),
    ).toBe(413);
    expect(await asked(JSON.stringify(START), { 'content-length': '16385' })).toBe(413);
    expect(await asked(inPieces('x'.repeat(10_000_000), 65_536))).toBe(413);
    expect(calls).toEqual([]);
  });

  it('that is too large is not read to its end', async () => {
    let pulled = 0;
    let isCancelled = false;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        pulled++;
        controller.enqueue(new Uint8Array(1_024));
      },
      cancel() {
        isCancelled = true;
      },
    });
    expect((await ask('POST', PATH, { body })).status).toBe(413);
    expect(pulled).toBeLessThan(20);
    expect(isCancelled).toBe(true);
  });

  it('that does not arrive in time is not waited for', async () => {
    calls.length = 0;
    let isCancelled = false;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode('{"type":')),
      cancel() {
        isCancelled = true;
      },
    });
    const asked = app.fetch(requestOf('POST', PATH, { body }));
    await clock.advance(10_000);
    const response = await asked;
    expect(response.status).toBe(408);
    expect(response.headers.get('connection')).toBe('close');
    expect(isCancelled).toBe(true);
    expect(calls).toEqual([]);
  });

  it('that breaks off is refused', async () => {
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.error(new Error('the client has gone')),
    });
    expect((await ask('POST', PATH, { body })).status).toBe(400);
  });

  it('is refused where none is taken', async () => {
    calls.length = 0;
    const at = '/api/v3/sessions/some';
    for (const headers of [{ 'content-length': '2' }, { 'transfer-encoding': 'chunked' }]) {
      expect((await ask('POST', `${at}/pause`, { body: '{}', headers })).status).toBe(400);
      expect((await ask('DELETE', at, { body: '{}', headers })).status).toBe(400);
    }
    expect(calls).toEqual([]);
    const headers = { 'content-length': '0' };
    expect((await ask('POST', `${at}/pause`, { headers })).status).toBe(404);
  });

  it('leaves no timer behind', async () => {
    const before = clock.pendingTimers;
    await ask('POST', PATH, { body: START });
    await ask('POST', PATH, { body: '{' });
    await ask('GET', '/api/v3/sessions');
    expect(clock.pendingTimers).toBe(before);
  });
});

describe('bodies that come slowly', () => {
  it('of one token take only the places of that token, and none of the requests that are handled', () => {
    const gate = new RequestGate({ inFlight: 2 }, clock);
    const [end] = [gate.startBody('a'), gate.startBody('a')];
    expect(() => gate.startBody('a')).toThrow('This token is sending 2 bodies');
    expect(() => gate.startBody('b')()).not.toThrow();
    expect(gate.inFlight).toBe(0);
    end?.();
    expect(() => gate.startBody('a')).not.toThrow();
  });
});
