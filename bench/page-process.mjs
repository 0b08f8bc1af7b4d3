// One process of the bench of the page: `node page-process.mjs <store url>`.
import { tasks } from './page-tasks.mjs';
import { answerTasks } from './task-process.mjs';

const [url] = process.argv.slice(2);

answerTasks(tasks, async () => ({ url }));
