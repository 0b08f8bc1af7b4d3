/** A route without any library but the server's own: it parses a body, has Redis run one script that sets one key, and answers. */
import { createHash } from 'node:crypto';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { createClient } from 'redis';
import { openBare } from './bare-stream.mjs';

const SET = `return redis.call('SET', KEYS[1], ARGV[1])`;
const SHA = createHash('sha1').update(SET).digest('hex');

/** The port. `client` says how it speaks to Redis: `node-redis`, or `ours`, the connection that Holdfast itself uses. */
export async function serveBare(url, client) {
  const send = client === 'ours' ? await ourSend(url) : await nodeRedisSend(url);
  await send('SCRIPT', 'LOAD', SET);
  const app = new Hono();
  app.post('/api/v3/intents', async (c) => {
    const { type, serviceRef, profile } = await c.req.json();
    await send('EVALSHA', SHA, '1', `bare:${serviceRef}`, `${type} ${profile}`);
    return c.json({ serviceRef }, 202);
  });
  return new Promise((resolve) => {
    serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => resolve(port));
  });
}

async function nodeRedisSend(url) {
  // Untimed: the AbortSignal that it makes for every command otherwise costs more than the command.
  const client = createClient({ url, RESP: 2, commandOptions: { timeout: 0 } });
  await client.connect();
  return (...args) => client.sendCommand(args);
}

async function ourSend(url) {
  const { send } = await openBare(url);
  return send;
}
