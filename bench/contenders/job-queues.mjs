/**
 * Who is measured with jobs: `open(url)` gives `{ send(id), work(onStarted) }`. Each is set up the fastest way that its
 * documentation knows. `everyMs` is how far jobs are apart, so that a worker is idle when one comes: pg-boss looks at most
 * twice a second.
 */
export const QUEUES = {
  holdfast: { open: openHoldfast, everyMs: 15 },
  'graphile-worker': { open: openGraphileWorker, everyMs: 15 },
  'pg-boss': { open: openPgBoss, everyMs: 700 },
};

const QUEUE = 'jobs';

/** An action of a workflow. */
async function openHoldfast(url) {
  const { open } = await import('holdfast');
  const holdfast = await open(url, { quarantine: 'off', name: 'bench' });
  let orchestrator = null;
  return {
    async send(id) {
      orchestrator ??= await holdfast.workflows.claim('bench-jobs');
      await orchestrator.emit('JOB', { id }, { target: QUEUE });
    },
    async work(onStarted) {
      const handlers = { JOB: ({ id }) => onStarted(id) };
      await holdfast.processor({ name: QUEUE, role: 'effect', handlers }).start();
    },
  };
}

async function openGraphileWorker(connectionString) {
  const { Logger, makeWorkerUtils, run } = await import('graphile-worker');
  const logger = new Logger(() => () => {});
  const utils = await makeWorkerUtils({ connectionString, logger });
  await utils.migrate();
  return {
    send: (id) => utils.addJob(QUEUE, { id }),
    async work(onStarted) {
      const taskList = { [QUEUE]: async ({ id }) => onStarted(id) };
      await run({ connectionString, logger, noHandleSignals: true, concurrency: 4, taskList });
    },
  };
}

async function openPgBoss(connectionString) {
  const { default: PgBoss } = await import('pg-boss');
  const boss = new PgBoss({ connectionString });
  await boss.start();
  await boss.createQueue(QUEUE);
  return {
    send: (id) => boss.send(QUEUE, { id }),
    work: (onStarted) =>
      boss.work(QUEUE, { pollingIntervalSeconds: 0.5 }, async ([job]) => onStarted(job.data.id)),
  };
}
