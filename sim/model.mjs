// npm run model: looks at every state of the formal model, and shows what each mistake would lead to.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { register } from 'node:module';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { readFlags } from './flags.mjs';

register('../chaos/typescript-hooks.mjs', import.meta.url);
const { requirePrograms, thisMachine } = await import('../test/support/require-redis.ts');
const { MISTAKES, SMALL, WORLDS } = await import('../testing/model/mistakes.ts');
const { checkWorld } = await import('../testing/model/spin.ts');
const { tell } = await import('../testing/model/story.ts');

const HELP = `Usage: npm run model -- [--small] [--only <text>] [--jobs <n>]

Checks every state of the formal model in testing/model/lease.pml with spin, which it installs by apt-get where it may.
Then puts mistakes into the model, one at a time, and tells the shortest story of what goes wrong with each.

  --small        the smallest world alone, and every mistake: a minute
  --only <text>  only those worlds and mistakes whose names contain this text
  --jobs <n>     verifiers at once; default: one for each core, and two at most, for each may need 4 GB
  --json         nothing but { worlds, mistakes } on stdout
  --help         this

Exit code: 0 if the rules hold in every world and each mistake is found; 1 if not; 2 for wrong arguments.`;

/** Without a terminal, a line this often. */
const LINE_EVERY_MS = 15_000;
const MOST_JOBS = 2;
const CLEAR_LINE = '\r\u001b[K';

const flags = readFlags(HELP, { numbers: ['jobs'], booleans: ['small'], strings: ['only'] });
const { only = '', jobs = Math.min(availableParallelism(), MOST_JOBS) } = flags;
const worlds = flags.small ? [{ name: 'small', about: 'one key', world: SMALL }] : WORLDS;
const chosen = [
  ...worlds.map((one) => ({ ...one, mistake: null })),
  ...MISTAKES.map((one) => ({ ...one, mistake: one.name })),
].filter(({ name }) => name.includes(only));
if (chosen.length === 0) {
  console.error(`no world and no mistake has '${only}' in its name\n\n${HELP}`);
  process.exit(2);
}
requirePrograms(thisMachine, ['spin', 'gcc']);

const isTerminal = process.stderr.isTTY;
const folder = mkdtempSync(join(tmpdir(), 'holdfast-model-'));
const underWay = new Map();
const results = [];
const progress = setInterval(showProgress, isTerminal ? 500 : LINE_EVERY_MS);
try {
  const next = chosen.values();
  await Promise.all(Array.from({ length: jobs }, () => runAll(next)));
} finally {
  clearInterval(progress);
  if (isTerminal) process.stderr.write(CLEAR_LINE);
  rmSync(folder, { recursive: true, force: true });
}
report();

async function runAll(next) {
  for (const one of next) {
    const own = join(folder, String(chosen.indexOf(one)));
    mkdirSync(own);
    underWay.set(one.name, 0);
    const startMs = performance.now();
    const onProgress = (states) => underWay.set(one.name, states);
    const found = await checkWorld({
      folder: own,
      world: one.world,
      mistake: one.mistake,
      onProgress,
    });
    rmSync(own, { recursive: true });
    underWay.delete(one.name);
    const seconds = (performance.now() - startMs) / 1_000;
    const isFound = found.steps !== null;
    const isRight = one.mistake === null ? found.isComplete && !isFound : isFound;
    const result = { one, found, seconds, isRight };
    results.push(result);
    if (!flags.json) show(result);
  }
}

function showProgress() {
  if (flags.json) return;
  const running = [...underWay].map(([name, states]) => `${name} ${count(states)} states`);
  const line = `${results.length} of ${chosen.length} done; now: ${running.join(', ')}`;
  process.stderr.write(isTerminal ? `${CLEAR_LINE}${line}` : `${line}\n`);
}

function show({ one, found, seconds, isRight }) {
  if (isTerminal) process.stderr.write(CLEAR_LINE);
  const took = `${count(found.states)} states, ${seconds.toFixed(1)} s`;
  if (one.mistake === null)
    console.log(`${isRight ? '✓' : '✗'} ${one.name}: ${one.about}; ${verdict(found)}, ${took}`);
  else if (!isRight) console.log(`✗ ${one.name}: not found, ${took}`);
  else console.log(`\n✓ ${one.name}: ${one.about} (${took})`);
  if (found.steps !== null)
    console.log(
      tell(found.steps)
        .map((line) => `  ${line}`)
        .join('\n'),
    );
}

function verdict({ steps, isComplete }) {
  if (steps !== null) return 'the rules are broken';
  return isComplete
    ? 'the rules hold in every state'
    : 'not every state was seen: too little memory';
}

function report() {
  const wrong = results.filter(({ isRight }) => !isRight);
  process.exitCode = wrong.length > 0 ? 1 : 0;
  const told = ({ one, found, seconds, isRight }) => ({
    name: one.name,
    ok: isRight,
    states: found.states,
    seconds: Number(seconds.toFixed(1)),
    ...(found.steps !== null && { story: tell(found.steps) }),
  });
  const of = (isMistake) => results.filter(({ one }) => (one.mistake !== null) === isMistake);
  if (flags.json) {
    console.log(JSON.stringify({ worlds: of(false).map(told), mistakes: of(true).map(told) }));
    return;
  }
  const states = of(false).reduce((sum, { found }) => sum + found.states, 0);
  const found = of(true).filter(({ isRight }) => isRight).length;
  console.log(
    `\n${of(false).length} worlds with ${count(states)} states; ${found} of ${of(true).length} mistakes were found.`,
  );
}

function count(number) {
  return Math.round(number).toLocaleString('en');
}
