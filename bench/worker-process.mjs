// One process of the bench of workers: `node worker-process.mjs <store url>`. It serves, works, or asks those that do.
import { open } from 'holdfast';
import { answerTasks } from './task-process.mjs';
import { Stage } from './worker-stage.mjs';
import { tasks } from './worker-tasks.mjs';

const [url] = process.argv.slice(2);

answerTasks(tasks, async () => {
  const holdfast = await open(url, { quarantine: 'off', name: 'bench' });
  return {
    holdfast,
    intents: holdfast.intents(),
    worker: null,
    stage: new Stage(),
    lastReleaseMs: 0,
    agent: null,
  };
});
