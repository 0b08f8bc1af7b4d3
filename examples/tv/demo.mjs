#!/usr/bin/env node
/**
 * A box with two tuners, and three who want to watch something. `holdfast up` runs as a process of its own and starts a real ffmpeg for
 * each session; what is claimed on the way is looked up on disk, in the store and with the kernel.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { open } from 'holdfast';
import { sweep } from '../staging/sweeping.mjs';
import { claim, milliseconds, objections, say, title, until } from '../staging/telling.mjs';
import { Box } from './box.mjs';
import { requireFfmpeg } from './ffmpeg.mjs';
import { playlistOf } from './playlist.mjs';
import { end, isAlive, processesWith } from './processes.mjs';

const HELP = `npm run example:tv [-- --keep] [--store URL]

A box with two tuners, three channels, and a real ffmpeg for each session: the third is turned away until a tuner is free,
and the worker is killed with -9 while it works. Proves on the way what it claims. Needs Linux, and Debian's ffmpeg, which
it installs if it may.
  --keep        leave the folder with the store, the logs and the HLS files, and say where it is
  --store URL   redis://…, redis+sentinel://…, redis+cluster://… or sqlite:path; also HOLDFAST_STORE. Default: a new
                embedded store in that folder. Elsewhere its keys have a prefix of their own, and are removed at the
                end (with Sentinel and Cluster they stay)
  --help        this text`;

const flags = readArguments();
if (flags.help) {
  console.log(HELP);
  process.exit(0);
}
const hindrance =
  process.platform === 'linux'
    ? requireFfmpeg(console.log)
    : 'This looks into /proc, which only Linux has.';
if (hindrance !== null) {
  console.error(hindrance);
  process.exit(1);
}

const folder = mkdtempSync(join(tmpdir(), 'holdfast-tv-'));
const store =
  flags.store ?? (process.env.HOLDFAST_STORE || `sqlite:${join(folder, 'holdfast.db')}`);
// In a store that others use, too, the example keeps to itself.
const prefix = store.startsWith(`sqlite:${folder}`) ? '' : `tv-${randomBytes(4).toString('hex')}:`;
const box = new Box(folder, { store, prefix });
process.once('exit', () => {
  // Those that were started from here; after an orderly end there are none.
  for (const { pid } of box.processes) end(pid);
  if (!flags.keep) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
])
  process.once(signal, async () => {
    for (const { pid } of box.processes) end(pid);
    await sweep(store, prefix).catch(() => {});
    process.exit(code);
  });

const quiet = { quarantine: 'off', on: { 'store.warned': () => {} } };
const holdfast = await open(store, { prefix, ...quiet }).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
try {
  await perform();
} catch (error) {
  objections.push(error.message);
}
process.exit(await conclude());

async function perform() {
  title('A box with two tuners is switched on.');
  const url = await box.start();
  say(`holdfast up listens on ${url}, process ${box.pid}, worker 'living-room'`);

  title('Three channels are asked for.');
  const one = await run('one');
  const two = await run('two');
  claim(one.slot === 'tuner:1' && two.slot === 'tuner:2', 'one and two run, on a tuner each');
  const refused = await ask('three');
  claim(
    refused.state === 'ENDED' && refused.outcome === 'REJECTED_NO_TUNER',
    `three was accepted, too, and has ended: ${refused.reason}, for both tuners are taken`,
  );
  const again = await box.client.start({ serviceRef: 'one' });
  claim(
    again.replayed && again.sessionId === one.id && ffmpegsOf(one).length === 1,
    `one, asked for again, is the same session, and has one ffmpeg: ${ffmpegsOf(one)[0].pid}`,
  );
  await grows(one, two);

  title('Two is not watched any more.');
  const three = await handOver(two);
  await grows(three);

  title('The worker is killed with -9.');
  await survive(one, three);
  await grows(one, three);

  title('Everything is switched off.');
  await switchOff(one, three);
}

/** Asks for a channel: the session once it runs, or has ended instead. */
async function ask(channel) {
  const { sessionId } = await box.client.start({ serviceRef: channel });
  return box.client.waitFor(sessionId, { until: 'RUNNING', timeout: '10s' });
}

/** Asks for a channel that there is a tuner for. */
async function run(channel) {
  const session = await ask(channel);
  if (session.state !== 'RUNNING')
    throw new Error(`${channel} does not run: ${session.reason} ${JSON.stringify(session.detail)}`);
  const { pid, env } = await ffmpegOf(session);
  const { fence } = await leaseOf(session.slot);
  claim(
    env.HOLDFAST_FENCE === String(fence),
    `${channel} runs on ${session.slot} under fence ${fence}: ffmpeg ${pid}, which was told so`,
  );
  return session;
}

