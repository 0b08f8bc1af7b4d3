/** One that does things: `node processor.mjs NAME`, with what it needs to know in the environment. */
import { setTimeout as sleep } from 'node:timers/promises';
import { fenceHeaders, open } from 'holdfast';
import { PROCESSORS } from './steps.mjs';

/** How long a step takes before it has its effect. */
const WORK_MS = 150;
const [name] = process.argv.slice(2);
const { store, prefix, claim, sink } = JSON.parse(process.env.ORDERS);
process.once('disconnect', () => process.exit());
const holdfast = await open(store, {
  name,
  prefix,
  quarantine: 'off',
  on: { 'store.warned': () => {} },
});
const processor = holdfast.processor({
  name,
  role: 'effect',
  concurrency: 4,
  claim,
  tries: 10,
  handlers: { [PROCESSORS[name]]: work },
});
process.once('message', async () => {
  await processor.stop();
  await holdfast.close();
  process.disconnect();
});
await processor.start();
process.send({ said: 'ready' });

/** May run more than once for one action, after a crash. The sink tells, by the key, and by the fence. */
async function work({ order }, { signal, fence, idempotencyKey, tries }) {
  await sleep(WORK_MS, undefined, { signal });
  const response = await fetch(sink, {
    method: 'POST',
    signal,
    headers: { ...fenceHeaders(fence), 'idempotency-key': idempotencyKey },
    body: JSON.stringify({ order, step: PROCESSORS[name], by: name, tries }),
  });
  const { outcome } = await response.json();
  if (outcome === 'stale') throw new Error('another has it by now');
  return { outcome };
}
