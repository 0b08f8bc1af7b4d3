import { OURS } from '../contenders.mjs';
import { loadedBy, subpaths } from '../import-process.mjs';
import { fact } from '../report.mjs';

const PEERS = ['redlock', 'ioredis'];

/** How many files an import loads; test/integration/package-imports.test.ts says which they may be. */
export const importModules = { name: 'import-modules', run };

async function run(bench) {
  const counts = {};
  for (const name of [...subpaths(), ...PEERS]) {
    bench.progress(importModules.name, name);
    counts[name] = (await loadedBy(name)).length;
  }
  const peers = Object.fromEntries(PEERS.map((name) => [name, counts[name]]));
  return subpaths().map((name) => {
    const figures = { [OURS.name]: counts[name], ...(name === OURS.name && peers) };
    return fact({ requirement: '–', measure: `modules of ${name}`, unit: 'files', figures });
  });
}
