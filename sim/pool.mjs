/** Runs worlds on several threads, each as it comes. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

const ROOT = new URL('..', import.meta.url);
/** Nearly all of what a world makes is of no use a moment later: with room for it, less of it is looked at twice. */
const YOUNG_MB = 64;

/**
 * `next()` gives the options of the next world, or null when there are no more; `onReport` hears of each that is over, and
 * says with `false` that the rest need not be run.
 */
export async function runWorlds({ jobs, dist = new URL('dist/', ROOT), shrinks, next, onReport }) {
  let isOver = false;
  const thread = async () => {
    const resourceLimits = { maxYoungGenerationSizeMb: YOUNG_MB };
    const options = { workerData: { dist: dist.href, shrinks }, resourceLimits };
    const worker = new Worker(new URL('worker.mjs', import.meta.url), options);
    const ended = once(worker, 'exit').then(([code]) => {
      throw new Error(`a thread ended with ${code}`);
    });
    // It ends in the end, and nobody waits for that.
    ended.catch(() => {});
    try {
      for (let world = next(); world !== null && !isOver; world = next()) {
        worker.postMessage(world);
        const [report] = await Promise.race([once(worker, 'message'), ended]);
        if (onReport(report) === false) isOver = true;
      }
    } finally {
      await worker.terminate();
    }
  };
  await Promise.all(Array.from({ length: jobs }, thread));
}
