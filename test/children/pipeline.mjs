// What a worker runs for a session in tests: it writes down that it lives, and until when, in the form that
// test/support/pipeline-record.ts reads. Times are those of the host's wall clock, by which fences are minted, too.
//
//   pipeline.mjs RECORD [lasts=MS] [code=N] [lines=N] [progress] [stubborn] [forks] [leaves]
//
// It lasts until it gets SIGTERM, or as long as it is told, and ends with the code; `stubborn` does not care for SIGTERM. With `lines` it
// says so many on both outputs first, with `progress` how far it is. `forks`: a child of its group that nothing but SIGKILL ends does the same
// as it does. `leaves`: it ends at once, and that child goes on.
import { spawn } from 'node:child_process';
import { openSync, writeSync } from 'node:fs';

const BEAT_MS = 10;
const [file, ...words] = process.argv.slice(2);
const given = Object.fromEntries(words.map((word) => word.split('=')));
const is = (word) => words.includes(word);

const env = process.env;
const isVod = env.HOLDFAST_SESSION_KIND === 'vod';
const rest = isVod ? `/${env.HOLDFAST_SESSION_PROFILE}/${env.HOLDFAST_SESSION_BUCKET}` : '';
const facts = {
  pid: process.pid,
  leader: Number(given.child ?? process.pid),
  session: env.HOLDFAST_SESSION_ID,
  channel: env.HOLDFAST_SESSION_TARGET + rest,
  slot: env.HOLDFAST_SLOT || null,
  fence: Number(env.HOLDFAST_FENCE),
};
const fd = openSync(file, 'a');
const mark = (what) => {
  const atMs = performance.timeOrigin + performance.now();
  writeSync(fd, `${JSON.stringify({ atMs, what, ...facts })}\n`);
};
const end = () => {
  mark('end');
  process.exit(Number(given.code ?? 0));
};

process.on('SIGTERM', () => {
  mark('SIGTERM');
  if (!is('stubborn')) end();
});
mark(given.child === undefined ? 'begin' : 'beat');
for (let line = 1; line <= Number(given.lines ?? 0); line++)
  (line % 2 ? process.stdout : process.stderr).write(`line ${line}\n`);
if (is('progress')) process.stdout.write('::progress 12 frames\n');
if (is('forks') || is('leaves')) {
  const args = [process.argv[1], file, 'stubborn', `child=${process.pid}`];
  spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] })
    // It says so when it has written its first.
    .stdio[3].once('data', () => is('leaves') && end());
}
if (given.child !== undefined) writeSync(3, 'there');
setInterval(() => mark('beat'), BEAT_MS);
if (given.lasts !== undefined) setTimeout(end, Number(given.lasts));
