// Runs commands under a supervisor, as a worker does, and moves their deadlines for as long as it can:
// command-owner.mjs '{"name": …, "validMs": …, "graceMs": …, "commands": [[…], …]}'
import { systemClock as clock } from '../../dist/core/clock.js';
import { confirmationNow } from '../../dist/core/validity.js';
import { supervisedCommands } from '../../dist/worker/supervisor/commands.js';
import { systemHost } from '../../dist/worker/supervisor/system-host.js';
import { say } from './parent.mjs';

const { name, validMs, graceMs, commands } = JSON.parse(process.argv[2]);
const deadline = () => [{ ...confirmationNow(clock), validMs, jumpMs: graceMs / 2 }];

const lock = await systemHost.lock(name);
if (lock === null) {
  say({ event: 'taken' });
  process.exit(1);
}
const supervised = supervisedCommands(clock, { lock });
const runs = commands.map((command) =>
  supervised.run({ command, env: {}, deadline: deadline(), graceMs }),
);
for (const run of runs) {
  run.started.then((group) => {
    run.begin();
    say({ event: 'started', ...group });
  });
  run.outcome.then(({ event: _, ...outcome }) => say({ event: 'ended', ...outcome }));
}
const renewing = setInterval(() => {
  for (const run of runs) run.extend(deadline());
}, validMs / 5);
await Promise.all(runs.map(({ outcome }) => outcome));
clearInterval(renewing);
await supervised.close();
say({ event: 'closed' });
