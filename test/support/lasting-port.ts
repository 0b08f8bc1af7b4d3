import { once } from 'node:events';
import { createServer } from 'node:net';

// Below the ports that kernels give to passing connections, which could take the one of a killed server.
const LOWEST_PORT = 10_000;
const HIGHEST_PORT = 22_000;
const MAX_ATTEMPTS = 100;

/** A free port that a server which is down for a while will find free again; those at these distances are free, too. */
export async function lastingPort(distances: readonly number[] = []): Promise<number> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const port = LOWEST_PORT + Math.floor(Math.random() * (HIGHEST_PORT - LOWEST_PORT));
    const wanted = [0, ...distances].map((distance) => port + distance);
    if ((await Promise.all(wanted.map(isFree))).every(Boolean)) return port;
  }
  throw new Error(
    `no free port from ${LOWEST_PORT} to ${HIGHEST_PORT} in ${MAX_ATTEMPTS} attempts`,
  );
}

async function isFree(port: number): Promise<boolean> {
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
