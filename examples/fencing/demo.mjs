#!/usr/bin/env node
/** A writer is frozen between asking its lease and writing, for longer than its lease lasts. What it writes when it wakes is refused. */
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { Player } from '../staging/player.mjs';
import { stage } from '../staging/stage.mjs';
import { claim, tell, title, until } from '../staging/telling.mjs';
import { connect } from './database.mjs';
import { servePglite } from './pglite.mjs';
import { redisFor } from './redis.mjs';

const WRITER = fileURLToPath(new URL('writer.mjs', import.meta.url));
const ABOUT = `A writer is frozen (SIGSTOP) between asking its lease and writing, wakes up when another has the lease, and writes: a PostgreSQL
row and a Redis key that look at fences refuse it, a row that does not is overwritten.
PostgreSQL is PGlite, in this process, or with DATABASE_URL=postgres://… a server, in a schema that is dropped at the end. Redis is the
store, or on the embedded store a redis-server of its own, if there is one on the PATH; without, the row alone is shown.`;

await stage(
  { name: 'fencing', about: ABOUT },
  async ({ store, storeEnv, prefix, where, folder }) => {
    if (!process.env.DATABASE_URL)
      console.log('PostgreSQL is being started, which takes a few seconds …\n');
    const url = process.env.DATABASE_URL || (await servePglite());
    const redisUrl = await redisFor(store, folder);
    const schema = `fencing_${randomBytes(4).toString('hex')}`;
    const database = await makeSchema(url, schema);
    try {
      console.log(`A lease of 2 s on ${where}, which guards an account's balance in
  PostgreSQL  ${await versionOf(database)}, ${process.env.DATABASE_URL ? 'a server' : 'PGlite in this process'}
  Redis       ${nameOf(redisUrl, store)}`);
      const env = { ...storeEnv, DATABASE: url, SCHEMA: schema, REDIS: redisUrl ?? '' };
      const redis = redisUrl === null ? null : new Redis(redisUrl);
      const account = { database, redis, key: `${prefix}{account-7}:balance` };
      await play(
        ['ana', 'ben'].map((name) => new Player(WRITER, name, env)),
        account,
      );
      redis?.disconnect();
    } finally {
      await database.query(`DROP SCHEMA ${schema} CASCADE`);
      await database.close();
    }
  },
);

async function play([ana, ben], account) {
  title('ana has the lease, and writes.');
  const first = await order(ana, 'take');
  tell('ana', `has the lease, fence ${first.fence}`);
  allWritten('ana', await order(ana, 'write', { balance: 100 }));
  const waiting = order(ben, 'take');

  title(
    'ana asks its lease, which it has, and is frozen before the very next statement (SIGSTOP).',
  );
  const late = order(ana, 'write', { balance: 90, isFrozenFirst: true });
  const second = await waiting;
  tell('ben', `has the lease, fence ${second.fence}`);
  claim(second.fence > first.fence, 'ana’s has run out, and the fence of ben’s is higher');
  allWritten('ben', await order(ben, 'write', { balance: 250 }));

  title('ana wakes up (SIGCONT), and writes.');
  ana.signal('SIGCONT');
  const { isHeld, row, key } = await late;
  tell('ana', `has not asked again; it would have heard isHeld() is ${isHeld}`);
  claim(row.startsWith('refused'), `the row with a fence: ${row}`);
  if (key !== null) claim(key.startsWith('refused'), `the key with a fence: ${key}`);

  title('What is there now.');
  const balances = await read(account);
  claim(
    balances['account-7'] === 250,
    `the row with a fence has ${balances['account-7']}, as ben wrote`,
  );
  if (balances.key !== null)
    claim(balances.key === 250, `the key with a fence has ${balances.key}, as ben wrote`);
  claim(
    balances.unguarded === 90,
    `the row without one has ${balances.unguarded}: what ben wrote is lost`,
  );
}

async function versionOf(database) {
  const { rows } = await database.query('SHOW server_version');
  return rows[0].server_version;
}

function nameOf(redisUrl, store) {
  if (redisUrl === null) return 'none: no redis-server on the PATH, so the row alone is shown';
  return redisUrl === store ? 'the store' : 'a redis-server of this run';
}

/** Has it do something: what came of it. */
async function order(player, act, facts = {}) {
  await until(`${player.name} to be ready`, () => player.last('ready'));
  const before = player.heard.length;
  player.send({ act, ...facts });
  const { seen } = await until(`${player.name} to ${act}`, () =>
    player.heard.slice(before).find(({ said }) => said === act),
  );
  return seen;
}

function allWritten(name, { row, key, unguarded }) {
  const outcomes = {
    'the row with a fence': row,
    'the key with a fence': key,
    'the row without': unguarded,
  };
  for (const [what, outcome] of Object.entries(outcomes))
    if (outcome !== null) claim(outcome === 'written', `${name} writes ${what}: ${outcome}`);
}

async function makeSchema(url, schema) {
  const first = await connect(url, 'public');
  await first.query(`CREATE SCHEMA ${schema}`);
  await first.close();
  const database = await connect(url, schema);
  await database.query(
    'CREATE TABLE accounts (id text PRIMARY KEY, balance int, fence bigint DEFAULT 0)',
  );
  await database.query(`INSERT INTO accounts VALUES ('account-7', 0), ('unguarded', 0)`);
  return database;
}

async function read({ database, redis, key }) {
  const { rows } = await database.query('SELECT id, balance FROM accounts');
  const ofRows = Object.fromEntries(rows.map(({ id, balance }) => [id, balance]));
  return { ...ofRows, key: redis && Number(await redis.get(key)) };
}
