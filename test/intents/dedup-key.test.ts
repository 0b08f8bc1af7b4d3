import { describe, expect, it } from 'vitest';
import { isName } from '../../src/core/ids.ts';
import { dedupKey } from '../../src/intents/dedup-key.ts';
import { wantedBy } from '../../src/intents/intent.ts';

const live = (serviceRef: string) => dedupKey(wantedBy({ type: 'stream.start', serviceRef }));
const vod = (recordingId: string, profile: string, startMs = 0) =>
  dedupKey(wantedBy({ type: 'vod.start', recordingId, profile, startMs }));

describe('dedupKey', () => {
  it('a key contains its reference as it is, if that is readable', () => {
    expect(live('1:0:19:283D:3FB:1:C00000:0:0:0:')).toBe('service:1:0:19:283D:3FB:1:C00000:0:0:0:');
    expect(vod('rec-7', 'hd', 61_500)).toBe('vod:rec-7:hd:61');
  });

  it('every reference gives a valid lease key, and different ones give different keys', () => {
    const refs = [
      '}',
      '{x}y',
      '*',
      'a b',
      '😀',
      '😁',
      '%7b',
      '{',
      '~',
      'é',
      'e\u0301',
      'x'.repeat(512),
    ];
    const keys = refs.map(live);
    expect(keys.filter((key) => !isName(key))).toEqual([]);
    expect(new Set(keys).size).toBe(refs.length);
  });

  it('a reference that looks like a digest does not get the key of one', () => {
    const long = 'y'.repeat(300);
    expect(live(live(long).slice('service:'.length))).not.toBe(live(long));
  });

  it('recording and profile stay apart in a key', () => {
    expect(vod('a:b', 'c')).not.toBe(vod('a', 'b:c'));
  });
});
