/** Runs commands for their result. Their output is kept, and shown only after a failure. */
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Lines of a failed command that are shown at once; the rest is in its log. */
const SHOWN_LINES = 25;

/**
 * Runs a command to its end: `{ code, stdout, output, ms }`, where output is stdout and stderr as they came. `log` is a file
 * that has it all, too. A command that cannot be started has code 127.
 */
export function runCommand(file, args, { cwd, env = process.env, log } = {}) {
  const startMs = performance.now();
  return new Promise((resolve) => {
    const chunks = [];
    const outChunks = [];
    const end = (code) => {
      const output = Buffer.concat(chunks).toString();
      if (log !== undefined) {
        mkdirSync(dirname(log), { recursive: true });
        writeFileSync(log, output);
      }
      const stdout = Buffer.concat(outChunks).toString();
      resolve({ code, stdout, output, ms: performance.now() - startMs });
    };
    const child = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.on('data', (chunk) => chunks.push(chunk) && outChunks.push(chunk));
    child.stderr.on('data', (chunk) => chunks.push(chunk));
    child.once('error', (error) => {
      chunks.push(Buffer.from(`${error.message}\n`));
      end(127);
    });
    child.once('close', (code, signal) => {
      if (signal !== null) chunks.push(Buffer.from(`\nended by ${signal}\n`));
      end(code ?? 1);
    });
  });
}

/** The end of what a command has said, indented. */
export function lastLines(output, count = SHOWN_LINES) {
  const lines = output.trimEnd().split('\n');
  return lines
    .slice(-count)
    .map((line) => `    ${line}`)
    .join('\n');
}

export function seconds(ms) {
  return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}

/** Words to the left, columns apart. */
export function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
