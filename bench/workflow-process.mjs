// One process that writes workflows, or works for them: `node workflow-process.mjs <store url>`.
import { open } from 'holdfast';
import { answerTasks } from './task-process.mjs';
import { tasks } from './workflow-tasks.mjs';

const [url] = process.argv.slice(2);

answerTasks(tasks, async () => {
  const holdfast = await open(url, { quarantine: 'off', name: 'bench' });
  return {
    holdfast,
    url,
    orchestrators: new Map(),
    processor: null,
    handled: new Map(),
    bare: null,
  };
});
