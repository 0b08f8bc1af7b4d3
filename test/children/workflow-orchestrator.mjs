// A process that drives workflows from wherever they are to their end: node workflow-orchestrator.mjs URL TTL_MS ID…
// Every step has an id of its own, made from the workflow's: to emit it again after a crash emits nothing new.
import { createHash } from 'node:crypto';
import { open } from 'holdfast';
import { say } from './parent.mjs';

const [url, ttlMs, ...ids] = process.argv.slice(2);
const quiet = { 'store.warned': () => {} };
const holdfast = await open(url, { quarantine: 'off', on: quiet });

const actions = {
  VALIDATE_DATA: { target: 'validator' },
  PROCESS_DATA: { target: 'calculator' },
  STORE_RESULTS: { target: 'archive' },
};
const TYPES = Object.keys(actions);

/** The same UUID for the same step of the same workflow, whoever asks. */
const idOf = (workflow, type) => {
  const hex = createHash('sha256').update(`${workflow} ${type}`).digest('hex');
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`];
  return [...parts, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join('-');
};

const drive = async (id) => {
  const wf = await holdfast.workflows.claim(id, { ttl: Number(ttlMs), wait: '60s', actions });
  say({ event: 'claimed', id, epoch: wf.epoch, leaseId: wf.leaseId, fence: wf.fence });
  let { step, value } = wf.state === 'initialized' ? { step: 0, value: 1 } : wf.state;
  for (; step < TYPES.length; step++) {
    const type = TYPES[step];
    const { action_id } = await wf.emit(type, { value }, { actionId: idOf(id, type) });
    const result = await wf.result(action_id);
    value = result.value;
    await wf.updateState({ step: step + 1, value });
  }
  await wf.release();
  say({ event: 'finished', id, value });
};

const untilFinished = async (id) => {
  for (;;) {
    try {
      return await drive(id);
    } catch (error) {
      // Its tenure is over before its work: on a busy host that happens, and another begins.
      say({ event: 'again', id, why: error.code ?? String(error) });
    }
  }
};

say({ event: 'ready' });
await Promise.all(ids.map(untilFinished));
await holdfast.close();
say({ event: 'over' });
