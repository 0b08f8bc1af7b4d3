import { once } from 'node:events';
import { type ClientRequest, request } from 'node:http';
import { afterAll, describe, expect, it } from 'vitest';
import { type Api, startApi, WRITER } from './support/api.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { allSessions, redisGrounds, sqliteGrounds, takeStarts } from './support/intent-ground.ts';

leaveNothingBehind();

const GROUNDS = [sqliteGrounds(), redisGrounds()];
afterAll(() => Promise.all(GROUNDS.map((kind) => kind.end())));

/** Sends a start, and returns when all of it is on its way. */
async function sendStart({ url }: Api, serviceRef: string): Promise<ClientRequest> {
  const body = JSON.stringify({ type: 'stream.start', serviceRef });
  const headers = { Authorization: `Bearer ${WRITER.token}`, 'Content-Type': 'application/json' };
  const sent = request(`${url}/api/v3/intents`, { method: 'POST', headers });
  sent.on('error', () => {});
  sent.end(body);
  await once(sent, 'finish');
  return sent;
}

/** The client gives up: the connection is closed. */
async function hangUp(sent: ClientRequest): Promise<void> {
  const closed = new Promise((resolve) => sent.once('close', resolve));
  sent.destroy();
  await closed;
}

describe.each(GROUNDS)('an interface that was frozen, over $name', (kind) => {
  it('I-13 I-06 does not carry out a start whose client has gone, and was served by another process', async () => {
    await using ground = await kind.make();
    await using frozen = await startApi(ground.at);
    await using other = await startApi(ground.at);
    // From now on it knows the secret, and asks the store for nothing else before it starts something.
    expect((await frozen.start('before')).status).toBe(202);
    expect(await takeStarts(ground.store)).toHaveLength(1);
    await frozen.child.freeze();
    await hangUp(await sendStart(frozen, 'the channel'));
    const { body } = await other.start('the channel');
    const sessionId = String(body.sessionId);
    expect((await other.stop(sessionId)).status).toBe(202);
    expect(await takeStarts(ground.store)).toEqual([sessionId]);
    await frozen.child.thaw();
    // By the time that a later request is answered, the one that waited has been read and dealt with.
    for (const channel of ['a', 'b']) expect((await frozen.start(channel)).status).toBe(202);
    const targets = (await allSessions(ground.store)).map(({ target }) => target);
    expect(targets.sort()).toEqual(['a', 'b', 'before', 'the channel']);
    expect(await takeStarts(ground.store)).toHaveLength(2);
  });

  it('I-13 carries out a start whose client still waits', async () => {
    await using ground = await kind.make();
    await using frozen = await startApi(ground.at);
    await frozen.child.freeze();
    const sent = await sendStart(frozen, 'the channel');
    await frozen.child.thaw();
    const [{ statusCode }] = await once(sent, 'response');
    expect(statusCode).toBe(202);
    expect(await allSessions(ground.store)).toHaveLength(1);
    sent.destroy();
  });
});
