import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cli, privateFolder, type Running, startCli } from './cli.ts';

export const TTL_MS = 3_000;

/**
 * Writes what it is, starts a child, and runs until it is told to stop. If `stubborn` is its first
 * argument, it ignores SIGTERM; if `failing` is, it exits with 3.
 */
const SCRIPT = `#!/bin/sh
if [ "$1" = stubborn ]; then trap '' TERM; fi
if [ "$1" = failing ]; then child=0; else sleep 1000 & child=$!; fi
echo "$$ $child $1 $HOLDFAST_TARGET $HOLDFAST_FENCE \${HOLDFAST_STORE:-none} $HOLDFAST_TARGET_JSON" >> "$RUNS"
if [ "$1" = failing ]; then exit 3; fi
while true; do echo '::progress'; sleep 0.1; done
`;

export interface CommandRecord {
  readonly pid: number;
  readonly child: number;
  readonly word: string;
  readonly target: string;
  readonly fence: number;
  readonly store: string;
  readonly json: { readonly id: string; readonly [field: string]: unknown };
}

export interface CommandGround {
  readonly url: string;
  /** Every command that was started, the oldest first. */
  records(): CommandRecord[];
  /** Those of which a process is alive. */
  alive(): CommandRecord[];
  /** Starts `holdfast up` with commands: `runner` is given the path of the script. */
  start(runner: (script: string) => object): Running;
  run(...args: string[]): ReturnType<typeof cli>;
}

/** A store in a file, a script that writes down its runs, and instances that run it. */
export function commandGround(): CommandGround {
  const folder = privateFolder();
  const runs = join(folder, 'runs.txt');
  const script = join(folder, 'task.sh');
  const url = `sqlite:${join(folder, 'holdfast.db')}`;
  let started = 0;
  writeFileSync(script, SCRIPT, { mode: 0o755 });
  const records = (): CommandRecord[] => {
    if (!existsSync(runs)) return [];
    const text = readFileSync(runs, 'utf8');
    // The last line may be half written.
    const lines = text
      .slice(0, text.lastIndexOf('\n') + 1)
      .split('\n')
      .filter(Boolean);
    return lines.map((line) => {
      const [pid, child, word = '', target = '', fence, store = '', ...json] = line.split(' ');
      const facts = { word, target, store, json: JSON.parse(json.join(' ')) };
      return { pid: Number(pid), child: Number(child), fence: Number(fence), ...facts };
    });
  };
  const alive = () => records().filter(({ pid, child }) => isAlive(pid) || isAlive(child));
  const start = (runner: (script: string) => object) => {
    const timings = { grace: 300, stuckAfter: '5s', backoff: '100ms..1s' };
    const settings = { ...timings, env: { RUNS: runs }, ...runner(script) };
    const all = { roles: ['poller'], ttl: TTL_MS, runner: settings };
    const config = join(folder, `holdfast-${++started}.config.mjs`);
    writeFileSync(config, `export default ${JSON.stringify(all)};\n`);
    return startCli(['up', '--config', config], { at: { url } });
  };
  const run = (...args: string[]) => cli(args, { at: { url } });
  return { url, records, alive, start, run };
}

export function isAlive(pid: number): boolean {
  if (pid === 0) return false;
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Each of so many targets is run by one process. */
export function areRunning(alive: readonly CommandRecord[], count: number): boolean {
  return alive.length === count && new Set(alive.map(({ target }) => target)).size === count;
}

/** The targets that more than one command runs for. */
export function overlapsIn(alive: readonly CommandRecord[]): string[] {
  const targets = alive.map(({ target }) => target);
  return targets.filter((target, i) => targets.indexOf(target) !== i);
}
