import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'redis';

const START_DEADLINE_MS = 10_000;
const SLOTS = 16_384;
const BUS_OFFSET = 10_000;

/** Starts a redis-server that nobody else uses and that keeps nothing: `{ url, port, version, pid, freeze, thaw, stop }`. */
export async function startRedis(more = [], pickPort = freePort) {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  const port = await pickPort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', dir, ...more];
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
    const url = `redis://127.0.0.1:${port}`;
    return { url, port, version, pid: server.pid, ...signals(server), stop };
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
export async function freePort() {
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

/** A Cluster of three primaries that nobody else uses: `{ url, stop }`. */
export async function startCluster() {
  const args = ['--cluster-enabled', 'yes'];
  const nodes = await Promise.all([1, 2, 3].map(() => startRedis(args, freeClusterPort)));
  const stop = () => Promise.all(nodes.map((node) => node.stop()));
  const clients = nodes.map(({ url }) => createClient({ url }));
  try {
    for (const [i, client] of clients.entries()) {
      await client.connect();
      const [first, last] = [Math.ceil((i * SLOTS) / 3), Math.ceil(((i + 1) * SLOTS) / 3)];
      const slots = Array.from({ length: last - first }, (_, n) => String(first + n));
      await client.sendCommand(['CLUSTER', 'ADDSLOTS', ...slots]);
      await client.sendCommand(['CLUSTER', 'MEET', '127.0.0.1', String(nodes[0].port)]);
    }
    const isWell = async (client) => {
      const info = await client.sendCommand(['CLUSTER', 'INFO']);
      return info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3');
    };
    const untilMs = Date.now() + START_DEADLINE_MS;
    while (!(await Promise.all(clients.map(isWell))).every(Boolean)) {
      if (Date.now() > untilMs) throw new Error('the Cluster did not form');
      await sleep(50);
    }
    return {
      url: `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  } finally {
    for (const client of clients) client.destroy();
  }
}

/** The nodes talk to each other at this distance from their port, which has to be free as well. */
async function freeClusterPort() {
  for (;;) {
    const port = await freePort();
    if (port + BUS_OFFSET < 65_536 && (await isFree(port + BUS_OFFSET))) return port;
  }
}

async function isFree(port) {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}

/** Asks over a connection of its own how much processor time Redis has used so far. */
export async function openProbe(url) {
  // Of several servers, or of none, it cannot be asked.
  if (!url.startsWith('redis://')) return { redisCpuUs: async () => Number.NaN, close: () => {} };
  const client = createClient({ url, RESP: 2 });
  await client.connect();
  return {
    close: () => client.destroy(),
    async redisCpuUs() {
      const info = await client.sendCommand(['INFO', 'cpu']);
      const seconds = (field) => Number(new RegExp(`^${field}:(.*)$`, 'm').exec(info)?.[1]);
      return (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1e6;
    },
  };
}
