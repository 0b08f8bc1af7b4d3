// A thread that runs one world after another, as it is told, and narrows down what breaks a promise.
import { parentPort, workerData } from 'node:worker_threads';

const sim = await import(new URL('testing/sim/index.js', workerData.dist));

// Things go wrong thousands of times an hour, and nobody reads where: to find that out takes a tenth of the time.
const { stackTraceLimit } = Error;
Error.stackTraceLimit = 0;

parentPort.on('message', async (options) => {
  try {
    parentPort.postMessage(await runWorld(options));
  } catch {
    parentPort.postMessage({ options, crash: await crashOf(options) });
  }
});

/** What the simulator itself stumbles over, once more and with the place: it comes to the same each time. */
async function crashOf(options) {
  Error.stackTraceLimit = stackTraceLimit;
  try {
    await runWorld(options);
    return `seed ${options.seed} crashed once, and not again`;
  } catch (error) {
    return error.stack;
  } finally {
    Error.stackTraceLimit = 0;
  }
}

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
