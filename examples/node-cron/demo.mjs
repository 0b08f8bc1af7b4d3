#!/usr/bin/env node
/** Three instances with the same node-cron schedule: each fire runs on one. Then an instance dies, and the fires go on. */
import { fileURLToPath } from 'node:url';
import { Player } from '../staging/player.mjs';
import { stage } from '../staging/stage.mjs';
import { claim, say, title, until } from '../staging/telling.mjs';

const INSTANCE = fileURLToPath(new URL('instance.mjs', import.meta.url));
const FIRES = 3;
const ABOUT = `Three instances of a service schedule the same task with node-cron, every two seconds: each fire runs on one of them. Then one
is killed, and the others run the fires that follow.`;

await stage({ name: 'node-cron', about: ABOUT }, async ({ storeEnv, where }) => {
  console.log(`Three instances with the same node-cron schedule, on ${where}.`);
  const players = ['ana', 'ben', 'cleo'].map((name) => new Player(INSTANCE, name, storeEnv));
  for (const player of players) await until('an instance', () => player.last('ready'));

  title('All three are up.');
  const runners = await watchFires(players);

  title('The instance that ran the last fire is killed with -9.');
  const dead = runners.at(-1);
  // Killed in the middle of a run, it would keep the lease for up to 30 s, and the fires of that time would not run.
  const lastOf = (word) => dead.heard.findLastIndex(({ said }) => said === word);
  await until('its run to be on record', () => lastOf('released') > lastOf('ran'));
  dead.signal('SIGKILL');
  say(`${dead.name} is dead`);
  await watchFires(players.filter((player) => player !== dead));
});

/** Waits until some fires from now on are answered by all, and claims that each ran once. Returns who ran them. */
async function watchFires(players) {
  const fromMs = Date.now();
  const about = (player, fire) => player.heard.filter((heard) => heard.fire === fire);
  const fires = () =>
    [...new Set(players.flatMap(({ heard }) => heard.map(({ fire }) => fire ?? 0)))].filter(
      (fire) => fire > fromMs && players.every((player) => about(player, fire).length > 0),
    );
  await until(`${FIRES} fires`, () => fires().length >= FIRES);
  return fires()
    .sort((a, b) => a - b)
    .slice(0, FIRES)
    .map((fire) => {
      const runners = players.filter((player) =>
        about(player, fire).some(({ said }) => said === 'ran'),
      );
      const names = runners.map(({ name }) => name).join(', ') || 'nobody';
      const time = new Date(fire).toISOString().slice(11, 19);
      claim(runners.length === 1, `the fire of ${time} ran once, on ${names}`);
      return runners[0];
    });
}
