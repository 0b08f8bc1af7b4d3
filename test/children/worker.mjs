// One worker: opens a store, runs what is started, and does what it is told over stdin, one JSON line per command; see `commands`. SIGTERM
// stops it in order, and the process ends with 0.
//
//   worker.mjs URL {"open": …, "worker": …, "tell": ["lease.acquired", …], "strikes": …}
//
// `open` and `worker` are given to the library as they are; the events in `tell` are told as they happen, with the time on the host's wall clock.
// `strikes` is what befalls it, once, at a call of the store:
//
//   {"verb": "intents.advance", "saying": "RUNNING", "when": "before" | "after", "signal": "SIGKILL" | "SIGSTOP"}
//
// at the first call of that verb that has the text in what it is given.

import { systemClock } from '../../dist/core/clock.js';
import { Emitter } from '../../dist/core/events.js';
import { systemRandom } from '../../dist/core/random.js';
import { open } from '../../dist/index.js';
import { openStore } from '../../dist/store/open-store.js';
import { obey, say, tellUnhandled } from './parent.mjs';

const wallMs = () => performance.timeOrigin + performance.now();

tellUnhandled();

const [url, text = '{}'] = process.argv.slice(2);
const { prefix = '', worker: settings, tell = [], strikes } = JSON.parse(text);

let isStruck = false;
function strike(when, verb, given) {
  if (isStruck || strikes?.verb !== verb || strikes.when !== when) return;
  if (!JSON.stringify(given).includes(strikes.saying ?? '')) return;
  isStruck = true;
  say({ event: 'struck', atMs: wallMs() });
  process.kill(process.pid, strikes.signal);
}

/** A part of the store whose verbs can be struck. */
const struck = (part, name) =>
  new Proxy(part, {
    get(target, property) {
      const value = target[property];
      if (typeof value !== 'function') return value;
      const verb = `${name}.${property}`;
      if (verb !== strikes.verb) return value.bind(target);
      return async (...given) => {
        strike('before', verb, given);
        const reply = await value.apply(target, given);
        strike('after', verb, given);
        return reply;
      };
    },
  });

async function openStruck() {
  const opening = { clock: systemClock, random: systemRandom, events: new Emitter() };
  const { store } = await openStore(url, { ...opening, prefix, quarantine: 'off' });
  const part = strikes.verb.split('.')[0];
  const partly = struck(store[part], part);
  const wrapped = new Proxy(store, {
    get(target, property) {
      if (property === part) return partly;
      const value = target[property];
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return { at: wrapped, store };
}

const { at, store } = strikes === undefined ? { at: url, store: null } : await openStruck();
const telling = Object.fromEntries(
  tell.map((name) => [
    name,
    (facts) => {
      const error = facts.error === undefined ? {} : { error: String(facts.error) };
      say({ event: name, atMs: wallMs(), ...facts, ...error });
    },
  ]),
);
const holdfast = await open(at, {
  ...(store === null && { prefix, quarantine: 'off' }),
  on: { 'store.warned': () => {}, ...telling },
});
const worker = holdfast.worker(settings);

let stopping = null;
function stop(how = {}) {
  stopping ??= (async () => {
    await worker.stop(how);
    await holdfast.close();
    await store?.close();
    // Nothing may keep the process alive now: it ends by itself.
    hangUp();
  })();
  return stopping;
}

const commands = {
  status: () => ({ state: worker.state, sessions: worker.sessions, held: holdfast.held }),

  /** Between two turns, so that it never stands still with the store's own lock in its hands. */
  freeze() {
    say({ event: 'freezing', atMs: wallMs() });
    process.kill(process.pid, 'SIGSTOP');
    return { atMs: wallMs() };
  },

  async stop({ how }) {
    const fromMs = wallMs();
    await stop(how);
    return { fromMs, atMs: wallMs() };
  },
};

const hangUp = obey(commands);
process.once('SIGTERM', () => void stop());

say({ event: 'ready', id: holdfast.instanceId, atMs: wallMs() });
try {
  await worker.start();
  say({ event: 'started', atMs: wallMs() });
} catch (error) {
  say({ event: 'refused', code: error.code, message: error.message, atMs: wallMs() });
  await stop();
}
