#!/usr/bin/env node
/** Three Nest applications with the same schedule: each fire runs on one. Then an instance dies, and the others go on. */
import { fileURLToPath } from 'node:url';
import { Player } from '../staging/player.mjs';
import { stage } from '../staging/stage.mjs';
import { claim, say, title, until } from '../staging/telling.mjs';

const INSTANCE = fileURLToPath(new URL('instance.cjs', import.meta.url));
const FIRES = 3;
const ABOUT = `Three instances of a Nest application have the same method with @Cron, every two seconds, and @OncePer: each fire runs on one
of them. Then one is killed, and the others run the fires that follow.`;

await stage({ name: 'nest', about: ABOUT }, async ({ storeEnv, where }) => {
  console.log(`Three Nest applications with the same schedule, on ${where}.`);
  const players = ['ana', 'ben', 'cleo'].map((name) => new Player(INSTANCE, name, storeEnv));
  for (const player of players) await until('an instance', () => player.last('ready'));

  title('All three are up.');
  const runners = await watchFires(players);
  const leaders = players.filter((player) => player.last('leads'));
  const leader = leaders[0]?.name ?? 'none';
  claim(leaders.length === 1, `one of the three leads the inbox: ${leader}`);

  title('One of them is killed with -9.');
  const dead = runners.at(-1);
  // Killed in the middle of a run, it would keep the lease for up to 30 s, and the fires of that time would not run.
  const lastOf = (word) => dead.heard.findLastIndex(({ said }) => said === word);
  await until('its run to be on record', () => lastOf('released') > lastOf('ran'));
  dead.signal('SIGKILL');
  say(`${dead.name} is dead`);
  await watchFires(players.filter((player) => player !== dead));
});

/** Waits for some fires from now on and one more, so that a second run would have shown. Returns who ran them. */
async function watchFires(players) {
  const fromMs = Date.now();
  const runsOf = ({ heard }) => heard.flatMap(({ said, fire }) => (said === 'ran' ? [fire] : []));
  const fires = () => [...new Set(players.flatMap(runsOf))].filter((fire) => fire > fromMs);
  await until(`${FIRES} fires`, () => fires().length > FIRES);
  return fires()
    .sort((a, b) => a - b)
    .slice(0, FIRES)
    .map((fire) => {
      const runners = players.filter((player) => runsOf(player).includes(fire));
      const runs = players.flatMap(runsOf).filter((one) => one === fire);
      const names = runners.map(({ name }) => name).join(', ');
      const time = new Date(fire).toISOString().slice(11, 19);
      claim(runs.length === 1, `the fire of ${time} ran once, on ${names}`);
      return runners[0];
    });
}
