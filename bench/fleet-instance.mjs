// One instance of a fleet in a process of its own: `node fleet-instance.mjs <store url>`.
import { open } from 'holdfast';
import { Notes, tasks } from './fleet-tasks.mjs';
import { answerTasks } from './task-process.mjs';

const [url] = process.argv.slice(2);

answerTasks(tasks, async () => {
  const holdfast = await open(url, { quarantine: 'off', name: 'bench' });
  return { holdfast, notes: new Notes(), poller: null, loop: null };
});
