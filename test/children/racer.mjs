// One of many processes that want the same key at the same moment.
// {"do": "race", "atMs": …}: tries once, then. {"do": "queue"}: waits, holds for a moment, lets go. {"do": "close"}: ends.
import { open } from 'holdfast';
import { hostMs, obey, say, tellUnhandled } from './parent.mjs';

tellUnhandled();

const [url, key] = process.argv.slice(2);
const holdfast = await open(url, { quarantine: 'off', on: { 'store.warned': () => {} } });

const commands = {
  async race({ atMs, options }) {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, atMs - hostMs() - 20)));
    while (hostMs() < atMs);
    const result = await holdfast.acquire(key, options);
    // The winner keeps it until it is told to queue: exactly one may win.
    if (result.ok) commands.queue = () => result.lease.release().then(() => queue({ options }));
    return { ok: result.ok, fence: result.ok ? result.lease.fence : result.fence };
  },
  queue: ({ options }) => queue({ options }),
  async close() {
    await holdfast.close();
    hangUp();
    return {};
  },
};

async function queue({ options }) {
  const result = await holdfast.acquire(key, { ...options, wait: '25s' });
  if (!result.ok) return { ok: false };
  const { lease } = result;
  const fromMs = hostMs();
  await new Promise((resolve) => setImmediate(resolve));
  const held = lease.isHeld();
  const toMs = hostMs();
  const { released } = await lease.release();
  return { ok: true, held, released, fence: lease.fence, fromMs, toMs };
}

const hangUp = obey(commands);
say({ event: 'ready' });
