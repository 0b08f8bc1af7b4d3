#!/usr/bin/env node
/**
 * Ten seconds of one lease: three processes want it, one gets it, hands it on, one is frozen and does no harm when it
 * wakes, one is killed. Runs on the embedded store, or on any other one.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { paint, say } from './stage.mjs';

const INSTANCE = fileURLToPath(new URL('./instance.mjs', import.meta.url));
const HELP = `npm run example:lease [-- --store URL]

Shows one lease passing between three processes, one of them frozen and one killed.
  --store URL   redis://…, redis+sentinel://…, redis+cluster://… or sqlite:path; default: the embedded store,
                .holdfast/holdfast.db, nothing to install
  --help        this text`;

const { store, help } = readArguments();
if (help) {
  console.log(HELP);
  process.exit(0);
}

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
    this.process = fork(INSTANCE, [name, ...(store === undefined ? [] : [store])]);
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

function tell(text) {
  console.log(`\n${paint(1, text)}`);
}

const instances = ['ana', 'ben', 'cleo'].map((name) => new Instance(name));
const [ana, ben, cleo] = instances;
const [where] = await Promise.all(instances.map((instance) => instance.ready()));
console.log(`One owner for 'nightly-report' among three processes, on ${where}.
The lease lasts 3 s and is renewed while its holder lives.`);

tell('Three processes want the same work.');
await ana.do('want');
await ben.do('want');
const bens = ben.do('want', { wait: '20s' });
await sleep(1_000);

tell('The holder lets go; the one who waits has it a moment later.');
await ana.do('release');
await bens;
const cleos = cleo.do('want', { wait: '20s' });
await sleep(1_000);

tell('ben is frozen in the middle of its work, and can not know it (SIGSTOP).');
ben.process.kill('SIGSTOP');
await cleos;
await cleo.do('write');

tell('ben wakes up, and goes on with the very next statement (SIGCONT).');
ben.process.kill('SIGCONT');
await ben.do('write');

tell('cleo is killed (SIGKILL). Nobody has to clean up after it.');
const anas = ana.do('want', { wait: '20s' });
await cleo.kill();
say('cleo', paint(31, 'is dead'));
await anas;
await ana.do('show');
await Promise.all([ana, ben].map((instance) => instance.do('end')));

tell('What to try next');
console.log(`  npx holdfast run nightly-report -- sleep 60          a lease around any command; cron on three machines
  npx holdfast ls                                      who holds what, meanwhile, in another terminal
  npm run example:lease -- --store redis://localhost:6379   the same on Redis
  README.md                                            seven lines to use it in your own service`);
