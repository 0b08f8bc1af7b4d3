import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { type Holdfast, open } from '../../src/holdfast.ts';
import { type AppOptions, createApp } from '../../src/server/app.ts';
import { type Serving, serve } from '../../src/server/serve.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { LOG_TOPIC } from '../../src/telemetry/history.ts';
import { TOKENS } from '../support/server-world.ts';
import { until } from '../support/until.ts';

const AUTHORIZATION = `Bearer ${TOKENS.admin.token}`;
/** More than the kernel keeps for a socket that nobody reads from. */
const MUCH_BYTES = 32_000_000;
const EVENT_BYTES = 4_000;

const running: { serving: Serving; holdfast: Holdfast }[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const { serving, holdfast } of running.splice(0)) {
    await serving.close({ within: 0 });
    await holdfast.close();
  }
});

async function served(options: AppOptions = {}) {
  const store = createMemoryStore({ clock: systemClock });
  const holdfast = await open(store, { history: 'off' });
  const tokens = Object.values(TOKENS);
  const app = createApp(holdfast, { tokens, metrics: 'open', ...options });
  const serving = await serve(app);
  running.push({ serving, holdfast });
  let count = 0;
  const append = async (many: number) => {
    const why = 'x'.repeat(EVENT_BYTES);
    const entries = Array.from({ length: many }, () => {
      return { at: 1, instance: 'a', event: 'session.unreadable', session: `s${count++}`, why };
    });
    await store.log.append(entries, { timeoutMs: 1_000 });
    await store.signals.publish(LOG_TOPIC, '');
  };
  const watching = async () => {
    const text = await (await fetch(`${serving.url}/metrics`)).text();
    return Number(/^holdfast_sse_clients (\d+)$/m.exec(text)?.[1]);
  };
  return { serving, append, watching };
}

/** A client over a bare socket, which reads as its test says. */
async function listener({ port, host }: Serving) {
  const socket = connect(port, host);
  sockets.push(socket);
  await once(socket, 'connect');
  let text = '';
  socket.setEncoding('latin1').on('data', (data) => {
    text += data;
  });
  socket.write(
    `GET /api/v3/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${AUTHORIZATION}\r\n\r\n`,
  );
  await until(() => text.includes('id: '), { what: 'the beginning of the stream' });
  return { socket, count: () => text.match(/^event: session/gm)?.length ?? 0, text: () => text };
}

describe('a stream of events over a socket', () => {
  it('is ended for one who does not read, while the others hear everything', async () => {
    const { serving, append, watching } = await served({ events: { queuedBytes: 100_000 } });
    const slow = await listener(serving);
    const quick = await listener(serving);
    slow.socket.pause();
    const rounds = MUCH_BYTES / EVENT_BYTES / 100;
    for (let sent = 100; sent <= rounds * 100; sent += 100) {
      await append(100);
      await until(() => quick.count() === sent, { what: `event ${sent}` });
      if ((await watching()) === 1) break;
    }
    expect(await watching()).toBe(1);
    slow.socket.resume();
    await until(() => slow.text().includes('event: bye\ndata: {"reason":"too-slow"}'), {
      what: 'the bye',
    });
    expect(slow.count()).toBeLessThan(quick.count());
  });

  it('is let go when its client is gone without a word', async () => {
    const { serving, append, watching } = await served();
    const clients = await Promise.all(Array.from({ length: 20 }, () => listener(serving)));
    expect(await watching()).toBe(20);
    for (const { socket } of clients.slice(1)) socket.resetAndDestroy();
    await until(async () => (await watching()) === 1, { what: 'one client left' });
    await append(1);
    await until(() => clients[0]?.count() === 1, { what: 'the event' });
  });

  it('does not keep a server from closing, and ends with a word', async () => {
    const { serving } = await served();
    const { socket, text } = await listener(serving);
    const ended = once(socket, 'close');
    const startMs = systemClock.monotonicMs();
    await serving.close({ within: '20s' });
    await ended;
    expect(systemClock.monotonicMs() - startMs).toBeLessThan(10_000);
    expect(text()).toContain('event: bye\ndata: {"reason":"closing"}');
  });
});
