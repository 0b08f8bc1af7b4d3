import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { OURS } from '../contenders.mjs';
import { absolute } from '../report.mjs';
import { median, monotonicMs } from '../statistics.mjs';

const CLI = fileURLToPath(new URL('../../dist/lib/cli/bin.js', import.meta.url));

/** What `holdfast run` adds to a command: time until it has ended, and memory while it runs. */
export const runOverhead = { name: 'holdfast run: overhead', run: measureRun };

async function measureRun(bench) {
  const rows = [];
  for (const [where, url] of Object.entries(bench.urls)) {
    bench.progress(runOverhead.name, where);
    const { wallMs, megabytes } = await overhead(url, bench.plan.runs);
    const row = (measure, unit, figure) => {
      const name = `${runOverhead.name}, ${where}, ${measure}`;
      return { requirement: 'K-13', measure: name, unit, figures: { [OURS.name]: figure } };
    };
    rows.push(
      absolute({ ...row('wall clock', 'ms', wallMs), atMost: 250 }),
      absolute({ ...row('memory of both processes', 'MB', megabytes), atMost: 90 }),
    );
  }
  return rows;
}

async function overhead(url, runs) {
  const under = [];
  const bare = [];
  for (let i = 0; i <= runs; i++) {
    const [with_, without] = [await timed(held(url, ['true'])), await timed(['true'])];
    // The first has the file system read what the others find in memory.
    if (i === 0) continue;
    under.push(with_);
    bare.push(without);
  }
  return { wallMs: median(under) - median(bare), megabytes: await memory(url) };
}

function held(url, command) {
  const options = ['--store', url, '--quarantine', 'off'];
  return [process.execPath, CLI, 'run', 'bench', ...options, '--', ...command];
}

async function timed([file, ...args]) {
  const startMs = monotonicMs();
  const child = spawn(file, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}`);
  return monotonicMs() - startMs;
}

/** What `holdfast run` and its supervisor take from the machine together, if nothing else runs on it. */
async function memory(url) {
  const [file, ...args] = held(url, ['sh', '-c', 'echo $PPID; read _']);
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  try {
    const [line] = await once(createInterface({ input: child.stdout }), 'line');
    const both = [child.pid, Number(line)].map(pagesOf);
    // What is not theirs alone is the program itself, the same for both: it is there once.
    const own = both.reduce((sum, { ownBytes }) => sum + ownBytes, 0);
    return (own + Math.max(...both.map(({ sharedBytes }) => sharedBytes))) / 1e6;
  } finally {
    child.stdin.end('\n');
    await exited;
  }
}

/** What a process has in memory: for itself, and what others may have as well. */
function pagesOf(pid) {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  const bytes = (field) =>
    Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1]) * 1_024;
  const ownBytes = bytes('Private_Clean') + bytes('Private_Dirty');
  return { ownBytes, sharedBytes: bytes('Rss') - ownBytes };
}
