import { describe, expect, it } from 'vitest';
import { intentOptionsFrom } from '../../src/intents/environment.ts';

describe('intentOptionsFrom', () => {
  it('I-05 the environment sets the secrets, under their old names, too', () => {
    expect(
      intentOptionsFrom({
        HOLDFAST_IDEM_SECRET: 'a',
        XG2G_IDEM_SECRET: 'b',
        XG2G_IDEM_SECRET_PREVIOUS: 'c',
      }),
    ).toEqual({ secret: 'a', previousSecret: 'c' });
  });

  it.each(['1', 'true', 'ON', 'yes'])('I-16 %s switches leases of the API on', (value) => {
    expect(intentOptionsFrom({ XG2G_V3_API_LEASES: value })).toEqual({ apiLeases: 'on' });
  });

  it.each(['0', 'false', 'Off', 'no'])('I-16 %s switches leases of the API off', (value) => {
    expect(intentOptionsFrom({ HOLDFAST_V3_API_LEASES: value })).toEqual({ apiLeases: 'off' });
  });

  it('unset and empty variables set no option', () => {
    expect(intentOptionsFrom({ HOLDFAST_IDEM_SECRET: '', HOLDFAST_V3_API_LEASES: '' })).toEqual({});
  });

  it('I-16 a value that is neither on nor off is refused with the name of its variable', () => {
    expect(() => intentOptionsFrom({ HOLDFAST_V3_API_LEASES: 'maybe' })).toThrow(
      /HOLDFAST_V3_API_LEASES is "maybe"/,
    );
  });
});
