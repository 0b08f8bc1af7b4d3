#!/usr/bin/env node
/** Twelve accounts, each with one open connection, over three processes that are killed, frozen and replaced. A server judges. */
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { open } from 'holdfast';
import { Player } from '../staging/player.mjs';
import { stage } from '../staging/stage.mjs';
import { claim, milliseconds, say, title, until } from '../staging/telling.mjs';
import { Judge } from './server.mjs';

const CLIENT = fileURLToPath(new URL('client.mjs', import.meta.url));
const ACCOUNTS = 12;
const TTL_MS = 3_000;
/** What a machine that does something else, too, may add to any of it. */
const SLACK_MS = 4_000;
const ABOUT = `Twelve accounts over three processes: one open connection for each at any time. One process is killed (SIGKILL), one is frozen
(SIGSTOP) and woken, then all are replaced one after the other, as in a deploy. The server that they connect to judges.`;

await stage({ name: 'sockets', about: ABOUT }, async ({ storeEnv, store, prefix, where }) => {
  const judge = new Judge();
  const port = await judge.listen();
  const holdfast = await open(store, { prefix, quarantine: 'off' });
  const ids = Array.from({ length: ACCOUNTS }, (_, i) => `account-${i + 1}`);
  await holdfast.targets.addAll(ids.map((id) => ({ id, port })));
  const start = async (name) => {
    const player = new Player(CLIENT, name, storeEnv);
    await until(`${name} to start`, () => player.last('started'));
    return player;
  };
  console.log(`${ACCOUNTS} accounts on ${where}. A lease lasts ${TTL_MS / 1_000} s.`);

  title('Three processes are started. They share the accounts.');
  const [ana, ben, cleo] = await Promise.all(['ana', 'ben', 'cleo'].map(start));
  await shared(judge, ['ana', 'ben', 'cleo']);

  title('ana is killed (SIGKILL): it can not say good-bye.');
  ana.signal('SIGKILL');
  const killed = await shared(judge, ['ben', 'cleo']);
  claim(killed < TTL_MS + SLACK_MS, `all were connected again after ${milliseconds(killed)}`);

  title('ben is frozen (SIGSTOP), and can not know it.');
  const back = await start('dora');
  await shared(judge, ['ben', 'cleo', 'dora']);
  judge.frozen.add('ben');
  ben.freeze();
  const frozen = await shared(judge, ['cleo', 'dora']);
  claim(frozen < TTL_MS + SLACK_MS, `all were connected again after ${milliseconds(frozen)}`);
  ben.signal('SIGCONT');
  // Nothing that it says now may reach an account: the server would tell.
  await sleep(500);
  judge.frozen.delete('ben');
  await shared(judge, ['ben', 'cleo', 'dora']);
  claim(
    judge.faults.length === 0,
    'ben woke up, spoke on none of its old connections, and takes part again',
  );

  title('A deploy: each is replaced, one after the other (SIGTERM).');
  const old = [ben, cleo, back];
  const names = ['eve', 'finn', 'gus'];
  for (const [i, one] of old.entries()) {
    await start(names[i]);
    one.signal('SIGTERM');
    claim((await one.ended()) === 0, `${one.name} has handed over, and ended with exit code 0`);
  }
  await shared(judge, names);

  title('What the server saw');
  for (const fault of judge.faults) say(fault);
  claim(judge.faults.length === 0, 'one connection for each account, at any time');
  judge.close();
  await holdfast.close({ within: 0 });
});

/** Waits until every account is connected, by these processes alone, and says how long that took. */
async function shared(judge, names) {
  const { seen, tookMs } = await until(`all accounts at ${names.join(', ')}`, () => {
    const lines = judge.connected.filter(({ by, beats }) => names.includes(by) && beats > 0);
    const isEven = names.every((name) => lines.some(({ by }) => by === name));
    return lines.length === ACCOUNTS && isEven && lines;
  });
  const shares = names.map((name) => `${name} ${seen.filter(({ by }) => by === name).length}`);
  claim(true, `${seen.length} accounts are connected: ${shares.join(', ')}`);
  return tookMs;
}
