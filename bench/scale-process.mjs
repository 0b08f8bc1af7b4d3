// One process that holds, starts or asks for much: `node scale-process.mjs <store url>`.
import { open } from 'holdfast';
import { scaleTasks } from './scale-tasks.mjs';
import { answerTasks } from './task-process.mjs';

const [url] = process.argv.slice(2);
const options = { quarantine: 'off', name: 'bench', history: 'off' };

answerTasks(scaleTasks, async () => ({ holdfast: await open(url, options), url, leases: [] }));
