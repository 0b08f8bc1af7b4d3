import { BARE, OURS, PEERS_WITH_EVERY_CLIENT } from '../contenders.mjs';
import { absolute, versus } from '../report.mjs';
import { median } from '../statistics.mjs';

const LEASES = 10_000;
const EVERY_MS = 500;
/** Before they are measured, ours and the bare one renew this often at this pace: a keeper runs for days. */
const WARM_UP = { times: 12, everyMs: 100 };

/** Everything one process holds, renewed once: how long from the start until the last is confirmed? */
export const renewals = { name: 'renewing 10,000 leases', run };

async function run(bench) {
  const peers = await bestOfEach(bench, await bench.crew(PEERS_WITH_EVERY_CLIENT));
  const [ours, bare] = await bench.crew([OURS, BARE]);
  for (const member of [ours, bare]) await warmUp(bench, member);
  await keep(bare);
  const members = [ours, bare, ...peers.keys()];
  const results = await bench.race(renewals.name, members, async (member) => {
    if (member === ours) return renewOurs(ours, bench.plan);
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
    versus({ ...row, atMost: 1 / 4 }),
    versus({ ...row, measure: `${row.measure}, against bare`, rivals: [BARE.name], atMost: 1.15 }),
    absolute({ requirement: 'K-03', ...cpu, atMost: 3 }),
  ];
}

/** Per peer the process of its better client, with the number of lanes that suits it. */
async function bestOfEach(bench, members) {
  const best = new Map();
  for (const member of members) {
    bench.progress(renewals.name, `how ${member.name} does it best, ${member.client} client`);
    await keep(member);
    for (const lanes of bench.plan.lanes) {
      const { ms } = await member.ask('renew', { lanes });
      const isBetter = ms < (best.get(member.name)?.ms ?? Number.POSITIVE_INFINITY);
      if (isBetter) best.set(member.name, { member, lanes, ms });
    }
  }
  return new Map([...best.values()].map(({ member, lanes }) => [member, lanes]));
}

/** They are taken again in every round, or their keeper would be at work while the others are measured. */
async function renewOurs(ours, { settlingIntervals, intervals }) {
  const renewed = [];
  await keep(ours);
  // New leases are still on their way to where the garbage collector leaves them alone.
  for (let i = 0; i < settlingIntervals; i++) await ours.ask('renew');
  for (let i = 0; i < intervals; i++) renewed.push(await ours.ask('renew'));
  await ours.ask('letGo');
  return renewed;
}

async function warmUp(bench, member) {
  bench.progress(renewals.name, `warming up ${member.name}`);
  await keep(member, WARM_UP.everyMs);
  for (let i = 0; i < WARM_UP.times; i++) await member.ask('renew');
  await member.ask('letGo');
}

/** Two clients of one peer must not want the same keys. */
function keep(member, everyMs = EVERY_MS) {
  return member.ask('keep', { kind: member.client, count: LEASES, everyMs });
}
