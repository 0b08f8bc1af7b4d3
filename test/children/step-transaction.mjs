// A process that claims a workflow, and takes a step which keeps its result in the transaction of its row:
// node step-transaction.mjs URL WORKFLOW POINT. Kills itself with -9 after POINT: rows, keep, commit or never.
import { open } from 'holdfast';
import pg from 'pg';
import { say } from './parent.mjs';

const [url, id, point] = process.argv.slice(2);
const holdfast = await open(url, { on: { 'store.warned': () => {} } });
const tx = new pg.Client({ connectionString: url });
await tx.connect();

const after = (here) => {
  if (here === point) process.kill(process.pid, 'SIGKILL');
};
let ran = false;
const order = await holdfast.workflows.claim(id, { ttl: '10s', wait: '20s' });
const result = await order.step('reserve', async ({ guard, keep }) => {
  ran = true;
  await tx.query('BEGIN');
  await guard(tx);
  await tx.query('INSERT INTO shelf VALUES ($1, $2)', [id, 'tea']);
  after('rows');
  await keep(tx, { by: process.pid });
  after('keep');
  await tx.query('COMMIT');
  after('commit');
});
say({ event: 'done', result, ran });
