// One process of the bench of intents: `node intent-process.mjs <store url>`. It serves, or asks those that do.

import { tasks } from './intent-tasks.mjs';
import { answerTasks } from './task-process.mjs';

const [url] = process.argv.slice(2);

answerTasks(tasks, async () => ({ url, channels: 0, listeners: null, memory: 0 }));
