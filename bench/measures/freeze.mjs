import { OURS, PEERS } from '../contenders.mjs';
import { absolute } from '../report.mjs';

const TTL_MS = 3_000;

/** Redis stops answering right after the grant: how long does a holder go on believing what nobody confirms any more? */
export const freeze = { name: 'Redis frozen: holds past its deadline', run };

async function run(bench) {
  const { watchMs } = bench.plan;
  bench.progress(`${freeze.name}: watching for ${(TTL_MS + watchMs) / 1_000} s`);
  const contenders = [OURS, ...PEERS].filter(({ name }) => !bench.absent.has(name));
  const members = contenders.map((contender) => bench.start(contender));
  try {
    await Promise.all(members.map((member) => member.ask('open')));
    await Promise.all(members.map((member) => member.ask('claim', { key: 'frozen', ttlMs: TTL_MS })));
    bench.redis.freeze();
    const watching = { forMs: watchMs };
    const claims = await Promise.all(members.map((member) => member.ask('watch', watching)));
    return [rowOf(members, claims, watchMs)];
  } finally {
    await Promise.all(members.map((member) => member.stop()));
    bench.redis.thaw();
  }
}

/** Ours counts from `ttl − guard`, when it promises to stop; the peers count from the TTL, when Redis lets go. */
function rowOf(members, claims, watchMs) {
  const figures = {};
  const notes = [];
  for (const [i, { name }] of members.entries()) {
    const [{ isOver, lateMs }] = claims[i];
    figures[name] = isOver ? lateMs : Number.POSITIVE_INFINITY;
    for (const claim of claims[i]) notes.push(`${name}, ${claim.label}: ${inWords(claim, watchMs)}`);
  }
  return absolute({
    requirement: 'K-04',
    measure: freeze.name,
    unit: 'ms',
    figures,
    atMost: 0,
    notes,
  });
}

function inWords({ isOver, lateMs }, watchMs) {
  if (!isOver) return `still believes ${watchMs / 1_000} s after`;
  return lateMs === 0 ? 'in time' : `late by ${Math.round(lateMs)} ms`;
}
