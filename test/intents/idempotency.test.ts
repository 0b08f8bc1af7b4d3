import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { encodeFields, idempotencyKey, identityOf } from '../../src/intents/idempotency.ts';
import { type StreamStart, type VodStart, wantedBy } from '../../src/intents/intent.ts';
import fc from '../support/fast-check.ts';

const SECRET = Buffer.alloc(32, 7);

function keyOf(intent: StreamStart | VodStart, tenant = 'default', secret = SECRET): string {
  return idempotencyKey(secret, tenant, identityOf(wantedBy(intent)));
}

const live = (serviceRef: string, profile = 'hd'): StreamStart => ({
  ...{ type: 'stream.start', serviceRef, profile },
});
const vod = (recordingId: string, startMs: number): VodStart => ({
  ...{ type: 'vod.start', recordingId, startMs },
});

describe('idempotencyKey', () => {
  it('I-04 a key is an HMAC-SHA256 over the version and the fields with their lengths', () => {
    const text = Buffer.concat([
      Buffer.from([1]),
      ...['v3_intent', 'acme', 'stream.start', '1:0:19:é', 'hd', '0'].flatMap((field) => {
        const length = Buffer.alloc(4);
        length.writeUInt32BE(Buffer.byteLength(field));
        return [length, Buffer.from(field)];
      }),
    ]);
    const expected = createHmac('sha256', SECRET).update(text).digest('base64url');
    expect(keyOf(live('1:0:19:é'), 'acme')).toBe(expected);
  });

  it('I-04 fields stay apart, whatever they contain', () => {
    expect(encodeFields(['a|b', 'c'])).not.toEqual(encodeFields(['a', 'b|c']));
    const fields = fc.array(fc.string({ unit: 'grapheme', maxLength: 8 }), { maxLength: 5 });
    fc.assert(
      fc.property(fields, fields, (a, b) => {
        const isSame = JSON.stringify(a) === JSON.stringify(b);
        expect(encodeFields(a).equals(encodeFields(b))).toBe(isSame);
      }),
      { numRuns: 2_000 },
    );
  });

  it('I-04 text that is not well-formed is refused, because two such texts are equal in UTF-8', () => {
    expect(() => encodeFields(['\ud800'])).toThrow(TypeError);
  });

  it('I-04 another channel, profile, tenant, type or secret gives another key', () => {
    const keys = [
      keyOf(live('a')),
      keyOf(live('b')),
      keyOf(live('a', 'sd')),
      keyOf(live('a'), 'acme'),
      keyOf({ type: 'vod.start', recordingId: 'a', profile: 'hd' }),
      keyOf(live('a'), 'default', Buffer.alloc(32, 8)),
    ];
    expect(new Set(keys).size).toBe(keys.length);
  });

  it.each([
    [0, 999, true],
    [999, 1_000, false],
    [1_000, 1_999, true],
    [10_000, 10_500, true],
    [59_999, 60_000, false],
  ])('I-04 starts of a recording at %d and %d ms share a key: %s', (a, b, isShared) => {
    expect(keyOf(vod('r', a)) === keyOf(vod('r', b))).toBe(isShared);
  });

  it('I-04 all starts of a channel share one key', () => {
    expect(wantedBy(live('a')).bucket).toBe('0');
  });
});
