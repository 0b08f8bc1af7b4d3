// One process of the HTTP interface: opens a store, serves the app on it, and logs on stderr. The first line on its stdin,
// when it has said that it is loaded, says how, since what it says may be secret:
//
//   {"url": …, "prefix": …, "intents": …, "app": …, "dies": "before the step" | "after the step",
//    "quarantine": "on" | "off", "maxTtl": …}
//
// `intents` and `app` are given to the library as they are. With `dies` the process ends with SIGKILL around the first start
// that it has the store take, in place of an answer. SIGTERM closes it in order.
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { systemClock } from '../../dist/core/clock.js';
import { Emitter } from '../../dist/core/events.js';
import { systemRandom } from '../../dist/core/random.js';
import { open } from '../../dist/index.js';
import { createApp, serve } from '../../dist/server/index.js';
import { openStore } from '../../dist/store/open-store.js';
import { readMaxTtl } from '../../dist/store/port/keyspaces.js';
import { Log } from '../../dist/telemetry/log.js';
import { say } from './parent.mjs';

const die = () => process.kill(process.pid, 'SIGKILL');

say({ event: 'loaded' });
const [line] = await once(createInterface({ input: process.stdin }), 'line');
const { url, prefix = '', intents, app: settings, dies, ...opened } = JSON.parse(line);
const { quarantine = 'off', maxTtl } = opened;

const opening = { clock: systemClock, random: systemRandom, events: new Emitter() };
const maxTtls = maxTtl === undefined ? {} : { maxTtls: readMaxTtl(maxTtl) };
const { store } = await openStore(url, { ...opening, ...maxTtls, prefix, quarantine });

async function start(request, call) {
  if (dies === 'before the step') die();
  const reply = await store.intents.start(request, call);
  if (dies === 'after the step') die();
  return reply;
}

const around = (part, verbs) =>
  new Proxy(part, {
    get(target, name) {
      if (name in verbs) return verbs[name];
      const value = target[name];
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });

const log = new Log({
  clock: systemClock,
  level: 'debug',
  write: (text) => process.stderr.write(text),
});
const holdfast = await open(around(store, { intents: around(store.intents, { start }) }), {
  on: log.listeners(),
});
log.identify(holdfast.instanceId);
const app = createApp(holdfast, { ...settings, intents: holdfast.intents(intents) });
const server = await serve(app, { host: '127.0.0.1', port: 0 });
process.once('SIGTERM', async () => {
  await server.close();
  await holdfast.close();
  await store.close();
  process.stdin.destroy();
});
say({ event: 'ready', port: server.port });
