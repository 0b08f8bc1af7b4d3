// Runs the demo, or an example, with the arguments given, building first when dist is missing or older than its sources:
// node scripts/start.mjs demo [--port NUMBER], node scripts/start.mjs lease [--store URL]
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const sources = ['src', 'dashboard'].map((folder) => join(root, folder));

if (builtAtMs() < changedAtMs()) {
  // Not to stdout: that belongs to what is run.
  console.error('Building first, which takes a moment …');
  await import('./build.mjs');
}
if (process.exitCode) process.exit();

// In this process rather than a child: Ctrl-C, the exit code and the terminal are its own.
const [name, ...args] = process.argv.slice(2);
const [file, ...words] =
  name === 'demo'
    ? [join(root, 'dist/cli/bin.js'), 'demo', ...args]
    : [join(root, `examples/${name}/demo.mjs`), ...args];
process.argv = [process.execPath, file, ...words];
await import(pathToFileURL(file).href);

function builtAtMs() {
  return (
    statSync(join(root, 'dist'), { throwIfNoEntry: false })?.mtimeMs ?? Number.NEGATIVE_INFINITY
  );
}

// Folders count too: a deleted file leaves its trace there.
function changedAtMs() {
  const paths = sources.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  );
  const settings = ['tsconfig.json', 'tsconfig.build.json'].map((file) => join(root, file));
  return Math.max(...[...sources, ...settings, ...paths].map((path) => statSync(path).mtimeMs));
}
