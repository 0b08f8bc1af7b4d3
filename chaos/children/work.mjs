// The work of every instance under test: it reads for a while, asks once more, and writes to
// the sink. Everything is written down before it continues: a process may be killed at any moment.
import { openSync, writeSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { pollTarget } from '../../test/children/fleet-poll.mjs';

const TICK_MS = 25;

const hostMs = () => Number(process.hrtime.bigint()) / 1e6;
export const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

export const settings = JSON.parse(process.argv[2]);

const descriptor = openSync(settings.history, 'a');
let who = settings.name;

/** From now on lines carry this name. */
export function identify(id) {
  who = id;
}

export function record(what, facts, atMs = hostMs()) {
  writeSync(descriptor, `${JSON.stringify({ atMs, who, what, ...facts })}\n`);
}

process.on('unhandledRejection', (error) => {
  record('unhandled', { error: String(error?.stack ?? error) });
});

// Stood still: frozen, blocked, or not given a processor. Whatever the reason, nothing was done in that time.
let tickedMs = hostMs();
setInterval(() => {
  const nowMs = hostMs();
  if (nowMs - tickedMs > settings.standstillMs) record('stood.still', { fromMs: tickedMs });
  tickedMs = nowMs;
}, TICK_MS).unref();

const agent = new Agent({ keepAlive: true, maxSockets: 64 });
let polls = 0;
let freezesAtWrite = false;

/** Between the check and the write: what no lease can help, and the sink's fence or `guard` must. */
function freezePoint() {
  if (!freezesAtWrite) return;
  freezesAtWrite = false;
  process.kill(process.pid, 'SIGSTOP');
}

/** One poll; `mayAct` throws where it may not continue. `commit` writes to the user's own database. */
export async function work(target, { signal, fence, mayAct, commit }) {
  const about = { target, fence, poll: ++polls };
  record('poll.began', about);
  try {
    await read(target, fence, signal);
    // Read before asking: a process that is stopped after this has asked later than it says, and never earlier.
    const atMs = hostMs();
    mayAct();
    record('poll.acted', about, atMs);
    // With a database, most freezes hit its transaction.
    if (commit === undefined || Math.random() < 0.2) freezePoint();
    await write({ ...about, by: who });
    if (commit === undefined) return;
    const committing = commit({ target, fence, by: who }, freezePoint);
    await Promise.race([committing, aborted(signal)]);
  } finally {
    record('poll.ended', about);
  }
}

/** From a target server, which sees who else reads there; where there is none, it is a pause. */
function read(target, fence, signal) {
  const url = settings.targetUrls?.[target];
  const [leastMs, mostMs] = settings.readMs;
  if (url !== undefined) return pollTarget(url, { instance: who, fence, signal });
  return sleep(leastMs + Math.random() * (mostMs - leastMs), undefined, { signal });
}

function aborted(signal) {
  return new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}

// Not given the signal: what has been sent will arrive, and the sink says what becomes of it.
function write(body) {
  return new Promise((resolve, reject) => {
    const sent = request(settings.sink, { agent, method: 'POST' }, (response) => {
      response.once('error', reject);
      response.resume().once('end', resolve);
    });
    sent.once('error', reject);
    sent.end(JSON.stringify(body));
  });
}

/** Does what it is told over stdin, one JSON line per command, and ends with the harness. */
export function obey(stop) {
  const lines = createInterface({ input: process.stdin });
  lines.on('line', (line) => {
    const { do: what, ms, isOn } = JSON.parse(line);
    if (what === 'freeze at write') freezesAtWrite = isOn;
    if (what !== 'block') return;
    const untilMs = hostMs() + ms;
    while (hostMs() < untilMs);
  });
  lines.once('close', () => process.exit());
  process.once('SIGTERM', async () => {
    await stop();
    process.exit();
  });
}
