// One contender in a process of its own: `node child.mjs <name> <client> <redis url>`.
import { openContender } from './contenders.mjs';
import { openProbe } from './redis.mjs';
import { answerTasks } from './task-process.mjs';
import { tasks } from './tasks.mjs';

const [name, client, url] = process.argv.slice(2);

answerTasks(tasks, async () => {
  const [contender, probe] = await Promise.all([
    openContender({ name, client }, url),
    openProbe(url),
  ]);
  return { contender, redisCpuUs: probe.redisCpuUs, memory: new Map() };
});
