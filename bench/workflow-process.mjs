// One process that writes workflows, or works for them: `node workflow-process.mjs <store url>`; with `client+` before the
// URL of a Redis over a client of node-redis, which it then also has for itself.
import { open } from 'holdfast';
import { createClient } from 'redis';
import { answerTasks } from './task-process.mjs';
import { tasks } from './workflow-tasks.mjs';

const [address] = process.argv.slice(2);
const CLIENT = 'client+';
const url = address.startsWith(CLIENT) ? address.slice(CLIENT.length) : address;

answerTasks(tasks, async () => {
  const client = url === address ? null : await createClient({ url, RESP: 2 }).connect();
  const holdfast = await open(client ?? url, { quarantine: 'off', name: 'bench' });
  return {
    holdfast,
    client,
    url,
    orchestrators: new Map(),
    processor: null,
    handled: new Map(),
    bare: null,
  };
});
