#!/usr/bin/env node
/**
 * One instance of a fleet: it polls its share of a dozen weather stations, which are served by whichever instance leads.
 * Started again in another terminal it is another one, and they share the stations; stopped or killed, the others take over.
 */
import { parseArgs } from 'node:util';
import { open } from 'holdfast';
import { Screen } from './screen.mjs';
import { removeStations, serveStations, shortName } from './stations.mjs';

/** Short, so that a takeover after kill -9 is seen while one watches. */
const TTL = '4s';
const NAMES = ['ana', 'ben', 'cleo', 'dora', 'emil', 'fay', 'gus', 'hana', 'ivo', 'june'];
const HELP = `npm start [-- --store URL]

Polls a dozen made-up weather stations, together with whoever runs the same command in another terminal.
  --store URL   redis://…, redis+sentinel://…, redis+cluster://… or sqlite:path; default: the embedded store,
                .holdfast/holdfast.db, nothing to install
  --help        this text`;

const { store, help } = readArguments();
if (help) {
  console.log(HELP);
  process.exit(0);
}
// In a store that others use, too, the demo keeps to itself.
const shared = store === undefined ? {} : { prefix: 'demo:' };
const options = { ...shared, on: { 'store.warned': () => {} } };

const name = await freeName().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
const holdfast = await open(store, { ...options, name });
const { store: where } = await holdfast.examine();
const flags = store === undefined ? '' : ` --store ${where} --prefix demo:`;
console.log(`${name} polls its share of a dozen weather stations, on ${where}.
They are served by whichever instance holds the lease 'demo'; leases last ${TTL} without a renewal.

  npm start${store === undefined ? '' : ' -- --store …'}                        in a second and a third terminal: they share the stations
  kill -9 ${String(process.pid).padEnd(25)}and the others take over, the serving too
  npx holdfast map${flags}                 who owns what; also watch, explain demo-cairo, drain ${name}
  Ctrl-C                           hands everything over
`);

const screen = new Screen(holdfast, name);
holdfast.on('store.quarantined', ({ leftMs }) => {
  const seconds = Math.ceil(leftMs / 1_000);
  screen.tell(`the store is new, or was restarted: nothing is granted for ${seconds} s`);
});
const election = holdfast.elect('demo', {
  ttl: TTL,
  onElected: ({ signal }) =>
    serveStations(holdfast, signal, (url) => screen.tell(`${name} serves the stations at ${url}`)),
});
const poller = holdfast.poller({ every: '2s', ttl: TTL, http: { allow: ['loopback'] } });
await poller.start();
screen.start();

let isStopping = false;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => void stop());

async function stop() {
  if (isStopping) process.exit(1);
  isStopping = true;
  const startMs = performance.now();
  const count = poller.manager.ownedSessions().length;
  screen.tell(`${name} hands over ${count} stations …`);
  await poller.stop({ within: '2s' });
  await election.stop({ within: '1s' });
  const { members } = await holdfast.fleet.view();
  if (members.length === 0) await removeStations(holdfast);
  await screen.stop();
  const others = members.map(shortName).join(', ');
  const go = members.length === 1 ? 'goes' : 'go';
  const next = others === '' ? 'nobody is left' : `${others} ${go} on`;
  console.log(`Done in ${Math.round(performance.now() - startMs)} ms: ${next}.`);
  await holdfast.close();
  process.exit(0);
}

/** The first name that no living instance has. */
async function freeName() {
  const look = await open(store, options);
  const { members } = await look.fleet.view();
  await look.close();
  const taken = new Set(members.map(shortName));
  return NAMES.find((each) => !taken.has(each)) ?? `no-${process.pid}`;
}

function readArguments() {
  const known = { store: { type: 'string' }, help: { type: 'boolean', short: 'h' } };
  try {
    return parseArgs({ options: known }).values;
  } catch (error) {
    console.error(`${error.message}\n\n${HELP}`);
    return process.exit(2);
  }
}
