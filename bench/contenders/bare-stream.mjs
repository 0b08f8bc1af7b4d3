/** Redis Streams without any library, over the connection that Holdfast itself uses. */
import { systemClock } from 'holdfast';
import { systemRandom } from '../../dist/core/random.js';
import { Connection } from '../../dist/store/redis/client/connection.js';
import { endpointDialer } from '../../dist/store/redis/client/link.js';

const TIMEOUT_MS = 5_000;
const GROUP = 'bench';

export async function openBare(url) {
  const { hostname: host, port } = new URL(url);
  const rt = { clock: systemClock, random: systemRandom };
  const dialer = endpointDialer('bare', { host, port: Number(port) }, {});
  const connection = new Connection(rt, dialer, {
    role: 'bench',
    prepare: async () => {},
    onConnected: () => {},
    onDisconnected: () => {},
  });
  await connection.open();
  const send = (...args) => connection.send(args[0], args, TIMEOUT_MS);
  return {
    send,
    add: (key, body) => send('XADD', key, '*', 'body', body),
    async fill(key, body, count) {
      await send('XGROUP', 'CREATE', key, GROUP, '0', 'MKSTREAM');
      await Promise.all(Array.from({ length: count }, () => send('XADD', key, '*', 'body', body)));
    },
    /** Reads some, hands each out, and brings a result in for each together with its ack. */
    async work(key, most, handle) {
      const read = ['GROUP', GROUP, 'one', 'COUNT', String(most), 'STREAMS', key, '>'];
      const [[, entries]] = await send('XREADGROUP', ...read);
      for (const [id] of entries) handle(id);
      await Promise.all([
        send('XACK', key, GROUP, ...entries.map(([id]) => id)),
        ...entries.map(([id]) => send('XADD', `${key}:results`, '*', 'of', id, 'value', 'null')),
      ]);
    },
  };
}
