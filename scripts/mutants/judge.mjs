/** Runs the unit tests over mutated files, and finds which mutants make a test fail. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const RUNNER = fileURLToPath(new URL('runner.mjs', import.meta.url));
const CONFIG = fileURLToPath(new URL('vitest.config.mjs', import.meta.url));
const VITEST = join(
  dirname(fileURLToPath(import.meta.resolve('vitest/package.json'))),
  'vitest.mjs',
);
/** Tests that take longer come second, and run with what the others have let through. */
const QUICK_MS = 150;
/** In place of a test: all of them, in a process of their own. */
const ALONE = 'alone';
/** How often vitest may leave out test files. */
const MAX_TRIES = 5;
/** A process that does nothing new for so many seconds hangs. */
const HANG_TICKS = 20;

/**
 * The answer for each mutant: `killed`, with the test that failed; `survived`; or `unreached` by any test.
 *
 * 1. Every test runs once, and says which mutants it reaches.
 * 2. Every test runs with each mutant that it reaches: first those that are named after the file, then the quick ones.
 * 3. Of those left, mutants that are reached while files load, and those that spoil the process for what follows, have a
 *    process each.
 *
 * What was found is kept for as long as the mutated files are the same, so that a run that was interrupted goes on where it
 * was. What a test file has found is forgotten when this file changes.
 */
export class Judge {
  #dir;
  #sources;
  /** The test files that judge, each with a digest of its content. */
  #files = new Map();
  #workers;
  #say;
  /** Per test: its file, how long it takes, and what it reaches. */
  #tests = new Map();
  #loaded = new Set();
  #hits = {};
  #answers = new Map();
  #alone = new Set();
  #passed = new Set();
  /** The file of each mutant. */
  #places = new Map();

  constructor(root, { sources, judges, workers, say }) {
    const name = digest(JSON.stringify(sources));
    this.#dir = join(root, 'node_modules/.cache/holdfast-mutants', name);
    for (const path of new Set(judges.flatMap((pattern) => filesLike(root, pattern)))) {
      this.#files.set(join(root, path), digest(readFileSync(join(root, path), 'utf8')));
    }
    this.#sources = sources;
    this.#workers = workers;
    this.#say = say;
  }

