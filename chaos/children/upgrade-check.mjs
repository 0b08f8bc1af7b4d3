// After an upgrade: waits until everything that was accepted is done, and says what is not as it should be.
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const { entry, store, ttlMs, workflows, sessions, deadlineMs } = JSON.parse(process.argv[2]);
const { open } = await import(pathToFileURL(entry).href);

const kinds = { job: { tries: 10, run: async ({ n }) => ({ n }) } };
const holdfast = await open(store, { name: 'check', maxTtl: ttlMs, kinds });
const order = holdfast.workflow(
  'order',
  async (run, { n }) => {
    const first = await run.step('first', () => n + 1);
    await run.sleep('pause', 20);
    return { n, second: await run.step('second', () => first * 2) };
  },
  { ttl: ttlMs },
);
await Promise.all([order.run(), holdfast.worker({ ttl: ttlMs, grace: 500 }).start()]);
const intents = holdfast.intents();
intents.start();
const lateMs = performance.now() + deadlineMs;
const problems = [];

for (const id of workflows) {
  const signal = AbortSignal.timeout(Math.max(1, Math.round(lateMs - performance.now())));
  const expected = Number(id.split('-').at(-1));
  try {
    const result = await order.result(id, { signal });
    if (result.n !== expected || result.second !== (expected + 1) * 2)
      problems.push(`workflow ${id} returned ${JSON.stringify(result)}`);
  } catch (error) {
    problems.push(`workflow ${id}: ${error.message}`);
  }
}
for (const id of sessions) {
  let session = await intents.session(id, null);
  while (session?.state !== 'ENDED' && performance.now() < lateMs) {
    await sleep(50);
    session = await intents.session(id, null);
  }
  if (session?.outcome !== 'COMPLETED')
    problems.push(`session ${id}: ${session?.state} ${session?.outcome} ${session?.reason}`);
}
await holdfast.close();
process.send({ kind: 'checked', problems });
process.disconnect();
