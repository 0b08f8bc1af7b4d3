import { describe, expect, it } from 'vitest';
import { fenceAt, LogWriter, NOON } from '../incident/logged.ts';
import { serverWorld } from '../support/server-world.ts';

const AT_NOON = 'from=2026-06-01T11:59:00Z&to=2026-06-01T12:10:00Z';

async function reportWorld() {
  const world = await serverWorld();
  const log = new LogWriter()
    .acquired(0, 'ana', { key: 'device-7' })
    .ended('released', 5_000, 'ana', { since: 0, key: 'device-7' })
    .acquired(6_000, 'ben', { key: 'device-8', fence: fenceAt(6_000) });
  const values = log.events.map(({ position: _, ...entry }) => entry);
  await world.store.log.append(values, { timeoutMs: 1_000 });
  const report = (search = '', token: 'admin' | 'read' | 'acme' | null = 'read') =>
    world.ask('GET', `/api/v3/report${search}`, { token });
  return { ...world, report };
}

describe('GET /api/v3/report', () => {
  it('B-29 is a page to download, for a token that may look', async () => {
    const { report } = await reportWorld();
    const { status, headers, text } = await report(`?${AT_NOON}&zone=Europe/Berlin`);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('content-disposition')).toBe(
      'attachment; filename="holdfast-2026-06-01-11-59.html"',
    );
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'un/);
    expect(text).toContain('<h1>2026-06-01 13:59:00 to 14:10:00</h1>');
    expect(text).toContain('No contradiction found.');
    expect(text).toContain('device-7');
    expect(text).toContain('device-8');
  });

  it('is of one key, if that is asked for', async () => {
    const { report } = await reportWorld();
    const { text } = await report(`?${AT_NOON}&key=device-8`);
    expect(text).not.toContain('device-7');
    expect(text).toContain('device-8');
  });

  it('is of the last hour, unless a time is given', async () => {
    const { report, clock } = await reportWorld();
    const hour = new Date(clock.wallMs() - 3_600_000).toISOString().slice(0, 10);
    const { status, text } = await report('?zone=UTC');
    expect(status).toBe(200);
    expect(text).toContain(`<h1>${hour}`);
    expect((await report(`?to=${new Date(NOON + 60_000).toISOString()}`)).text).toContain(
      'device-7',
    );
  });

  it('needs a token of no tenant', async () => {
    const { report } = await reportWorld();
    expect((await report('', null)).status).toBe(401);
    expect((await report('', 'acme')).status).toBe(403);
  });

  it.each([
    ['from=lunch', 'from', 'must be a time with its date'],
    ['from=03:10', 'from', 'must be a time with its date'],
    ['from=2026-02-31T03:10:00Z', 'from', 'a time is one of today'],
    ['from=2026-06-01T11:00:00Z&to=2026-06-01T10:00:00Z', 'to', 'it has to be after from'],
    ['zone=Mars/Base', 'zone', 'the name of a time zone'],
    ['key=', 'key', 'must be the key of a lease'],
    ['until=now', 'until', ''],
  ])('refuses %s with the field and the rule', async (search, field, rule) => {
    const { report } = await reportWorld();
    const { status, json } = await report(`?${search}`);
    expect(status).toBe(400);
    expect(json.errors).toMatchObject([{ field, rule: expect.stringContaining(rule) }]);
  });
});

it('holdfast/client has it as text', async () => {
  const { app } = await reportWorld();
  const { OperatorClient } = await import('../../src/client/index.ts');
  const { TOKENS } = await import('../support/server-world.ts');
  const client = new OperatorClient({
    url: 'http://localhost',
    token: TOKENS.read.token,
    fetch: async (input, init) => app.fetch(new Request(String(input), init)),
  });
  const page = await client.report({ from: '2026-06-01T11:59:00Z', to: '2026-06-01T12:10:00Z' });
  expect(page).toMatch(/^<!doctype html>/);
  expect(page).toContain('device-7');
});
