/**
 * The process between `holdfast run` and the command: see `supervision.ts`. Loads next to nothing, because it stays for
 * as long as the command runs and is started every time.
 */
import { spawn } from 'node:child_process';
import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { systemClock } from '../base/clock.ts';
import { decoder, encode, type Order } from './orders.ts';
import { processGroup } from './process-group.ts';
import { Supervision } from './supervision.ts';

/** Where orders come from; its end says that whoever gives them is no more. */
const orders = new Socket({ fd: 3 });
/** Where reports go to. Not back over the first: an order to the dead breaks its pipe, and what was not read is lost. */
const REPORTS_FD = 4;

const supervision = new Supervision({
  clock: systemClock,
  spawn({ command: [file = '', ...args], env }, { onExit, onError }) {
    const failed = (error: NodeJS.ErrnoException) => onError(error.code ?? error.message);
    try {
      // A session and group of its own; and of our files the first three, never the pipes to our orders.
      const options = {
        detached: true,
        stdio: 'inherit',
        env: { ...process.env, ...env },
      } as const;
      const child = spawn(file, args, options);
      child.once('error', failed);
      child.once('exit', (code, signal) => onExit({ code, signal }));
      return child.pid === undefined ? null : { id: child.pid, group: processGroup(child.pid) };
    } catch (error) {
      failed(error as NodeJS.ErrnoException);
      return null;
    }
  },
  report(report) {
    try {
      writeSync(REPORTS_FD, encode(report));
    } catch {
      // Nobody is there to hear it; the command is stopped all the same.
    }
    if (report.event !== 'started') process.exit();
  },
});

orders.setEncoding('utf8');
orders.on(
  'data',
  decoder<Order>((order) => supervision.hear(order)),
);
orders.on('error', () => {});
orders.on('close', () => supervision.orphan());

process.on('SIGTERM', () => supervision.terminate());
// Meant for the command, which gets them passed on; or for debuggers.
for (const signal of ['SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const) {
  process.on(signal, () => {});
}
