// Runs an example with the arguments given, building first when dist is missing or older than src:
// node scripts/start.mjs demo [--store URL]
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const src = join(root, 'src');

if (builtAtMs() < changedAtMs()) {
  console.log('Building first, which takes a moment …');
  await import('./build.mjs');
}
if (process.exitCode) process.exit();

// In this process rather than a child: Ctrl-C, the exit code and the terminal are the example's own.
const [name, ...args] = process.argv.slice(2);
const example = join(root, `examples/${name}/demo.mjs`);
process.argv = [process.execPath, example, ...args];
await import(pathToFileURL(example).href);

function builtAtMs() {
  return (
    statSync(join(root, 'dist'), { throwIfNoEntry: false })?.mtimeMs ?? Number.NEGATIVE_INFINITY
  );
}

// Folders count too: a deleted file leaves its trace there.
function changedAtMs() {
  const paths = readdirSync(src, { recursive: true, encoding: 'utf8' }).map((path) =>
    join(src, path),
  );
  return Math.max(
    ...[src, join(root, 'tsconfig.json'), join(root, 'tsconfig.build.json'), ...paths].map(
      (path) => statSync(path).mtimeMs,
    ),
  );
}
