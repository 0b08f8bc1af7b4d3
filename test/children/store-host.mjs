// Another process on a SQLite file: calls the store's verbs for a test, `{"do": "call", id, part, verb, args}`.
import { createInterface } from 'node:readline';
import { openSqliteStore } from '../../dist/store/sqlite/sqlite-store.js';
import { say } from './parent.mjs';

const store = await openSqliteStore(process.argv[2], { quarantine: 'off' });

createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, part, verb, args } = JSON.parse(line);
  try {
    const result = await store[part][verb](...args);
    say({ event: `answer ${id}`, result: result ?? null });
  } catch (error) {
    say({ event: `answer ${id}`, error: { ...error, message: error.message } });
  }
});
process.stdin.on('end', () => void store.close());
say({ event: 'ready' });
