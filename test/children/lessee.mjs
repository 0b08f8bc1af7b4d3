// A process that opens a store and does what it is told over stdin, one JSON line per command:
// {"do": "acquire", "key": …, "options": …} and so on; see `commands`. Times are in ms on the clock all processes share.
import { open } from 'holdfast';
import { hostMs, obey, say, tellUnhandled } from './parent.mjs';

tellUnhandled();

const [url, options = '{}'] = process.argv.slice(2);
const quiet = { 'store.warned': () => {} };
const holdfast = await open(url, { quarantine: 'off', on: quiet, ...JSON.parse(options) });
holdfast.on('lease.lost', ({ key, fence, reason }) => say({ event: 'lost', key, fence, reason }));
holdfast.on('lease.renewed', ({ tookMs }) => say({ event: 'renewed', sentMs: hostMs() - tookMs }));
holdfast.on('loop.delayed', ({ lateMs }) => say({ event: 'delayed', lateMs }));
const leases = new Map();

const assertion = (lease) => {
  try {
    lease.assertHeld();
    return 'passes';
  } catch (error) {
    return error.code;
  }
};

const commands = {
  async acquire({ key, options, abortAfterMs }) {
    const signal = abortAfterMs === undefined ? undefined : AbortSignal.timeout(abortAfterMs);
    const sentMs = hostMs();
    const result = await holdfast.acquire(key, { ...options, ...(signal && { signal }) });
    const gotMs = hostMs();
    if (result.ok) leases.set(key, result.lease);
    const { holder, fence } = result.ok ? result.lease : result;
    return { ok: result.ok, reason: result.reason, holder, fence, sentMs, gotMs };
  },

  /** Samples a lease at every turn; tells the last moment a check passed, and what the first one after a gap saw. */
  watch({ key, gapMs = 300 }) {
    const lease = leases.get(key);
    let beforeMs = hostMs();
    let lastPassMs = 0;
    const sample = () => {
      const atMs = hostMs();
      const isHeld = lease.isHeld();
      const asserted = assertion(lease);
      if (isHeld || asserted === 'passes') lastPassMs = atMs;
      if (atMs - beforeMs > gapMs) {
        const { state, signal } = lease;
        say({ event: 'woke', atMs, isHeld, asserted, state, aborted: signal.aborted, lastPassMs });
      }
      beforeMs = atMs;
    };
    const timer = setInterval(sample, 1);
    lease.signal.addEventListener('abort', () => {
      // Another timer may have woken first, and found out: then this is the first look after the gap.
      sample();
      clearInterval(timer);
    });
    return {};
  },

  /** Blocks the event loop, and in the very next statements asks each lease one question, the first it hears. */
  block({ keys, ms }) {
    const [a, b, c, d, e] = keys.map((key) => leases.get(key));
    const untilMs = hostMs() + ms;
    while (hostMs() < untilMs);
    const isHeld = a.isHeld();
    const asserted = assertion(b);
    const aborted = c.signal.aborted;
    const state = d.state;
    const remainingMs = e.remainingMs();
    return { isHeld, asserted, aborted, state, remainingMs, reason: c.signal.reason?.code };
  },

  /** Asks for a lease, and blocks the event loop while the answer is on its way. */
  async acquireLate({ key, options, afterMs, ms }) {
    const asked = holdfast.acquire(key, options);
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    const untilMs = hostMs() + ms;
    while (hostMs() < untilMs);
    const result = await asked;
    return { ok: result.ok, state: result.lease?.state };
  },

  release: ({ key, options }) => leases.get(key).release(options),

  put: ({ key, value, fence }) => holdfast.records.put(key, value, { fence }),

  /** Lets go of everything it watches and ends by itself: nothing may keep the process alive. */
  async close({ options }) {
    await holdfast.close(options);
    hangUp();
    return {};
  },
};

const hangUp = obey(commands);
say({ event: 'ready', id: holdfast.instanceId });
