// One process that sends jobs, or works on them: `node job-process.mjs <queue> <store url>`.
import { setTimeout as sleep } from 'node:timers/promises';
import { QUEUES } from './contenders/job-queues.mjs';
import { monotonicMs } from './statistics.mjs';
import { answerTasks } from './task-process.mjs';

const [name, url] = process.argv.slice(2);
const startedAtMs = new Map();

const tasks = {
  /** Nothing: resolves when the queue is open. */
  async open() {},
  async work(queue) {
    await queue.work((id) => startedAtMs.set(id, monotonicMs()));
  },
  /** One now and then: when each was asked for. */
  async sendSpaced(queue, { from, count, everyMs }) {
    const asked = [];
    for (let n = from; n < from + count; n++) {
      await sleep(everyMs * (0.5 + Math.random()));
      const startMs = monotonicMs();
      await queue.send(n);
      asked.push([n, startMs]);
    }
    return asked;
  },
  /** When each of so many jobs was started, counted from `from`. */
  async startedAt(_, { from, count }) {
    const ids = Array.from({ length: count }, (_unused, i) => from + i);
    while (!ids.every((id) => startedAtMs.has(id))) await sleep(5);
    return ids.map((id) => startedAtMs.get(id));
  },
};

answerTasks(tasks, () => QUEUES[name].open(url));
