/** What the curves of `scale.mjs` have in common. */
import { createClient } from 'redis';
import { OURS } from '../contenders.mjs';
import { fact } from '../report.mjs';

export function sized(count) {
  return count.toLocaleString('en-US');
}

/** A point of a curve. */
export function curveRow(measure, unit, value) {
  return fact({ requirement: 'K-03', measure, unit, figures: { [OURS.name]: value } });
}

/** By how many bytes Redis grows while something is made. */
export async function grown(url, make) {
  const client = await createClient({ url, RESP: 2 }).connect();
  const size = async () => Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
  try {
    const before = await size();
    await make();
    return (await size()) - before;
  } finally {
    client.destroy();
  }
}
