/** One instance of a service with a schedule: `node instance.mjs NAME`. All instances have the same one. */
import { open } from 'holdfast';
import { runCoordinator } from 'holdfast/node-cron';
import cron from 'node-cron';
import { tell } from '../staging/telling.mjs';

const [name] = process.argv.slice(2);
const { HOLDFAST_STORE, HOLDFAST_PREFIX: prefix, HOLDFAST_QUARANTINE: quarantine } = process.env;
const holdfast = await open(HOLDFAST_STORE, { name, prefix, quarantine });

const task = cron.schedule(
  '*/2 * * * * *',
  ({ date }) => {
    tell(name, `sends the mails of ${date.toISOString().slice(11, 19)}`);
    process.send({ said: 'ran', fire: date.getTime() });
  },
  {
    name: 'mails',
    distributed: true,
    runCoordinator: runCoordinator(holdfast, { per: '2s', tolerance: '800ms' }),
  },
);
task.on('execution:skipped', ({ date, reason }) =>
  process.send({ said: 'skipped', fire: date.getTime(), reason }),
);
// The end of a run is on record before its lease is released.
holdfast.on('lease.released', () => process.send({ said: 'released' }));
process.send({ said: 'ready' });
