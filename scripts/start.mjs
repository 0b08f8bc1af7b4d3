// Runs the demo, or an example, with the arguments given, building first when dist is missing or older than its sources:
// node scripts/start.mjs demo [--port NUMBER], node scripts/start.mjs lease [--store URL]
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isStale } from './stale.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

if (isStale(root)) {
  // Not to stdout: that belongs to what is run.
  console.error('Building first, which takes a moment …');
  await import('./build.mjs');
}
if (process.exitCode) process.exit();

// In this process rather than a child: Ctrl-C, the exit code and the terminal are its own.
const [name, ...args] = process.argv.slice(2);
const [file, ...words] =
  name === 'demo'
    ? [join(root, 'dist/lib/cli/bin.js'), 'demo', ...args]
    : [join(root, `examples/${name}/demo.mjs`), ...args];
process.argv = [process.execPath, file, ...words];
await import(pathToFileURL(file).href);
