// A command for `holdfast run`: writes the host's monotonic time to a file every few milliseconds, for as long as it is
// let. The last one proves when it was still alive. Signals it gets go into the file too, and end it or not:
// ticker.mjs FILE [stubborn]
import { openSync, writeSync } from 'node:fs';

const [file, how] = process.argv.slice(2);
const fd = openSync(file, 'a');
const write = (text) => writeSync(fd, `${text}\n`);
const tick = () => write(Number(process.hrtime.bigint()) / 1e6);

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH']) {
  process.on(signal, () => {
    write(signal);
    if (signal === 'SIGTERM' && how !== 'stubborn') process.exit(0);
  });
}
tick();
setInterval(tick, 3);
