#!/usr/bin/env node
/**
 * Ten seconds of one lease: three processes want it, one gets it, hands it on, one is frozen and does no harm when it
 * wakes, one is killed. Runs on the embedded store, or on any other one.
 */
import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { sweep } from '../staging/sweeping.mjs';
import { paint, tell, title } from '../staging/telling.mjs';

const INSTANCE = fileURLToPath(new URL('./instance.mjs', import.meta.url));
const HELP = `npm run example:lease [-- --store URL]

Shows one lease passing between three processes, one of them frozen and one killed.
  --store URL   redis://…, redis+sentinel://…, redis+cluster://… or sqlite:path; default: the embedded store,
                .holdfast/holdfast.db, nothing to install, which stays. Also HOLDFAST_STORE. A Redis is left as it was
  --help        this text`;

const flags = readArguments();
if (flags.help) {
  console.log(HELP);
  process.exit(0);
}
const store = flags.store ?? (process.env.HOLDFAST_STORE || undefined);
// In a store that others use, too, the example keeps to itself.
const prefix = store === undefined ? 'demo:' : `lease-${randomBytes(4).toString('hex')}:`;

function readArguments() {
  const options = { store: { type: 'string' }, help: { type: 'boolean', short: 'h' } };
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    console.error(`${error.message}\n\n${HELP}`);
    return process.exit(2);
  }
}

/** A process of its own that does as it is told, one thing at a time. */
class Instance {
  constructor(name) {
    this.name = name;
    this.process = fork(INSTANCE, [name, prefix, ...(store === undefined ? [] : [store])]);
    this.process.once('exit', (code) => {
      if (code) process.exit(code);
    });
  }

  /** Resolves when it has done it, with what came of it. */
  async do(act, facts = {}) {
    const done = once(this.process, 'message');
    this.process.send({ act, ...facts });
    return (await done)[0];
  }

  async ready() {
    const [{ store }] = await once(this.process, 'message');
    return store;
  }

  async kill() {
    const gone = once(this.process, 'exit');
    this.process.kill('SIGKILL');
    await gone;
  }
}

const instances = ['ana', 'ben', 'cleo'].map((name) => new Instance(name));
process.once('SIGINT', async () => {
  for (const instance of instances) instance.process.kill('SIGKILL');
  await sweep(store, prefix).catch(() => {});
  process.exit(130);
});
const [ana, ben, cleo] = instances;
const [where] = await Promise.all(instances.map((instance) => instance.ready()));
console.log(`One owner for 'nightly-report' among three processes, on ${where}.
The lease lasts 3 s and is renewed while its holder lives.`);

title('Three processes want the same work.');
await ana.do('want');
await ben.do('want');
const bens = ben.do('want', { wait: '20s' });
await sleep(1_000);

title('The holder lets go; the one who waits has it a moment later.');
await ana.do('release');
await bens;
const cleos = cleo.do('want', { wait: '20s' });
await sleep(1_000);

title('ben is frozen in the middle of its work, and can not know it (SIGSTOP).');
ben.process.send({ act: 'freeze' });
await cleos;
await cleo.do('write');

title('ben wakes up, and goes on with the very next statement (SIGCONT).');
ben.process.kill('SIGCONT');
await ben.do('write');

title('cleo is killed (SIGKILL). Nobody has to clean up after it.');
const anas = ana.do('want', { wait: '20s' });
await cleo.kill();
tell('cleo', paint(31, 'is dead'));
await anas;
await ana.do('show');
await Promise.all([ana, ben].map((instance) => instance.do('end')));
await sweep(store, prefix);

title('What to try next');
console.log(`  npx holdfast run nightly-report -- sleep 60          a lease around any command; cron on three machines
  npx holdfast ls                                      who holds what, meanwhile, in another terminal
  npm run example:lease -- --store redis://localhost:6379   the same on Redis
  README.md                                            seven lines to use it in your own service`);
