import { afterAll, describe, expect, it } from 'vitest';
import { type Api, startApi, type Token } from './support/api.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { redisGrounds, sqliteGrounds } from './support/intent-ground.ts';

leaveNothingBehind();

/** In everything that is secret: where this turns up, something has been given away. */
const CANARY = 'c4n4ry';
const GROUNDS = [sqliteGrounds(), redisGrounds()];
afterAll(() => Promise.all(GROUNDS.map((kind) => kind.end())));

const secret = (what: string) => `${CANARY}-${what}-which-nobody-else-may-ever-see`;
const token = (id: string, scope: Token['scope'], more: Partial<Token> = {}): Token => ({
  ...{ id, token: secret(id), scope },
  ...more,
});
const ADMIN = token('admin', 'v3:admin');
const WRITER = token('writer', 'v3:write', { tenant: 'a' });
const EXPIRED = token('expired', 'v3:admin', { expiresAt: '2020-01-01T00:00:00Z' });
const UNKNOWN = token('unknown', 'v3:admin');

/** Requests good and bad, with secrets wherever a client may put one by mistake; what each was answered. */
async function requests(api: Api): Promise<string[]> {
  const hidden = secret('mistaken');
  const path = '/api/v3/intents';
  const start = { type: 'stream.start', serviceRef: 'a channel' };
  const asked = [
    api.start('a channel', { as: ADMIN }),
    api.start('a channel', { as: WRITER }),
    api.start('a channel', { as: EXPIRED }),
    api.start('a channel', { as: UNKNOWN }),
    api.ask('POST', path, { body: start }),
    api.ask('POST', path, { as: ADMIN, body: { ...start, token: hidden } }),
    api.ask('POST', path, { as: ADMIN, body: { ...start, profile: `${hidden} ` } }),
    api.ask('POST', path, { as: ADMIN, body: { ...start, type: hidden } }),
    api.ask('POST', path, { as: ADMIN, body: { type: 'stream.stop', sessionId: `${hidden}!` } }),
    api.ask('POST', path, { as: ADMIN, body: `{"type": "${hidden}` }),
    api.ask('POST', path, { as: ADMIN, body: `{"profile": "${hidden}", "profile": "twice"}` }),
    api.get(`/api/v3/sessions?token=${hidden}`, ADMIN),
    api.get(`/api/v3/sessions?cursor=${hidden}`, ADMIN),
    api.get(`/api/v3/sessions/${hidden}`, ADMIN),
    api.get(`/nothing/here/${hidden}`, ADMIN),
    api.get('/api/v3/sessions', UNKNOWN),
    api.get('/api/v3/leases', ADMIN),
    api.get('/api/v3/members', ADMIN),
    api.get('/metrics', ADMIN),
    api.ask('PUT', path, { as: ADMIN, body: { hidden } }),
  ];
  const answers = await Promise.all(asked);
  expect(answers.every(({ status }) => status < 500)).toBe(true);
  return answers.map(({ text, headers }) => `${text} ${JSON.stringify([...headers])}`);
}

describe.each(GROUNDS)('secrets over $name', (kind) => {
  it('I-19 I-05 neither tokens nor the secret of keys are ever said, in no answer, no log and no error, whatever is asked', async () => {
    await using ground = await kind.make();
    await using api = await startApi({
      ...ground.at,
      intents: { secret: secret('current'), previousSecret: secret('previous') },
      app: { tokens: [ADMIN, WRITER, EXPIRED] },
    });
    const answers = await requests(api);
    expect(answers.filter((text) => text.includes(CANARY))).toEqual([]);
    // What a process does not want to say it may yet say when it ends.
    api.child.signal('SIGTERM');
    expect(await api.child.exit()).toEqual({ code: 0, signal: null });
    const said = api.child.stderr + JSON.stringify(api.child.received);
    expect(said).toContain('intent.accepted');
    expect(said).not.toContain(CANARY);
    const kept = await ground.store.records.get('secret', ['idempotency'], { timeoutMs: 5_000 });
    expect(kept).toMatchObject([{ kind: 'found', value: { fingerprint: expect.any(String) } }]);
    expect(JSON.stringify(kept)).not.toContain(CANARY);
  });

  it('I-19 a token that is too weak to be one is refused at the start, and not repeated', async () => {
    await using ground = await kind.make();
    const weak = { id: 'weak', token: CANARY, scope: 'v3:admin' } as const;
    const starting = startApi({ ...ground.at, app: { tokens: [weak] } });
    const error: Error = await starting.then(
      () => expect.unreachable(),
      (reason) => reason,
    );
    expect(error.message).toContain('tokens[0].token');
    expect(error.message).not.toContain(CANARY);
  });
});
