// Opens a store with the build that it is told, writes a record, and says how that went.
import { pathToFileURL } from 'node:url';

const { entry, store } = JSON.parse(process.argv[2]);
const { open } = await import(pathToFileURL(entry).href);
try {
  const holdfast = await open(store, { name: 'opener', on: { 'store.warned': () => {} } });
  await holdfast.records.put('upgrade', { by: entry }, { fence: 1 });
  await holdfast.close();
  process.send({ kind: 'opened', code: null, message: '' });
} catch ({ code, message }) {
  process.send({ kind: 'opened', code, message });
}
process.disconnect();
