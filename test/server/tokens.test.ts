import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/core/errors.ts';
import { seededRandom } from '../../src/core/random.ts';
import {
  checkTokens,
  makeToken,
  TokenSet,
  type TokenSettings,
} from '../../src/server/http/token-set.ts';
import { readTokens } from '../../src/server/http/token-sources.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

const SECRET = 'a-secret-of-some-length';
const one = (more: object = {}) => ({ id: 'one', token: SECRET, scope: 'v3:read', ...more });

function complaint(run: () => unknown): ConfigError {
  try {
    run();
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('tokens', () => {
  it.each([
    ['one that is too short', one({ token: 'x'.repeat(15) }), 'tokens[0].token'],
    ['one that is too long', one({ token: 'x'.repeat(513) }), 'tokens[0].token'],
    ['one with a space', one({ token: 'two words are no token' }), 'tokens[0].token'],
    ['one with an umlaut', one({ token: 'ein-schlüssel-ist-das-nicht' }), 'tokens[0].token'],
    ['one with a line end', one({ token: `${SECRET}\n` }), 'tokens[0].token'],
    ['no token', one({ token: undefined }), 'tokens[0].token'],
    ['three at once', one({ token: [SECRET, `${SECRET}2`, `${SECRET}3`] }), 'tokens[0].token'],
    ['none of several', one({ token: [] }), 'tokens[0].token'],
    ['an unknown scope', one({ scope: 'v3:all' }), 'tokens[0].scope'],
    ['no scope', one({ scope: undefined }), 'tokens[0].scope'],
    ['an id that is none', one({ id: 'a b' }), 'tokens[0].id'],
    ['a tenant that is none', one({ tenant: '' }), 'tokens[0].tenant'],
    ['a time without a zone', one({ expiresAt: '2030-01-01T00:00:00' }), 'tokens[0].expiresAt'],
    ['a time that is none', one({ expiresAt: '2030-13-41T00:00:00Z' }), 'tokens[0].expiresAt'],
    ['a time as a number', one({ expiresAt: 5 }), 'tokens[0].expiresAt'],
    ['a field that is unknown', one({ scopes: ['v3:read'] }), 'tokens[0].scopes'],
    ['text', SECRET, 'tokens[0]'],
    ['nothing', null, 'tokens[0]'],
  ])('with %s are refused, and never repeated', (_, entry, field) => {
    const error = complaint(() => checkTokens([entry]));
    expect(error.field).toBe(field);
    expect(JSON.stringify([error.message, error.value])).not.toContain(SECRET);
  });

  it('are told apart: neither ids nor tokens are there twice', () => {
    const twice = complaint(() => checkTokens([one(), one({ token: `${SECRET}-2` })]));
    expect(twice.field).toBe('tokens[1].id');
    const same = complaint(() => checkTokens([one(), one({ id: 'two', scope: 'v3:admin' })]));
    expect(same.field).toBe('tokens[1].token');
    expect(same.message).not.toContain(SECRET);
    expect(complaint(() => checkTokens({})).field).toBe('tokens');
  });

  it('I-19 are recognized whole or not at all, whatever their length', () => {
    const tokens = new TokenSet([one({ tenant: 'acme' }) as TokenSettings], new FakeClock());
    const caller = {
      tokenId: 'one',
      scope: 'v3:read',
      tenant: 'acme',
      expiresAtMs: Number.POSITIVE_INFINITY,
    };
    expect(tokens.recognize(SECRET)).toEqual({ kind: 'known', caller });
    for (const other of ['', 'x', SECRET.slice(1), `${SECRET}x`, SECRET.toUpperCase()])
      expect(tokens.recognize(other)).toEqual({ kind: 'unknown' });
  });

  it('are valid twice while they are changed', () => {
    const settings = one({ token: [SECRET, 'the-token-before-it'] }) as TokenSettings;
    const tokens = new TokenSet([settings], new FakeClock());
    expect(tokens.recognize(SECRET).kind).toBe('known');
    expect(tokens.recognize('the-token-before-it').kind).toBe('known');
  });

  it('expire at their moment', async () => {
    const clock = new FakeClock({ wallMs: Date.parse('2026-01-01T00:00:00Z') });
    const settings = one({ expiresAt: '2026-01-01T01:00:01+01:00' }) as TokenSettings;
    const tokens = new TokenSet([settings], clock);
    await clock.advance(999);
    expect(tokens.recognize(SECRET).kind).toBe('known');
    await clock.advance(1);
    expect(tokens.recognize(SECRET).kind).toBe('expired');
  });

  it('are made at random where there are none', () => {
    const made = makeToken(seededRandom(1));
    expect(made.token).toMatch(/^[0-9a-f]{48}$/);
    expect(makeToken(seededRandom(2)).token).not.toBe(made.token);
    expect(checkTokens([made])).toHaveLength(1);
  });
});

describe('tokens from outside', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-tokens-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  function file(text: string, mode = 0o600): string {
    const path = join(folder, `${mode.toString(8)}-${text.length}.json`);
    writeFileSync(path, text);
    chmodSync(path, mode);
    return path;
  }
  const fromFile = (path: string) => readTokens({ HOLDFAST_API_TOKENS_FILE: path });

  it('are none where nothing is said, also not by an empty text', () => {
    expect(readTokens({})).toEqual({ tokens: [], warnings: [] });
    const empty = { HOLDFAST_API_TOKEN: '', HOLDFAST_API_TOKENS_FILE: '' };
    expect(readTokens(empty)).toEqual({ tokens: [], warnings: [] });
  });

  it('come from the environment, and may do everything', () => {
    const { tokens } = readTokens({ HOLDFAST_API_TOKEN: SECRET });
    expect(tokens).toEqual([{ id: 'env', token: SECRET, scope: 'v3:admin' }]);
    const both = { HOLDFAST_API_TOKEN: SECRET, HOLDFAST_API_TOKEN_PREVIOUS: `${SECRET}-old` };
    expect(readTokens(both).tokens[0]?.token).toEqual([SECRET, `${SECRET}-old`]);
  });

  it('are refused where the one before is there alone, or one is too short', () => {
    const previous = { HOLDFAST_API_TOKEN_PREVIOUS: SECRET };
    const error = complaint(() => readTokens(previous));
    expect(error.field).toBe('HOLDFAST_API_TOKEN_PREVIOUS');
    expect(error.message).not.toContain(SECRET);
    const short = complaint(() => readTokens({ HOLDFAST_API_TOKEN: 'tiny' }));
    expect(short.message).not.toContain('tiny');
  });

  it('come from a file, in addition', () => {
    const path = file(JSON.stringify([one({ tenant: 'acme' })]));
    const env = { HOLDFAST_API_TOKEN: `${SECRET}-env`, HOLDFAST_API_TOKENS_FILE: path };
    const { tokens, warnings } = readTokens(env);
    expect(tokens.map(({ id }) => id)).toEqual(['env', 'one']);
    expect(warnings).toEqual([]);
  });

  it('come from no file that others can write; where others can read it, there is a warning', () => {
    const text = JSON.stringify([one()]);
    for (const mode of [0o622, 0o620, 0o602, 0o666])
      expect(complaint(() => fromFile(file(text, mode))).message).toContain(
        'other users may write',
      );
    expect(fromFile(file(text, 0o644)).warnings).toEqual([expect.stringContaining('can read')]);
    expect(fromFile(file(text, 0o640)).warnings).toEqual([]);
  });

  it('are refused where the file makes no sense, without quoting it', () => {
    const broken = complaint(() => fromFile(file(`[{"token":"${SECRET}"`)));
    expect(broken.message).toContain('not valid JSON');
    expect(broken.message).not.toContain(SECRET);
    const wrong = complaint(() => fromFile(file(JSON.stringify([one({ scope: 'x' })]))));
    expect(wrong.field).toBe('HOLDFAST_API_TOKENS_FILE[0].scope');
    expect(complaint(() => fromFile(folder)).message).toContain('cannot be read');
    expect(complaint(() => fromFile(join(folder, 'nope'))).message).toContain('cannot be read');
    expect(complaint(() => fromFile(file(' '.repeat(1_048_577)))).message).toContain('cannot');
  });
});
