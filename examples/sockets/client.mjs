/**
 * One process of a service that keeps a connection open for each account: `node client.mjs NAME`. Which accounts are its own is up to
 * the fleet; it says only what to do with one.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { open } from 'holdfast';
import { tell } from '../staging/telling.mjs';

const [name] = process.argv.slice(2);
const { HOLDFAST_STORE, HOLDFAST_PREFIX: prefix, HOLDFAST_QUARANTINE: quarantine } = process.env;
const holdfast = await open(HOLDFAST_STORE, { name, prefix, quarantine });

const runner = holdfast.runner({
  ttl: '3s', // how long the accounts of a dead process wait, at most
  backoff: '100ms..2s', // a connection that breaks is made again after a growing pause
  stuckAfter: '5s', // a connection that says nothing is reported
  run: async (account, { signal, fence, assertHeld, progress }) => {
    const socket = connect(account.port, '127.0.0.1');
    const closed = once(socket, 'close').catch(() => {});
    try {
      await once(socket, 'connect', { signal });
      assertHeld();
      socket.write(`hello ${account.id} ${fence} ${name}\n`);
      while (!signal.aborted && !socket.destroyed) {
        await sleep(50, null, { signal }).catch(() => {});
        if (signal.aborted) break;
        assertHeld(); // asked before each step: no I/O, and never late
        socket.write('beat\n');
        progress();
      }
    } finally {
      socket.end(); // the account is handed over when the server has seen the end of this connection
      await Promise.race([closed, sleep(1_000)]);
      socket.destroy();
    }
  },
});
holdfast.on('run.exited', ({ target, why }) => tell(name, `${target} has ended: ${why}`));
await runner.start();
process.send({ said: 'started' });

process.once('SIGTERM', async () => {
  await runner.stop(); // closes its connections, and hands their accounts over one by one
  await holdfast.close();
});
