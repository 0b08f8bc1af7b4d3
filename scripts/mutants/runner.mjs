/**
 * Runs each test once for every mutant that it reaches, in the process that has loaded the files: to start a process for
 * each mutant takes longer than most tests. Vitest repeats the test with its hooks, and before each repetition the next
 * mutant is switched on. After a mutant that a test has failed, the test runs once without: if it fails again, the mutant
 * has left something behind, so the answer does not count and this process judges nothing more.
 */
import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TestRunner } from 'vitest';

const { HOLDFAST_MUTANTS: dir = '' } = process.env;
const {
  phase,
  plan = {},
  hits = {},
  spans = {},
} = JSON.parse(readFileSync(join(dir, 'run.json'), 'utf8'));
const { setInterval, clearInterval, setImmediate } = globalThis;
const TICK_MS = 50;
/** How often a mutated place may be reached more often than without a mutant: more is a loop without end. */
const HIT_FACTOR = 100;
globalThis.__stryker__ ??= {};
const world = globalThis.__stryker__;

export default class MutantRunner extends TestRunner {
  /** Mutants that the current test still has to run with. */
  #waiting = [];
  /** The mutant that is on, '' for the run without, null for a repetition that nothing is left for. */
  #active = null;
  #mustBeClean = false;
  #isSpoilt = false;
  #failure = null;
  /** The mutant that has failed last, with the test and what it said. */
  #kill = [];
  #startedAt = 0;

  constructor(config) {
    super(config);
    process.on('unhandledRejection', (error) => this.#fail(error));
    process.on('uncaughtException', (error) => this.#fail(error));
  }

  async onBeforeRunTask(test) {
    await super.onBeforeRunTask(test);
    if (phase === 'cover') return;
    const killed = new Set(readLines('killed').map(([, id]) => id));
    this.#waiting = this.#isSpoilt ? [] : (plan[test.id] ?? []).filter((id) => !killed.has(id));
    if (this.#waiting.length === 0) test.mode = 'skip';
    // One more for each that may have to be followed by a run without a mutant.
    test.repeats = 2 * this.#waiting.length;
  }

  onBeforeTryTask(test) {
    super.onBeforeTryTask(test);
    this.#failure = null;
    this.#startedAt = performance.now();
    if (phase === 'cover') {
      world.currentTestId = test.id;
      return;
    }
    this.#active = this.#mustBeClean ? '' : (this.#waiting.shift() ?? null);
    world.activeMutant = this.#active || 'none';
    world.hitCount = 0;
    world.hitLimit = HIT_FACTOR * (hits[this.#active] ?? 100);
    // For whoever watches this process: what it was doing when it stopped answering.
    const doing = [process.pid, this.#active ?? '', test.id, Math.random()];
    if (this.#active !== null) writeFileSync(join(dir, `doing-${process.pid}`), doing.join('\t'));
  }

  async runTask(test) {
    if (phase === 'judge' && this.#active === null) return;
    try {
      const limit = 12 + Math.ceil((8 * (spans[test.id] ?? 0)) / TICK_MS);
      await (phase === 'cover'
        ? TestRunner.getTestFn(test)()
        : withLimit(() => TestRunner.getTestFn(test)(), limit));
    } catch (error) {
      this.#fail(error);
    }
  }

  async onAfterRetryTask(test) {
    // A rejection that nobody handles is announced one turn later.
    await new Promise((resolve) => setImmediate(resolve));
    const failed = this.#failure ?? (test.result.state === 'fail' ? 'a hook failed' : null);
    const { filepath } = test.file;
    if (phase === 'cover') {
      world.currentTestId = undefined;
      if (failed !== null) write('failed', [filepath, test.id, test.name, failed]);
      write('tests', [filepath, test.id, Math.ceil(performance.now() - this.#startedAt)]);
      return;
    }
    test.result.state = 'pass';
    test.result.errors = undefined;
    world.activeMutant = 'none';
    this.#settle(test, failed);
  }

  #settle(test, failed) {
    const { filepath } = test.file;
    if (this.#active === '') {
      this.#mustBeClean = false;
      if (failed === null) write('killed', this.#kill);
      else {
        this.#isSpoilt = true;
        this.#waiting = [];
        write('spoilt', [...this.#kill, failed]);
      }
    } else if (this.#active !== null && failed !== null) {
      this.#kill = [filepath, this.#active, test.id, failed];
      this.#mustBeClean = true;
    } else if (this.#active !== null) {
      write('passed', [filepath, this.#active, test.id]);
    }
  }

  onAfterRunTask(test) {
    super.onAfterRunTask(test);
    rmSync(join(dir, `doing-${process.pid}`), { force: true });
  }

  onAfterRunFiles(files) {
    super.onAfterRunFiles(files);
    const [file] = files;
    if (phase !== 'cover' || file === undefined) return;
    const coverage = world.mutantCoverage ?? { static: {}, perTest: {} };
    const line = `${file.filepath}\t${JSON.stringify(coverage)}\n`;
    appendFileSync(join(dir, 'coverage'), line);
  }

  #fail(error) {
    this.#failure ??= String(error?.message ?? error);
  }
}

/** Fails after so many ticks of this process: one that is stopped, or has to wait for a processor, has none. */
function withLimit(work, ticks) {
  return new Promise((resolve, reject) => {
    let left = ticks;
    const timer = setInterval(() => {
      left -= 1;
      if (left === 0) reject(new Error('does not end'));
    }, TICK_MS);
    Promise.resolve()
      .then(work)
      .then(resolve, reject)
      .finally(() => clearInterval(timer));
  });
}

function write(name, facts) {
  const line = facts.map((fact) => String(fact).replace(/\s+/g, ' ').slice(0, 200)).join('\t');
  appendFileSync(join(dir, name), `${line}\n`);
}

function readLines(name) {
  try {
    return readFileSync(join(dir, name), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t'));
  } catch {
    return [];
  }
}
