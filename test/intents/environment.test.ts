import { describe, expect, it } from 'vitest';
import { intentOptionsFrom } from '../../src/intents/environment.ts';

describe('what the environment says about intents', () => {
  it('I-05 names the secrets, also as they were named before', () => {
    expect(
      intentOptionsFrom({
        HOLDFAST_IDEM_SECRET: 'a',
        XG2G_IDEM_SECRET: 'b',
        XG2G_IDEM_SECRET_PREVIOUS: 'c',
      }),
    ).toEqual({ secret: 'a', previousSecret: 'c' });
  });

  it.each(['1', 'true', 'ON', 'yes'])('I-16 %s switches leases of the interface on', (value) => {
    expect(intentOptionsFrom({ XG2G_V3_API_LEASES: value })).toEqual({ apiLeases: 'on' });
  });

  it.each(['0', 'false', 'Off', 'no'])('I-16 %s switches them off', (value) => {
    expect(intentOptionsFrom({ HOLDFAST_V3_API_LEASES: value })).toEqual({ apiLeases: 'off' });
  });

  it('says nothing where nothing is set, or nothing but empty text', () => {
    expect(intentOptionsFrom({ HOLDFAST_IDEM_SECRET: '', HOLDFAST_V3_API_LEASES: '' })).toEqual({});
  });

  it('I-16 refuses what is neither on nor off, by its name', () => {
    expect(() => intentOptionsFrom({ HOLDFAST_V3_API_LEASES: 'maybe' })).toThrow(
      /HOLDFAST_V3_API_LEASES is "maybe"/,
    );
  });
});
