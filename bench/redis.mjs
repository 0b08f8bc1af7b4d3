import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createClient } from 'redis';

const START_DEADLINE_MS = 10_000;

/** Starts a redis-server that nobody else uses and that keeps nothing: `{ url, version, freeze, thaw, stop }`. */
export async function startRedis() {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  const port = await freePort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', dir];
  const server = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const remove = () => {
    server.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  };
  process.once('exit', remove);
  const stop = async () => {
    const isRunning = server.exitCode === null && server.signalCode === null;
    // Waited for, or it could still write into the folder that is removed.
    if (isRunning && server.kill('SIGKILL')) await once(server, 'exit');
    process.off('exit', remove);
    remove();
  };
  try {
    const version = await ready(server);
    return { url: `redis://127.0.0.1:${port}`, version, ...signals(server), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function signals(server) {
  return {
    /** Connections stay open, nothing is answered. */
    freeze: () => server.kill('SIGSTOP'),
    thaw: () => server.kill('SIGCONT'),
  };
}

/** A port that was free a moment ago. */
async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** Resolves with the version when the server says that it is ready. */
function ready(server) {
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error(`redis-server was not ready in ${START_DEADLINE_MS} ms`));
    const timer = setTimeout(late, START_DEADLINE_MS);
    let output = '';
    server.once('error', (error) => {
      const isMissing = error.code === 'ENOENT';
      reject(isMissing ? new Error('there is no redis-server on the PATH') : error);
    });
    server.once('exit', () => reject(new Error(`redis-server ended:\n${output}`)));
    createInterface({ input: server.stdout }).on('line', (line) => {
      output += `${line}\n`;
      if (!line.includes('Ready to accept connections')) return;
      clearTimeout(timer);
      resolve(/Redis version=([^,]+)/.exec(output)?.[1]);
    });
  });
}

/** Asks over a connection of its own how much processor time Redis has used so far. */
export async function openProbe(url) {
  const client = createClient({ url, RESP: 2 });
  await client.connect();
  return {
    async redisCpuUs() {
      const info = await client.sendCommand(['INFO', 'cpu']);
      const seconds = (field) => Number(new RegExp(`^${field}:(.*)$`, 'm').exec(info)?.[1]);
      return (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1e6;
    },
  };
}
