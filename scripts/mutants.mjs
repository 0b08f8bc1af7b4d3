// Do the unit tests notice when the code is wrong? `npm run mutants -- --help` has the rest.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { entriesOf, subtract } from './mutants/equivalent.mjs';
import { Judge } from './mutants/judge.mjs';
import { mutateLua } from './mutants/lua.mjs';
import { reportOf } from './mutants/report.mjs';
import { filesOf, JUDGES, judgesOf, LUA, NOT_JUDGED } from './mutants/subjects.mjs';
import { mutateTypeScript } from './mutants/typescript.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const list = new URL('mutants/equivalent.json', import.meta.url);

const HELP = `Usage: npm run mutants -- PLACE [--only FILE]… [--workers N] [--json]

Changes the code in one place at a time (a mutant), and runs the unit tests that reach this place. A mutant that no test
notices survives: a test is missing, or the change makes no difference.

PLACE is a folder (without the folders in it), a file, or:
  lua              the Lua scripts of leases, and what they need
Known places: ${JUDGES.map(([place]) => place).join(', ')}

  --only FILE      only this file of the folder, by its name; may be given more than once
  --workers N      how many test files run at once; default 2
  --json           nothing but [{ file, line, kind, was, becomes, state, why }] on stdout

Survivors that make no difference are listed in scripts/mutants/equivalent.json, each with the reason. An entry that fits
no mutant any more, or one that a test kills, is an error.
Exit code: 0 if every mutant is killed or listed; 1 if one is not, or an entry does not fit; 2 for wrong arguments.`;

const flags = readFlags();
if (flags.help) console.log(HELP);
else process.exitCode = await main(flags);

async function main({ place, only, workers, json }) {
  const files = filesOf(root, place).filter(
    (file) => only.length === 0 || only.some((name) => file.endsWith(`/${name}`)),
  );
  const say = (line) => process.stderr.write(`${line}\n`);
  const isLua = place === LUA;
  const { sources, mutants: all } = await (isLua ? mutateLua : mutateTypeScript)(root, files);
  const mutants = all.filter(({ file }) => !NOT_JUDGED.has(file));
  say(`${mutants.length} mutants in ${files.length} files`);
  const judges = judgesOf(place);
  const judge = new Judge(root, { sources, judges, workers, say });
  const answered = await judge.answers(mutants);
  const entries = entriesOf(JSON.parse(readFileSync(list, 'utf8')));
  const result = subtract(
    answered,
    entries.filter(({ file }) => files.includes(file)),
  );
  console.log(json ? JSON.stringify(result.mutants, null, 2) : reportOf(result));
  return result.mutants.some(({ state }) => state === 'survived' || state === 'unreached') ||
    result.stale.length > 0
    ? 1
    : 0;
}

function readFlags() {
  const boolean = { type: 'boolean', default: false };
  const options = {
    only: { type: 'string', multiple: true, default: [] },
    workers: { type: 'string', default: '2' },
    json: boolean,
    help: boolean,
  };
  try {
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    if (values.help) return values;
    const [place] = positionals;
    if (place === undefined || positionals.length > 1) throw new Error('give one folder or file');
    judgesOf(place);
    const workers = Number(values.workers);
    if (!Number.isInteger(workers) || workers < 1) throw new Error('--workers takes a number');
    return { ...values, place: place.replace(/\/$/, ''), workers };
  } catch (error) {
    console.error(`${error.message}\n\n${HELP}`);
    process.exit(2);
  }
}
