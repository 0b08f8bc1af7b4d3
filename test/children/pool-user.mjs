// One of many processes that share a pool: waits for a slot, uses it for a moment, lets go, rests as long, and waits again.
// {"do": "work", "holdMs": …}: until told {"do": "finish"}; it says when it has a slot, and has ended. {"do": "keep"}: does not let go of the
// next one. {"do": "close"}: ends.
// Times are in ms on the clock all processes share.
import { setTimeout as sleep } from 'node:timers/promises';
import { open } from 'holdfast';
import { hostMs, obey, say, tellUnhandled } from './parent.mjs';

tellUnhandled();

const [url, options] = process.argv.slice(2);
const holdfast = await open(url, { quarantine: 'off', on: { 'store.warned': () => {} } });
const pool = holdfast.pool('gpu', JSON.parse(options));
let isWanted = true;
let isKept = false;

const commands = {
  async work({ holdMs }) {
    while (isWanted) {
      const askedMs = hostMs();
      const result = await pool.acquire({ wait: '25s' });
      if (!result.ok) return { refused: result.reason };
      const { slot, lease } = result;
      const { fence } = lease;
      say({ event: 'granted', slot, fence, isKept, askedMs, gotMs: hostMs() });
      await sleep(isKept ? 3_600_000 : holdMs);
      const isHeld = lease.isHeld();
      say({ event: 'ended', slot, fence, isHeld, endMs: hostMs() });
      await lease.release();
      await sleep(holdMs);
    }
    return {};
  },
  async keep() {
    isKept = true;
    return {};
  },
  async finish() {
    isWanted = false;
    return {};
  },
  async close() {
    await holdfast.close();
    hangUp();
    return {};
  },
};

const hangUp = obey(commands);
say({ event: 'ready' });
