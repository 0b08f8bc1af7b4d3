// One contender in a process of its own: `node child.mjs <name> <client> <redis url>`. It is told what to do over the
// IPC channel, one task at a time, `{ id, task, facts }`, and answers `{ id, result }` or `{ id, error }`.
import { openContender } from './contenders.mjs';
import { openProbe } from './redis.mjs';
import { tasks } from './tasks.mjs';

const [name, client, url] = process.argv.slice(2);
let opened = null;

process.on('message', async ({ id, task, facts }) => {
  try {
    opened ??= open();
    process.send({ id, result: await tasks[task](await opened, facts) });
  } catch (error) {
    process.send({ id, error: error?.stack ?? String(error) });
  }
});
// The bench has ended, however it did.
process.once('disconnect', () => process.exit());

async function open() {
  const [contender, probe] = await Promise.all([
    openContender({ name, client }, url),
    openProbe(url),
  ]);
  return { contender, redisCpuUs: probe.redisCpuUs, memory: new Map() };
}
