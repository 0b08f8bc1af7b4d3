/** Runs Debian's `spin` on `lease.pml`: makes a verifier in C, runs it, and reads what it found. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { definitions, type ModelWorld } from './mistakes.ts';
import { type ModelStep, stepsOf } from './story.ts';

const SOURCE = fileURLToPath(new URL('lease.pml', import.meta.url));
const NAME = 'lease.pml';
/** Of one verifier, in MB. */
const MEMORY_MB = 6_000;
/** The longest way that it follows before it says that it did not see all. */
const DEPTH = 2_000_000;
const COMPILER = ['-w', '-DSAFETY', '-DNOREDUCE', '-DNOBOUNDCHECK', `-DMEMLIM=${MEMORY_MB}`];

export interface ModelResult {
  readonly states: number;
  /** Every state that can be reached was seen, or a violation was found. */
  readonly isComplete: boolean;
  /** What led to the violation; null if there is none. */
  readonly steps: readonly ModelStep[] | null;
}

export interface ModelRun {
  /** A folder for this run alone. */
  readonly folder: string;
  readonly world: ModelWorld;
  /** Its name, or null for the rules as they are. */
  readonly mistake: string | null;
  readonly onProgress?: (states: number) => void;
}

/** Looks at every state of a world. A mistake is looked for in breadth, for its shortest story. */
export async function checkWorld(run: ModelRun): Promise<ModelResult> {
  const { folder, world, mistake, onProgress = () => {} } = run;
  const order = mistake === null ? ['-O2', '-DCOLLAPSE'] : ['-O0', '-DBFS'];
  await cp(SOURCE, join(folder, NAME));
  await execute('spin', [...definitions(world, mistake), '-a', NAME], { folder });
  await execute('gcc', [...COMPILER, ...order, '-o', 'pan', 'pan.c'], { folder });
  const onLine = (line: string) => {
    const states = /States=\s*(\S+)/.exec(line)?.[1];
    if (states !== undefined) onProgress(Number(states));
  };
  const output = await execute('./pan', ['-E', `-m${DEPTH}`], { folder, onLine });
  const hasTrail = existsSync(join(folder, `${NAME}.trail`));
  return {
    states: Number(/(\d\S*) states, stored/.exec(output)?.[1] ?? Number.NaN),
    isComplete: hasTrail || !/not completed|too small/.test(output),
    steps: hasTrail ? stepsOf(await execute('./pan', ['-r'], { folder })) : null,
  };
}

/** One way through a world, by chance. */
export async function walkWorld(
  { folder, world, mistake }: ModelRun,
  { seed, steps }: { readonly seed: number; readonly steps: number },
): Promise<ModelStep[]> {
  await cp(SOURCE, join(folder, NAME));
  const args = [...definitions(world, mistake), `-n${seed}`, `-u${steps}`, NAME];
  return stepsOf(await execute('spin', args, { folder }));
}

function execute(
  program: string,
  args: readonly string[],
  { folder, onLine }: { readonly folder: string; onLine?: (line: string) => void },
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const take = (chunk: string) => {
      output += chunk;
      if (onLine !== undefined) for (const line of chunk.split('\n')) onLine(line);
    };
    child.stdout.setEncoding('utf8').on('data', take);
    child.stderr.setEncoding('utf8').on('data', take);
    child.once('error', reject);
    child.once('close', (code, signal) => {
      const isFailed = signal !== null || (program !== './pan' && code !== 0);
      if (!isFailed) return resolve(output);
      const last = output.trim().split('\n').slice(-10).join('\n');
      reject(new Error(`${program} ended with ${signal ?? code}:\n${last}`));
    });
  });
}
