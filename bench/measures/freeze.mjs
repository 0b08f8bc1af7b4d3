import { OURS, PEERS } from '../contenders.mjs';
import { absolute } from '../report.mjs';

const TTL_MS = 3_000;

/** Redis stops answering right after the grant: how long does a holder believe in what nobody confirms any more? */
export const freeze = { name: 'Redis frozen: believes too long by', run };

async function run(bench) {
  const forMs = bench.plan.watchMs;
  bench.progress(freeze.name, `watching for ${(TTL_MS + forMs) / 1_000} s`);
  const opened = await Promise.all([OURS, ...PEERS].map((contender) => bench.open(contender)));
  const members = opened.filter((member) => member !== null);
  const ask = (task, facts) => Promise.all(members.map((member) => member.ask(task, facts)));
  try {
    await ask('claim', { key: 'frozen', ttlMs: TTL_MS });
    bench.redis.freeze();
    return [rowOf(members, await ask('watch', { forMs }), forMs)];
  } finally {
    await Promise.all(members.map((member) => member.stop()));
    bench.redis.thaw();
  }
}

/** Ours counts from `ttl − guard`, when it promises to stop; the peers count from the TTL, when Redis lets go. */
function rowOf(members, claims, forMs) {
  const figures = {};
  const notes = [];
  for (const [i, { name }] of members.entries()) {
    const [{ isOver, lateMs }] = claims[i];
    figures[name] = isOver ? lateMs : Number.POSITIVE_INFINITY;
    for (const claim of claims[i]) notes.push(`${name}, ${claim.label}: ${inWords(claim, forMs)}`);
  }
  const row = { requirement: 'K-04', measure: freeze.name, unit: 'ms', figures, notes };
  return absolute({ ...row, atMost: 0 });
}

function inWords({ isOver, lateMs }, forMs) {
  if (!isOver) return `still believes after ${forMs / 1_000} s`;
  return lateMs === 0 ? 'in time' : `late by ${Math.round(lateMs)} ms`;
}
