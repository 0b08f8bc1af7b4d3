// Writes docs/reference from what has been built: node scripts/reference.mjs, or with --check only says what is not up to date.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const HELP = `Usage: npm run docs:reference
       node scripts/reference.mjs [--check]

Writes the pages of docs/reference from what has been built: the API, the configuration, the commands, the routes, the errors, the events
and the metrics. They are committed; a test fails where they are not up to date.

Options:
  --check      write nothing, and exit with 1 if a page is not up to date
  -h, --help   show this
`;

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = join(root, 'docs/reference');

const OPTIONS = { check: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } };

try {
  const { values } = parseArgs({ options: OPTIONS });
  if (values.help) process.stdout.write(HELP);
  else await write(values.check === true);
} catch (error) {
  const isUsage = error.code?.startsWith('ERR_PARSE_ARGS') === true;
  complain(isUsage ? `${error.message}. See --help.` : error.message, isUsage ? 64 : 1);
}

async function write(isCheck) {
  if (!existsSync(join(root, 'dist/index.d.ts')))
    throw new Error('there is no dist. Run npm run build.');
  const { referencePages } = await import('./reference/pages.mjs');
  const pages = new Map(
    [...(await referencePages(root))].map(([name, text]) => [`${name}.md`, text]),
  );
  mkdirSync(folder, { recursive: true });
  const old = readdirSync(folder).filter((file) => !pages.has(file));
  const changed = [...pages].filter(([file, text]) => textOf(file) !== text);
  const stale = [...changed.map(([file]) => file), ...old];
  if (isCheck && stale.length > 0)
    throw new Error(
      `not up to date in docs/reference: ${stale.join(', ')}. Run npm run docs:reference.`,
    );
  if (isCheck) return;
  for (const [file, text] of changed) writeFileSync(join(folder, file), text);
  for (const file of old) rmSync(join(folder, file));
  console.log(`docs/reference: ${pages.size} pages, ${stale.length} of them changed`);
}

function textOf(file) {
  const path = join(folder, file);
  return existsSync(path) ? readFileSync(path, 'utf8') : null;
}

function complain(what, exitCode) {
  console.error(`docs:reference: ${what}`);
  process.exitCode = exitCode;
}