/** Waits until the files on disk are more, and longer. */
async function grows(...sessions) {
  for (const { id, serviceRef } of sessions) {
    const before = playlistOf(folder, id);
    const { seen: after } = await until(`HLS of ${serviceRef}`, () => {
      const now = playlistOf(folder, id);
      return now.parts > Math.max(1, before.parts) && now.bytes > before.bytes && now;
    });
    const anew = after.beginnings > 1 ? `, begun anew ${after.beginnings - 1} ×` : '';
    const from = before.parts === 0 ? '' : `, ${before.parts} of them before`;
    claim(
      true,
      `${serviceRef}: index.m3u8 names ${after.parts} parts${from}, ${kilobytes(after.bytes)}${anew}`,
    );
  }
}

/** Stops a session: its tuner is free, and another may have it. */
async function handOver(session) {
  const { pid } = await ffmpegOf(session);
  const { fence } = await leaseOf(session.slot);
  await box.client.stop(session.id);
  const ended = await box.client.waitFor(session.id, { until: 'ENDED', timeout: '10s' });
  const { code, tookMs } = ended.detail ?? {};
  claim(
    ended.reason === 'R_STOPPED' && !isAlive(pid),
    `two has ended (${ended.reason}): ffmpeg ${pid} is dead, exit code ${code}, after ${milliseconds(tookMs)}`,
  );
  claim((await leaseOf(session.slot)) === undefined, `${session.slot} is free`);
  const three = await run('three');
  const after = await leaseOf(session.slot);
  claim(
    three.slot === session.slot && after.fence > fence,
    `three has ${session.slot} now, under a higher fence than two had`,
  );
  return three;
}

/** Kills the worker, and starts it again. */
async function survive(...sessions) {
  const pids = sessions.flatMap(ffmpegsOf).map(({ pid }) => pid);
  const before = await Promise.all(sessions.map(({ slot }) => leaseOf(slot)));
  say(`process ${box.pid} is killed`);
  await box.kill();
  const { tookMs } = await until('the end of its ffmpegs', () => !pids.some(isAlive));
  claim(true, `its ffmpegs are dead ${milliseconds(tookMs)} later: ${pids.join(', ')}`);
  const leftMs = Math.min(
    ...(await Promise.all(sessions.map(({ slot }) => leaseOf(slot)))).map((l) => l.expiresInMs),
  );
  say(`its leases would last for another ${milliseconds(leftMs)}: nobody gave them back`);
  const startMs = performance.now();
  const url = await box.start();
  say(`it is started again under the same name: process ${box.pid}, ${url}`);
  for (const [i, session] of sessions.entries()) {
    const { pid } = await ffmpegOf(session);
    const now = await box.client.session(session.id);
    const lease = await leaseOf(now.slot);
    claim(
      now.state === 'RUNNING' && lease.fence > before[i].fence,
      `${session.serviceRef} goes on, the same session: ffmpeg ${pid} on ${now.slot}, fence ${lease.fence}`,
    );
  }
  const backMs = performance.now() - startMs;
  claim(backMs < leftMs, `all of that ${milliseconds(backMs)} after the start of the process`);
}

async function switchOff(...sessions) {
  for (const { id, serviceRef } of sessions) {
    await box.client.stop(id);
    const { state, reason } = await box.client.waitFor(id, { until: 'ENDED', timeout: '10s' });
    claim(state === 'ENDED', `${serviceRef} has ended (${reason})`);
  }
  const code = await box.stop();
  claim(code === 0, `holdfast up has stopped, exit code ${code}`);
  const { leases } = await holdfast.list();
  claim(leases.length === 0, `no lease is left${leases.map(({ key }) => ` but ${key}`).join('')}`);
  const { tookMs } = await until('the end of its processes', () => box.processes.length === 0);
  claim(true, `no process is left, ${milliseconds(tookMs)} later`);
}

async function conclude() {
  await box.stop();
  await holdfast.close();
  await sweep(store, prefix);
  if (flags.keep) console.log(`\nThe store, the logs and the HLS files are in ${folder}.`);
  if (objections.length === 0) console.log('\nEverything that was claimed was so.');
  else console.log(`\nNot everything was as it should be:\n  ${objections.join('\n  ')}`);
  return objections.length === 0 ? 0 : 1;
}

function ffmpegsOf({ id }) {
  return processesWith('HOLDFAST_SESSION_ID', id).filter(({ name }) => name === 'ffmpeg');
}

/** Once there is one. */
async function ffmpegOf(session) {
  const { seen } = await until(`ffmpeg of ${session.serviceRef}`, () => ffmpegsOf(session)[0]);
  return seen;
}

/** Undefined where nobody has it. */
async function leaseOf(key) {
  const { leases } = await holdfast.list();
  return leases.find((lease) => lease.key === key);
}

function kilobytes(bytes) {
  return `${Math.round(bytes / 1_000)} kB`;
}

function readArguments() {
  const options = {
    keep: { type: 'boolean' },
    store: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  };
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    console.error(`${error.message}\n\n${HELP}`);
    return process.exit(2);
  }
}
