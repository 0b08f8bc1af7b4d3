// Holds the write lock of a SQLite file for as long as it is told, behind the back of whoever else uses the file.
// {"do": "lock"}, {"do": "unlock"}.
import { createInterface } from 'node:readline';
import Libsql from 'libsql';
import { say } from './parent.mjs';

const db = new Libsql(process.argv[2]);
const commands = { lock: 'BEGIN IMMEDIATE', unlock: 'ROLLBACK' };

createInterface({ input: process.stdin }).on('line', (line) => {
  const { do: what } = JSON.parse(line);
  // Others hold the lock for moments only: it is to be had soon.
  for (let attempt = 1; ; attempt++) {
    try {
      db.exec(commands[what]);
      break;
    } catch (error) {
      if (attempt === 10_000) throw error;
    }
  }
  say({ event: what });
});
say({ event: 'ready' });
