// A process that runs a function of ten steps, and kills itself at the point that the id of a workflow names, once:
// node workflow-function.mjs URL SINK TTL_MS
import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { open } from 'holdfast';
import { say } from './parent.mjs';

const [url, sink, ttlMs] = process.argv.slice(2);
const holdfast = await open(url, { quarantine: 'off', on: { 'store.warned': () => {} } });

/** The effect: a file per idempotency key, which a second try finds. */
const apply = (workflow, name, key) => {
  appendFileSync(join(sink, 'tried'), `${workflow} ${name}\n`);
  const file = join(sink, `${workflow} ${name} ${key}`);
  const isFirst = !existsSync(file);
  if (isFirst) writeFileSync(file, '');
};

const SHIP = (parcel, { workflowId, idempotencyKey }) => {
  apply(workflowId, `ship-${parcel.what}`, idempotencyKey);
  return `${parcel.what} shipped`;
};
await holdfast
  .processor({ name: 'warehouse', role: 'effect', handlers: { SHIP }, claim: 1_000 })
  .start();

const code = async (order, input) => {
  const id = order.workflowId;
  let point = 0;
  // Dies the first time that this workflow comes to its own point.
  const here = () => {
    if (`order-${point++}` !== id) return;
    const marker = join(sink, `killed ${id}`);
    if (existsSync(marker)) return;
    writeFileSync(marker, '');
    process.kill(process.pid, 'SIGKILL');
  };
  const step = async (name) => {
    here();
    const kept = await order.step(name, ({ idempotencyKey }) => {
      apply(id, name, idempotencyKey);
      return `${name} ${input.item}`;
    });
    here();
    return kept;
  };
  const line = async (work) => {
    here();
    const value = await work();
    here();
    return value;
  };
  return [
    await step('reserve'),
    await step('charge'),
    await line(() => order.call('SHIP', { what: 'tea' }, { as: 'ship', to: 'warehouse' })),
    await line(() => order.sleep('cool-off', 300)),
    await step('after-sleep'),
    await line(async () => (await order.waitFor('approved', { timeout: '5m' }))?.value),
    await line(() => order.call('SHIP', { what: 'gift' }, { as: 'gift', to: 'warehouse' })),
    await line(async () => await order.waitFor('never', { timeout: 100 })),
    await step('thank'),
    await step('close'),
  ];
};

const fulfil = holdfast.workflow('fulfil', code, { ttl: Number(ttlMs) });
await fulfil.run();
say({ event: 'ready' });
