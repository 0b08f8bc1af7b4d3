/**
 * One process of a service of which one leads: `node node.mjs NAME`. The leader schedules, which here is to count; everybody answers
 * reads over HTTP, the followers too, for what was scheduled is in the store.
 */
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { open } from 'holdfast';
import { saying } from './saying.mjs';

const [name] = process.argv.slice(2);
const { HOLDFAST_STORE, HOLDFAST_PREFIX: prefix, HOLDFAST_QUARANTINE: quarantine } = process.env;
const holdfast = await open(HOLDFAST_STORE, { name, prefix, quarantine });
const said = saying(name);

const election = holdfast.elect('scheduler', {
  ttl: '2s', // how long a dead leader goes unnoticed, at most
  async onElected({ signal, fence, isHeld }) {
    said('elected', { fence });
    let { count = 0 } = (await holdfast.records.get('schedule'))?.value ?? {};
    // Asked before each step: no I/O, and never late. Who is told to stop still holds the lease, until this returns.
    while (!signal.aborted && isHeld()) {
      // The fence, for whoever is frozen right here: the record refuses what is older than it has seen.
      await holdfast.records.put('schedule', { by: name, count: ++count }, { fence });
      await sleep(50, null, { signal }).catch(() => {}); // not leading any more ends the pause, too
    }
  },
  onLost({ reason }) {
    said('lost', { reason });
  },
});

const server = createServer(async (_, response) => {
  const { value } = (await holdfast.records.get('schedule')) ?? { value: null };
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify({ from: name, isLeader: election.isLeader, schedule: value }));
});
server.listen(0, '127.0.0.1', () => said('serves', { port: server.address().port }));

process.once('SIGTERM', async () => {
  server.close();
  await election.stop(); // steps down, waits for `onElected` to return, and lets go: the next one leads at once
  await holdfast.close();
});
