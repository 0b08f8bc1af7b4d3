/** A Redis for the guarded key: that of the store, or one of this run's own where the store is none. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** Its address; null where there is none, and none can be started. */
export async function redisFor(store, folder) {
  if (/^rediss?:/.test(store)) return store;
  if (!store.startsWith('sqlite:')) return null;
  // A socket in a folder of ours: no port that somebody else could have.
  const socket = join(folder, 'redis.sock');
  const flags = ['--port', '0', '--unixsocket', socket, '--save', '', '--dir', folder];
  const server = spawn('redis-server', flags, { stdio: ['ignore', 'pipe', 'ignore'] });
  process.once('exit', () => server.kill('SIGKILL'));
  const failed = once(server, 'error').then(() => null);
  const ready = (async () => {
    let said = '';
    for await (const chunk of server.stdout) {
      said += chunk;
      if (said.includes('eady to accept connections')) return socket;
    }
    return null;
  })();
  return Promise.race([failed, ready]);
}
