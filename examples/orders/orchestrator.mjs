/**
 * The one that decides, for all orders: `node orchestrator.mjs`, with what it needs to know in the environment. Killed and started
 * again, it goes on where the dead one stopped, once the dead one's leases have run out.
 */
import { randomUUID } from 'node:crypto';
import { HoldfastError, open } from 'holdfast';
import { ACTIONS, STEPS } from './steps.mjs';

const { store, prefix, ttl, orders } = JSON.parse(process.env.ORDERS);
process.once('disconnect', () => process.exit());
const holdfast = await open(store, {
  name: 'orchestrator',
  prefix,
  quarantine: 'off',
  on: { 'store.warned': () => {} },
});

const claimed = await Promise.all(orders.map((id) => claim(id)));
const anew = claimed.reduce((sum, { reemitted }) => sum + reemitted.length, 0);
process.send({ said: 'claimed', open: claimed.filter((wf) => !isDone(wf)).length, anew });
await Promise.all(claimed.map(seeThrough));
await holdfast.close();
process.disconnect();

function claim(id) {
  return holdfast.workflows.claim(id, { ttl, wait: '1m', actions: ACTIONS });
}

function isDone({ state }) {
  return state !== 'initialized' && state.next === STEPS.length;
}

/** Where its tenure ends before the order is done, because this machine is too slow for such a short lease, it claims it anew. */
async function seeThrough(first) {
  for (let wf = first; ; wf = await claim(first.workflowId)) {
    try {
      return await advance(wf);
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      process.send({ said: 'hindered', order: wf.workflowId, code: error.code });
    } finally {
      await wf.release();
    }
  }
}

/**
 * Every decision is written down before it is acted on, the id of the action as well. So whoever comes after a crash does the
 * same again, and an action that is known already is not emitted twice.
 */
async function advance(wf) {
  if (wf.state === 'initialized') await wf.updateState({ next: 0, actionId: randomUUID() });
  while (!isDone(wf)) {
    const { next, actionId } = wf.state;
    await wf.emit(STEPS[next], { order: wf.workflowId }, { actionId });
    const { success, error } = await wf.result(actionId);
    if (!success) throw new Error(`${STEPS[next]} of ${wf.workflowId} failed: ${error.message}`);
    await wf.updateState({ next: next + 1, actionId: randomUUID() });
  }
}
