// A thread that runs one world after another, as it is told, and narrows down what breaks a promise.
import { parentPort, workerData } from 'node:worker_threads';

const sim = await import(new URL('testing/sim/index.js', workerData.dist));

parentPort.on('message', async (options) => {
  try {
    parentPort.postMessage(await runWorld(options));
  } catch (error) {
    parentPort.postMessage({ options, crash: error.stack });
  }
});

async function runWorld(options) {
  const report = await sim.simulate(options);
  if (report.violation === null || !workerData.shrinks) return brief(options, report);
  const { report: shrunk, tries } = await sim.shrink(options, report);
  return { ...brief(options, report), shrunk: { ...brief(options, shrunk), tries } };
}

/** What can be sent to another thread, and is worth it. */
function brief(options, report) {
  const { counters, notes, ...rest } = report;
  const drawing = report.violation === null ? '' : sim.draw(report);
  return { options, ...rest, counts: [...counters], drawing };
}
