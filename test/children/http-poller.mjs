// Polls one target by the built-in poll: http-poller.mjs <store> <url of the target>. Told anything, it is busy for a second, in a
// timer: who stops it then finds it where it reads its sockets before the next timers fire.
import { writeSync } from 'node:fs';
import { open } from '../../dist/index.js';

const BUSY_MS = 1_000;
const STDOUT = 1;

const [store, url] = process.argv.slice(2);
const holdfast = await open(store);
const tell = (event, facts = {}) => writeSync(STDOUT, `${JSON.stringify({ event, ...facts })}\n`);
holdfast.on('lease.acquired', ({ fence }) => tell('acquired', { fence }));
const beBusy = () => {
  tell('busy');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_MS);
};
process.stdin.on('data', () => setTimeout(beBusy, 0));
const poller = holdfast.poller({
  targets: [{ id: 'target', url }],
  ...{ ttl: '1500ms', every: '500ms', results: 'off', discovery: 'off' },
  http: { allow: ['loopback'] },
});
await poller.start();
