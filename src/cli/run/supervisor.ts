/**
 * The process between `holdfast run` and the command: see `supervision.ts`. Loads next to nothing, because it stays for
 * as long as the command runs and is started every time.
 */
import { spawn } from 'node:child_process';
import { Socket } from 'node:net';
import { systemClock } from '../../base/clock.ts';
import { decoder, encode, type Order } from './orders.ts';
import { processGroup } from './process-group.ts';
import { Supervision } from './supervision.ts';

const line = new Socket({ fd: 3 });

const supervision = new Supervision({
  clock: systemClock,
  spawn({ command: [file = '', ...args], env }, { onExit, onError }) {
    const failed = (error: NodeJS.ErrnoException) => onError(error.code ?? error.message);
    try {
      // A session and group of its own; and of our files the first three, never the line to our orders.
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
    if (report.event === 'started') line.write(encode(report));
    else if (line.destroyed) process.exit();
    else line.end(encode(report), () => process.exit());
  },
});

line.setEncoding('utf8');
line.on(
  'data',
  decoder<Order>((order) => supervision.hear(order)),
);
// It ends also where it breaks: the command must not outlive whoever holds its lease.
line.on('error', () => {});
line.on('close', () => supervision.orphan());

process.on('SIGTERM', () => supervision.terminate());
// Meant for the command, which gets them passed on; or for debuggers.
for (const signal of ['SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const) {
  process.on(signal, () => {});
}
