// Another process on PostgreSQL, which does one thing for a test and says that it has begun: `{"do": "call", part, verb, args}`,
// or `{"do": "transaction", sql}`, in one message, over a connection of its own.
import pg from 'pg';
import { openPostgresStore } from '../../dist/store/postgres/postgres-store.js';
import { obey, say } from './parent.mjs';

const [url] = process.argv.slice(2);
const store = await openPostgresStore(url);
const client = new pg.Client({ connectionString: url, application_name: 'holdfast' });
client.on('error', () => {});
await client.connect();
// All that it needs is connected: from now on its network may be at fault.
await store.records.get('none', ['none'], { timeoutMs: 5_000 });

obey({
  async call({ part, verb, args }) {
    say({ event: 'begun' });
    return { result: (await store[part][verb](...args)) ?? null };
  },
  async transaction({ sql }) {
    say({ event: 'begun' });
    await client.query(sql);
    return {};
  },
});
say({ event: 'ready' });
