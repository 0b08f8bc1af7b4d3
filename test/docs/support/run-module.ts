import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { killAtExit } from '../../support/process.ts';
import type { Finding } from '../../support/source-tree.ts';
import { literally } from './expected-output.ts';
import type { ModuleSource } from './module-source.ts';

const MAX_OUTPUT_CHARS = 100_000;
/** Of the output, the end that is shown. */
const SHOWN_LINES = 30;

/** At the deadline it is asked what keeps it, which is what its author wants to know. */
const CONFESSION = `data:text/javascript,${encodeURIComponent(`
process.on('SIGUSR2', () => {
  console.error('What is open: ' + [...new Set(process.getActiveResourcesInfo())].join(', '));
  process.exit(1);
});`)}`;

export interface Surroundings {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** Puts addresses of this page where the reader sees well-known ones. */
  readonly rewrite: (text: string) => string;
}

/** Runs a module as a process of its own, to its end. */
export async function moduleFindings(
  module: ModuleSource,
  { folder, env, rewrite }: Surroundings,
  deadlineMs: number,
): Promise<Finding[]> {
  const file = join(folder, `${module.name}.mjs`);
  const javascript = module.javascript(rewrite);
  if (javascript.findings.length > 0) return javascript.findings;
  writeFileSync(file, javascript.code);
  const { code, output, isLate } = await run(file, folder, env, deadlineMs);
  if (code === 0 && !isLate) return [];
  const said = located(output, module, folder).trimEnd();
  const own = new RegExp(`${literally(module.path)}:(\\d+)`).exec(said)?.[1];
  const what = isLate
    ? `does not end by itself within ${deadlineMs / 1000} s: close what it opens, in <!-- after … -->`
    : `ends with ${code}`;
  const line = Number(own ?? module.blocks[0]?.line);
  const shown = said.split('\n').slice(-SHOWN_LINES).join('\n  ');
  return [{ path: module.path, line, what: `${what}\n  ${shown}` }];
}

interface Run {
  code: number | string | null;
  output: string;
  isLate: boolean;
}

function run(
  file: string,
  cwd: string,
  env: Readonly<Record<string, string>>,
  deadlineMs: number,
): Promise<Run> {
  const args = ['--enable-source-maps', '--import', CONFESSION, file];
  const child = spawn(process.execPath, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  killAtExit(child);
  let output = '';
  let isLate = false;
  const collect = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-MAX_OUTPUT_CHARS);
  };
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  const late = setTimeout(() => {
    isLate = true;
    child.kill('SIGUSR2');
  }, deadlineMs);
  // One that is busy for ever hears no signal.
  const tooLate = setTimeout(() => child.kill('SIGKILL'), deadlineMs + 2_000);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      clearTimeout(late);
      clearTimeout(tooLate);
      resolve({ code: code ?? signal, output, isLate });
    });
  });
}

/** The same with places on the page instead of those in the module. */
function located(output: string, module: ModuleSource, folder: string): string {
  const name = literally(`${module.name}.`);
  const place = new RegExp(`(?:file://)?${literally(folder)}/${name}[jt]s:(\\d+)(?::\\d+)?`, 'g');
  return output.replace(place, (_, line: string) => {
    return `${module.path}:${module.pageLine(Number(line))}`;
  });
}
