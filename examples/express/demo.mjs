#!/usr/bin/env node
/** Three instances of an Express service (app.mjs) share twelve things that they poll. One is killed, one is stopped. */
import { stage } from '../staging/stage.mjs';
import { claim, milliseconds, say, title, until } from '../staging/telling.mjs';
import { Instance } from './instance.mjs';
import { Things } from './things.mjs';

const TTL_MS = 2_000;
/** What a machine that does something else, too, may add to any of it. */
const SLACK_MS = 4_000;
const THINGS = 12;
const ABOUT = `Three instances of an Express service share twelve things that they poll: added over HTTP, each polled by one of them. One is
killed, and the others take over; one is stopped, and hands over what it has.`;

await stage({ name: 'express', about: ABOUT }, async ({ storeEnv, where }) => {
  const things = new Things();
  const at = await things.serve();
  console.log(
    `Three instances of an Express service, on ${where}. Leases last ${TTL_MS / 1_000} s.`,
  );

  title('Three instances are started.');
  const env = { ...storeEnv, TTL: `${TTL_MS / 1_000}s` };
  const instances = ['ana', 'ben', 'cleo'].map((name) => new Instance(name, env));
  await Promise.all(instances.map((instance) => instance.listens()));
  const [ana, ben, cleo] = instances;
  for (const instance of instances) {
    const { status } = await instance.call('GET', '/readyz');
    claim(status === 200, `${instance.name} listens on ${instance.url}, GET /readyz: ${status}`);
  }

  title(`${THINGS} targets are added, over any of them.`);
  for (let i = 0; i < THINGS; i += 1) {
    const id = `thing-${String(i + 1).padStart(2, '0')}`;
    const target = { id, url: `${at}/${id}`, every: '200ms' };
    const { status } = await instances[i % 3].call('POST', '/targets', target);
    if (status !== 201) throw new Error(`POST /targets ${id}: ${status}`);
  }
  const again = await ana.call('POST', '/targets', { id: 'thing-01', url: `${at}/thing-01` });
  claim(
    again.status === 409,
    `one that is there already is refused: ${again.status} ${again.body.code}`,
  );
  await shared(cleo, { ana: 4, ben: 4, cleo: 4 });
  const { body: targets } = await ben.call('GET', '/targets');
  claim(targets.length === THINGS, `GET /targets has all ${targets.length} of them`);
  await polledBy(things, ['ana', 'ben', 'cleo']);

  title('ana is killed (SIGKILL). Nobody has to clean up after it.');
  ana.signal('SIGKILL');
  const { tookMs } = await shared(ben, { ben: 6, cleo: 6 });
  claim(tookMs < TTL_MS + SLACK_MS, `ben and cleo have what it had, ${milliseconds(tookMs)} later`);
  await polledBy(things, ['ben', 'cleo']);

  title('ben is stopped (SIGTERM), and hands over what it has.');
  const stopping = ben.stop();
  const handed = await shared(cleo, { cleo: THINGS });
  claim(handed.tookMs < SLACK_MS, `cleo has everything, ${milliseconds(handed.tookMs)} later`);
  claim((await stopping) === 0, 'ben has ended with exit code 0');
  await polledBy(things, ['cleo']);

  title('cleo is stopped, too.');
  claim((await cleo.stop()) === 0, 'cleo has ended with exit code 0');
  claim(things.overlaps === 0, 'nothing was ever polled by two at once');
});

/** Asks an instance who owns what, until it is so many each. */
async function shared(instance, shares) {
  const { seen, tookMs } = await until(`shares of ${JSON.stringify(shares)}`, async () => {
    const { body: owners } = await instance.call('GET', '/owners');
    const isSo = Object.entries(shares).every(([name, count]) => owners[name]?.length === count);
    return isSo && owners;
  });
  say(`GET /owners from ${instance.name}:`);
  for (const name of Object.keys(shares))
    say(`  ${name.padEnd(5)} ${seen[name].join(' ').replaceAll('thing-', '')}`);
  return { tookMs };
}

/** Waits until everything has been polled once more, by these and nobody else. */
async function polledBy(things, names) {
  const fromMs = performance.now();
  const { seen } = await until('all to be polled', () => {
    const polls = things.since(fromMs);
    return polls.length === THINGS && polls;
  });
  const askers = [...new Set(seen.map(([, { by }]) => by))].sort();
  claim(String(askers) === String(names), `all ${seen.length} are polled, by ${askers.join(', ')}`);
}
