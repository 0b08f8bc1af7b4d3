/**
 * What stands in for a machine with cron: `node machine.mjs NAME`. It reads the crontab, and runs its line at the moment that it is
 * told to be three o'clock, by a timer of its own.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { sinceStartMs, tell } from '../staging/telling.mjs';
import { readCrontab } from './crontab.mjs';

const [name] = process.argv.slice(2);
const { TTL, BIN_FOLDER } = process.env;
const { env, command } = readCrontab();

process.on('message', async ({ atMs, figures }) => {
  await sleep(atMs - sinceStartMs());
  run(figures);
});
// It stays until it is ended, whether something is due or not.
process.channel.ref();
process.send({ said: 'ready' });

/** As cron does: by a shell, with what the crontab says of the environment. Ours says which store, and where `holdfast` is. */
function run(figures) {
  const own = { FIGURES: figures, PATH: `${BIN_FOLDER}:${env.PATH}` };
  const child = spawn('sh', ['-c', command.replace('--ttl 30s', `--ttl ${TTL}`)], {
    cwd: import.meta.dirname,
    env: { ...env, ...process.env, ...own },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const hear = (stream) =>
    createInterface({ input: stream }).on('line', (line) => {
      tell(name, line);
      process.send({ said: 'line', figures, line });
    });
  hear(child.stdout);
  hear(child.stderr);
  child.once('close', (code) => process.send({ said: 'done', figures, code }));
}
