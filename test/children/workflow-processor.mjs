// A process that works for workflows: node workflow-processor.mjs URL NAME SINK [hang]
// Each effect is a file in the folder SINK that only one can make: its name has the idempotency key. With `hang` the effect
// is made, and nobody is ever told.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { open } from 'holdfast';
import { say } from './parent.mjs';

const [url, name, sink, hang] = process.argv.slice(2);
const quiet = { 'store.warned': () => {} };
const holdfast = await open(url, { quarantine: 'off', on: quiet });

const apply = (type, { workflowId, idempotencyKey, fence }) => {
  try {
    writeFileSync(join(sink, `${workflowId} ${type} ${idempotencyKey}`), String(fence), {
      flag: 'wx',
    });
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
};

const step = (type, work) => async (payload, context) => {
  const isApplied = apply(type, context);
  say({ event: 'effect', type, id: context.workflowId, tries: context.tries, isApplied });
  if (hang) await new Promise(() => {});
  return work(payload.value);
};

const processor = holdfast.processor({
  ...{ name, role: 'effect', claim: '1s', concurrency: 2 },
  handlers: {
    VALIDATE_DATA: step('VALIDATE_DATA', (value) => value + 1),
    PROCESS_DATA: step('PROCESS_DATA', (value) => value * 10),
    STORE_RESULTS: step('STORE_RESULTS', (value) => value),
  },
});
await processor.start();
say({ event: 'ready' });
