import { Session } from 'node:inspector/promises';
import { startRedis } from '../../bench/redis.mjs';

/** Other work, such as a timer, may run during one acquire, but hardly during each of so many. */
const ACQUIRES = 20;
/** The default TTL, so that the acquires need no options. */
const TTL = '30s';

/**
 * The files of the build whose functions run in every acquire of a free key, without `wait`, on one
 * Redis: from the call of the user until the lease is there. V8 counts the calls.
 */
export async function filesOfOneAcquire() {
  const redis = await startRedis();
  const session = new Session();
  session.connect();
  try {
    const { open } = await import('../../dist/index.js');
    const holdfast = await open(redis.url, { maxTtl: TTL, on: { 'store.warned': () => {} } });
    // An empty Redis grants nothing for one TTL.
    const first = await holdfast.acquire('first', { wait: '1m' });
    await first.lease.release();
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    let common = null;
    for (let i = 0; i < ACQUIRES; i++) {
      await session.post('Profiler.takePreciseCoverage');
      const { lease } = await holdfast.acquire(`key-${i}`);
      const called = calledFiles(await session.post('Profiler.takePreciseCoverage'));
      common = common === null ? called : common.filter((file) => called.includes(file));
      await lease.release();
    }
    await holdfast.close();
    return common;
  } finally {
    session.disconnect();
    await redis.stop();
  }
}

function calledFiles({ result }) {
  return result
    .filter(({ url, functions }) => url.includes('/dist/') && functions.some(isCalled))
    .map(({ url }) => url.slice(url.indexOf('/dist/') + '/dist/'.length).replace(/\.js$/, '.ts'))
    .sort();
}

function isCalled({ functionName, ranges: [range] }) {
  return functionName !== '' && (range?.count ?? 0) > 0;
}
