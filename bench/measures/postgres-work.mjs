import { QUEUES } from '../contenders/job-queues.mjs';
import { OURS } from '../contenders.mjs';
import { absolute, versus } from '../report.mjs';
import { median, quantile } from '../statistics.mjs';
import { TaskProcess } from '../task-process.mjs';
import { delays } from './workflow-start.mjs';
import { race } from './workflow-throughput.mjs';

/** From the call of emit() in one process until the handler starts in another. */
export const postgresStart = { name: 'emit → handler started in another process', run: start };

async function start({ work: bench, url }) {
  try {
    const took = await delays(bench, { url }, bench.plan.starts);
    const at = (share) => ({ [OURS.name]: quantile(took, share) });
    const row = { requirement: 'W-13', unit: 'ms' };
    return [
      absolute({ ...row, measure: `${postgresStart.name}, p50`, figures: at(0.5), atMost: 6 }),
      absolute({ ...row, measure: `${postgresStart.name}, p95`, figures: at(0.95), atMost: 15 }),
    ];
  } finally {
    await bench.reset();
  }
}

export const postgresThroughput = {
  name: 'processed actions, one processor, 100 workflows',
  run: throughput,
};

async function throughput({ work: bench, url }) {
  try {
    const { workRounds: rounds, actions } = bench.plan;
    const { ours } = await race(bench, { url }, { rounds, actions, isAlone: true });
    const figures = { [OURS.name]: median(ours) };
    const { name: measure } = postgresThroughput;
    const row = { requirement: 'W-13', measure, unit: 'actions/s', figures };
    return [absolute({ ...row, atLeast: 3_000 })];
  } finally {
    await bench.reset();
  }
}

/** From the call that sends a job in one process until it is started in another, beside two job queues. */
export const postgresJobs = { name: 'job enqueued → started elsewhere, p50', run: jobs };

async function jobs({ plan, progress, url }) {
  const pairs = new Map();
  const took = {};
  try {
    for (const name of Object.keys(QUEUES)) {
      progress(postgresJobs.name, `opening ${name}`);
      const open = async () => {
        const opened = new TaskProcess(name, './job-process.mjs', [name, url]);
        await opened.ask('open');
        return opened;
      };
      // One after the other: each makes its tables.
      const both = [await open(), await open()];
      await both[1].ask('work');
      pairs.set(name, both);
      took[name] = [];
    }
    for (let round = 0; round <= plan.jobRounds; round++) {
      for (const [name, both] of pairs) {
        progress(postgresJobs.name, `round ${round} of ${plan.jobRounds}, ${name}`);
        const delaysMs = await sendSome(both, { ...QUEUES[name], round, plan });
        // Code is compiled for speed only after it has run for a while.
        if (round > 0) took[name].push(...delaysMs);
      }
    }
  } finally {
    await Promise.all([...pairs.values()].flat().map((one) => one.stop()));
  }
  const figures = Object.fromEntries(Object.entries(took).map(([name, ms]) => [name, median(ms)]));
  const rivals = Object.keys(QUEUES).filter((name) => name !== OURS.name);
  const row = { requirement: 'W-13', measure: postgresJobs.name, unit: 'ms', figures };
  return [versus({ ...row, rivals, atMost: 1 })];
}

async function sendSome([sender, worker], { everyMs, round, plan }) {
  const count = Math.ceil(plan.jobMs / everyMs);
  const facts = { from: round * count, count };
  const [asked, started] = await Promise.all([
    sender.ask('sendSpaced', { ...facts, everyMs }),
    worker.ask('startedAt', facts),
  ]);
  return asked.map(([, askedAtMs], i) => started[i] - askedAtMs);
}