  async answers(mutants) {
    await this.#cover();
    for (const { id, file } of mutants) this.#places.set(id, file);
    for (const stage of ['own', 'quick', 'slow']) await this.#judge(stage);
    await this.#judgeAlone(mutants);
    return mutants.map((mutant) => ({ ...mutant, ...this.#answerOf(mutant.id) }));
  }

  #answerOf(id) {
    const killedBy = this.#answers.get(id);
    if (killedBy !== undefined) return { state: 'killed', killedBy };
    const tests = [...this.#tests.values()].filter(({ reached }) => reached.has(id)).length;
    return { state: tests > 0 || this.#loaded.has(id) ? 'survived' : 'unreached', tests };
  }

  async #cover() {
    const dir = join(this.#dir, 'cover');
    const known = this.#forget();
    let left = [...this.#files.keys()].filter((file) => known[file] === undefined);
    // A worker of vitest that is late to start has run nothing: the others count.
    for (let tries = 0; left.length > 0; tries++) {
      if (tries === MAX_TRIES) throw new Error(`vitest did not run ${left.join(', ')}`);
      const { output } = await this.#run('cover', 'cover', { tests: left });
      this.#refuseFailures(output);
      const done = new Set(linesOf(dir, 'coverage').map(([file]) => file));
      left = left.filter((file) => !done.has(file));
      const files = [...this.#files].filter(([file]) => done.has(file));
      writeFileSync(join(this.#dir, 'files.json'), JSON.stringify(files));
      this.#forget();
    }
    for (const [file, id, ms] of linesOf(dir, 'tests')) {
      this.#tests.set(id, { file, ms: Number(ms), reached: new Set() });
    }
    for (const [, text] of linesOf(dir, 'coverage')) this.#addCoverage(JSON.parse(text));
    this.#say(`  ${this.#tests.size} tests`);
  }

  #refuseFailures(output) {
    const failed = linesOf(join(this.#dir, 'cover'), 'failed');
    if (failed.length > 0) {
      const names = failed.map(([, , name, why]) => `  ${name}: ${why}`).join('\n');
      rmSync(this.#dir, { recursive: true });
      throw new Error(`these tests fail without a mutant:\n${names}`);
    }
    if (linesOf(join(this.#dir, 'cover'), 'coverage').length === 0)
      throw new Error(`vitest could not run the tests:\n${output.slice(-3_000)}`);
  }

  /** Removes what test files have found that are not the same any more; returns those that are. */
  #forget() {
    const kept = {};
    const at = join(this.#dir, 'files.json');
    const old = existsSync(at) ? JSON.parse(readFileSync(at, 'utf8')) : [];
    for (const [file, content] of old) if (this.#files.get(file) === content) kept[file] = content;
    const isSame = old.length === this.#files.size && Object.keys(kept).length === old.length;
    for (const name of [
      'cover/tests',
      'cover/coverage',
      'judge/killed',
      'judge/passed',
      'judge/spoilt',
    ]) {
      const lines = linesOf(this.#dir, name);
      if (lines.length === 0) continue;
      const left = lines.filter(([file]) => (file === ALONE ? isSame : kept[file] !== undefined));
      writeFileSync(join(this.#dir, name), left.map((line) => `${line.join('\t')}\n`).join(''));
    }
    return kept;
  }

  #addCoverage({ static: loaded, perTest }) {
    for (const [test, counts] of Object.entries(perTest)) {
      for (const [id, count] of Object.entries(counts)) {
        this.#tests.get(test)?.reached.add(id);
        this.#hits[id] = Math.max(count, this.#hits[id] ?? 0);
      }
    }
    for (const id of Object.keys(loaded)) this.#loaded.add(id);
  }

  /** Once more after a process was spoilt or hung, until all tests have answered. */
  async #judge(stage) {
    this.#readAnswers();
    for (let left = Number.POSITIVE_INFINITY; ; ) {
      const plan = this.#planFor(stage);
      const size = Object.values(plan).flat().length;
      if (size === 0) return;
      if (size >= left) throw new Error(`${size} answers are missing, and vitest gives no more`);
      left = size;
      const tests = [...new Set(Object.keys(plan).map((id) => this.#tests.get(id).file))];
      const spans = Object.fromEntries([...this.#tests].map(([id, { ms }]) => [id, ms]));
      const { hung } = await this.#run('judge', 'judge', { tests, plan, hits: this.#hits, spans });
      for (const [id, test] of hung) {
        this.#note('killed', [this.#tests.get(test).file, id, test, 'hangs']);
      }
      this.#readAnswers();
      this.#say(`  ${stage} tests: ${this.#answers.size} killed, ${hung.length} hung`);
    }
  }

  #readAnswers() {
    const dir = join(this.#dir, 'judge');
    for (const [, id, test] of linesOf(dir, 'passed')) this.#passed.add(`${id} ${test}`);
    for (const [file, id, , why] of linesOf(dir, 'killed')) this.#answers.set(id, { file, why });
    for (const [, id] of linesOf(dir, 'spoilt')) this.#alone.add(id);
  }

  #note(name, facts) {
    appendFileSync(join(this.#dir, 'judge', name), `${facts.join('\t')}\n`);
  }

  #planFor(stage) {
    const plan = {};
    for (const [test, { file, ms, reached }] of this.#tests) {
      if (stage !== 'own' && ms > QUICK_MS !== (stage === 'slow')) continue;
      const fits = (id) => stage !== 'own' || isNamedAfter(file, this.#places.get(id));
      const left = [...reached].filter((id) => fits(id) && this.#isOpen(id, test));
      if (left.length > 0) plan[test] = left;
    }
    return plan;
  }

  #isOpen(id, test) {
    if (this.#answers.has(id) || this.#alone.has(id)) return false;
    return !this.#passed.has(`${id} ${test}`);
  }

  async #judgeAlone(mutants) {
    const left = mutants
      .map(({ id }) => id)
      .filter((id) => this.#loaded.has(id) || this.#alone.has(id))
      .filter((id) => !this.#answers.has(id) && !this.#passed.has(`${id} ${ALONE}`));
    if (left.length > 0) this.#say(`  ${left.length} mutants with a process each`);
    const next = async () => {
      for (let id = left.shift(); id !== undefined; id = left.shift()) {
        const isKilled = await this.#dies(id);
        this.#note(isKilled ? 'killed' : 'passed', [ALONE, id, ALONE, '']);
      }
    };
    await Promise.all(Array.from({ length: this.#workers }, next));
    this.#readAnswers();
  }

  /** Whether a mutant dies in a process of its own; the tests that have the name of its file come first. */
  async #dies(id) {
    const file = this.#places.get(id);
    const tests = this.#loaded.has(id) ? [...this.#files.keys()] : this.#filesReaching(id);
    const isOwn = (test) => isNamedAfter(test, file);
    const rounds = [tests.filter(isOwn), tests.filter((test) => !isOwn(test))];
    for (const round of rounds.filter(({ length }) => length > 0)) {
      const name = `alone-${id}`;
      let result;
      // A worker of vitest that is late to start is no answer.
      do result = await this.#run('alone', name, { tests: round, workers: 1 }, id);
      while (result.output.includes('[vitest-pool'));
      rmSync(join(this.#dir, name), { recursive: true });
      if (result.code !== 0) return true;
    }
    return false;
  }

  #filesReaching(id) {
    const reaching = [...this.#tests.values()].filter(({ reached }) => reached.has(id));
    return [...new Set(reaching.map(({ file }) => file))];
  }

  /** One run of vitest. */
  async #run(phase, name, facts, active = '') {
    const dir = join(this.#dir, name);
    mkdirSync(dir, { recursive: true });
    for (const old of readdirSync(dir).filter(isDoing)) rmSync(join(dir, old));
    const runner = phase === 'alone' ? undefined : RUNNER;
    const run = { phase, sources: this.#sources, runner, workers: this.#workers, ...facts };
    writeFileSync(join(dir, 'run.json'), JSON.stringify(run));
    const env = { ...process.env, HOLDFAST_MUTANTS: dir, __STRYKER_ACTIVE_MUTANT__: active };
    if (active === '') delete env.__STRYKER_ACTIVE_MUTANT__;
    const { code, hung, output } = await watched(dir, env);
    return { code, hung, output };
  }
}

/** Runs vitest, and ends what hangs in it: a worker that does nothing new, or all of it if no worker says what it does. */
function watched(dir, env) {
  const args = [VITEST, 'run', '--config', CONFIG, '--reporter', 'dot', '--no-color'];
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output = `${output}${chunk}`.slice(-20_000);
    });
  }
  // Whoever ends this process ends vitest, too.
  const end = () => child.kill('SIGKILL') && process.exit(143);
  process.once('SIGTERM', end);
  const hung = [];
  const stills = new Map();
  let ticks = 0;
  const timer = setInterval(() => {
    ticks += 1;
    const workers = readdirSync(dir).filter(isDoing);
    for (const name of workers) {
      const doing = textOf(join(dir, name));
      const still = stills.get(name);
      stills.set(name, { doing, ticks: still?.doing === doing ? still.ticks + 1 : 0 });
      if (stills.get(name).ticks !== HANG_TICKS) continue;
      const [pid, id, test] = doing.split('\t');
      if (doing !== '' && isRunning(Number(pid), child.pid)) {
        if (id !== '') hung.push([id, test, 'hangs']);
        process.kill(Number(pid), 'SIGKILL');
      }
    }
    if (stills.size === 0 && ticks === 12 * HANG_TICKS) {
      child.kill('SIGKILL');
    }
  }, 1_000);
  return new Promise((resolve) => {
    child.once('close', (code) => {
      clearInterval(timer);
      process.off('SIGTERM', end);
      resolve({ code: code ?? 1, hung, output });
    });
  });
}

/** Whether a worker is still there and still a child of vitest: its number may have been given to another process. */
function isRunning(pid, parent) {
  try {
    return (
      readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')[1] === String(parent)
    );
  } catch {
    return false;
  }
}

/** The files that fit a pattern, in which `*` is a part of a name, and `**` any folders. */
function filesLike(root, pattern) {
  const [folder] = pattern.includes('*') ? pattern.split(/[^/]*\*/) : [`${dirname(pattern)}/`];
  const source = pattern
    .replaceAll('.', '\\.')
    .replace(/\*\*\/|\*/g, (stars) => (stars === '*' ? '[^/]*' : '(?:.*/)?'));
  const fits = new RegExp(`^${source}$`);
  const below = readdirSync(join(root, folder), { recursive: true });
  return below.map((name) => `${folder}${name}`).filter((path) => fits.test(path));
}

function digest(text) {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** A worker removes its file when a test is over, which may be just now. */
function textOf(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** `tenure.test.ts` is about `tenure.ts`, and `pool-waiting.test.ts` about `pool.ts`. */
function isNamedAfter(test, file = '') {
  return basename(test).startsWith(basename(file, '.ts'));
}

function isDoing(name) {
  return name.startsWith('doing-');
}

function linesOf(dir, name) {
  try {
    const lines = readFileSync(join(dir, name), 'utf8').split('\n');
    return lines.filter((line) => line !== '').map((line) => line.split('\t'));
  } catch {
    return [];
  }
}
