// Writes down what is loaded, one address per line, in the file that LOADED_MODULES names:
// LOADED_MODULES=list node --import ./loaded-modules.mjs program.mjs
import { appendFileSync } from 'node:fs';
import { createRequire, register } from 'node:module';

register('./module-hooks.mjs', import.meta.url);

// What CommonJS modules require of each other goes past the hooks.
process.once('exit', () => {
  const required = Object.keys(createRequire(import.meta.url).cache);
  appendFileSync(process.env.LOADED_MODULES, required.map((path) => `${path}\n`).join(''));
});
