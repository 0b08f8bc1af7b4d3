// One instance of a fleet: opens a store, polls what it owns, and does what it is told over stdin, one JSON line per
// command; see `commands`. SIGTERM hands everything over, and the process ends with 0.
//
//   fleet-member.mjs URL {"open": …, "poller": …, "tell": ["lease.lost", …], "hung": ["some-target"]}
//
// `open` and `poller` are given to the library as they are; the events in `tell` are told as they happen, with the time;
// polls of what is `hung` never settle, whatever their signal says.
import { open } from 'holdfast';
import { pollTarget } from './fleet-poll.mjs';
import { hostMs, obey, say, tellUnhandled } from './parent.mjs';

tellUnhandled();

const [url, text = '{}'] = process.argv.slice(2);
const options = JSON.parse(text);
const quiet = { 'store.warned': () => {} };
const tell = (name) => (facts) => {
  const error = facts.error === undefined ? {} : { error: String(facts.error) };
  say({ event: name, atMs: hostMs(), ...facts, ...error });
};
const told = Object.fromEntries((options.tell ?? []).map((name) => [name, tell(name)]));
const holdfast = await open(url, {
  quarantine: 'off',
  on: { ...quiet, ...told },
  ...options.open,
});
const instance = holdfast.instanceId;
const hung = new Set(options.hung);
const poller = holdfast.poller({
  poll: (target, { signal, fence }) =>
    hung.has(target.id)
      ? new Promise(() => {})
      : pollTarget(target.url, { instance, fence, signal }),
  ...options.poller,
});

let stopping = null;
function stop(how = {}) {
  stopping ??= (async () => {
    await poller.stop(how);
    await holdfast.close();
    // Nothing may keep the process alive now: it ends by itself.
    hangUp();
  })();
  return stopping;
}

const commands = {
  /** What this instance believes, without asking anybody. */
  status() {
    return { owned: poller.manager.ownedSessions() };
  },

  async live() {
    return { live: await poller.manager.getLiveNodes() };
  },

  async preferred({ id }) {
    return { owner: await poller.manager.preferredOwner(id) };
  },

  info({ id }) {
    return { info: poller.manager.leaseInfo(id), isOwned: poller.manager.isOwned(id) };
  },

  async tryAcquire({ id }) {
    return { acquired: await poller.manager.tryAcquire(id) };
  },

  async release({ id }) {
    await poller.manager.release(id);
    return {};
  },

  async explain({ id }) {
    return { explanation: await poller.explain(id) };
  },

  /** Keeps the event loop from turning, and says from when to when. */
  block({ ms }) {
    const fromMs = hostMs();
    while (hostMs() < fromMs + ms);
    return { fromMs, toMs: hostMs() };
  },

  async stop({ how }) {
    await stop(how);
    return {};
  },
};

const hangUp = obey(commands);
process.once('SIGTERM', () => void stop());

say({ event: 'ready', id: instance, atMs: hostMs() });
await poller.start();
say({ event: 'started', atMs: hostMs() });
