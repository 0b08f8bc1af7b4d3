import { BARE, OURS, PEERS_WITH_EVERY_CLIENT } from '../contenders.mjs';
import { absolute, versus } from '../report.mjs';
import { median } from '../statistics.mjs';

const LEASES = 10_000;
/** How many locks a peer extends at a time: each does it the way that came out best when tried. */
const LANES = [64, 256, 1_024];
/** Ours are taken anew in every round, or their keeper would be at work while the others are measured. */
const INTERVALS_PER_ROUND = 2;

/** Everything one process holds, renewed once: how long from the start until the last is confirmed? */
export const renewals = { name: 'renewing 10,000 leases', run };

async function run(bench) {
  const peers = await bestOfEach(bench, await bench.crew(PEERS_WITH_EVERY_CLIENT));
  const [ours, bare] = await bench.crew([OURS, BARE]);
  await keep(bare);
  const members = [ours, bare, ...peers.keys()];
  const results = await bench.race(renewals.name, members, async (member) => {
    if (member === ours) return renewOurs(ours);
    return [await member.ask('renew', { lanes: peers.get(member) })];
  });
  const ms = {};
  const redisUs = {};
  for (const [{ name }, rounds] of results) {
    ms[name] = median(rounds.flat().map((renewal) => renewal.ms));
    redisUs[name] = median(rounds.flat().map((renewal) => renewal.redisUs / LEASES));
  }
  const row = { requirement: 'K-03', measure: renewals.name, unit: 'ms', figures: ms };
  const cpu = { measure: 'Redis CPU per lease renewed', unit: 'µs', figures: redisUs };
  return [
    versus({ ...row, atMost: 1 / 3 }),
    versus({ ...row, measure: `${row.measure}, against bare`, rivals: [BARE.name], atMost: 1.3 }),
    absolute({ requirement: 'K-03', ...cpu, atMost: 3 }),
  ];
}

/** Per peer the process of its better client, with the number of lanes that suits it. */
async function bestOfEach(bench, members) {
  const best = new Map();
  for (const member of members) {
    bench.progress(renewals.name, `how ${member.name} does it best, ${member.client} client`);
    await keep(member);
    // The first only warms up.
    for (const lanes of [LANES[0], ...LANES]) {
      const { ms } = await member.ask('renew', { lanes });
      const isBetter = ms < (best.get(member.name)?.ms ?? Number.POSITIVE_INFINITY);
      if (isBetter) best.set(member.name, { member, lanes, ms });
    }
  }
  return new Map([...best.values()].map(({ member, lanes }) => [member, lanes]));
}

async function renewOurs(ours) {
  const intervals = [];
  await keep(ours);
  for (let i = 0; i < INTERVALS_PER_ROUND; i++) intervals.push(await ours.ask('renew'));
  await ours.ask('letGo');
  return intervals;
}

/** Two clients of one peer must not want the same keys. */
function keep(member) {
  return member.ask('keep', { kind: member.client, count: LEASES });
}
