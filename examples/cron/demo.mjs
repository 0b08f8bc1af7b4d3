#!/usr/bin/env node
/** Cron on three machines, with the same line in each crontab: one runs it. Then a machine dies in the middle of it. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Player } from '../staging/player.mjs';
import { stage } from '../staging/stage.mjs';
import { claim, milliseconds, say, sinceStartMs, title, until } from '../staging/telling.mjs';
import { readCrontab } from './crontab.mjs';

const MACHINE = fileURLToPath(new URL('machine.mjs', import.meta.url));
const HOLDFAST = fileURLToPath(new URL('../../dist/lib/cli/bin.js', import.meta.url));
const TTL_MS = 3_000;
/** From being told the time to that time. */
const AHEAD_MS = 300;
const ABOUT = `Three machines with the same line in their crontab (crontab.txt, to copy): at each tick one runs the report, and two say why
they do not. Then one is killed in the middle of it, and the next tick runs elsewhere.`;

await stage({ name: 'cron', about: ABOUT }, async ({ storeEnv, where, folder }) => {
  console.log(`Cron on three machines, on ${where}. In each crontab, which here means the next whole second:

  ${readCrontab().command}

Its leases last ${TTL_MS / 1_000} s here instead of 30 s, so that nobody has to wait that long for one who is dead.`);
  const env = {
    ...storeEnv,
    TTL: `${TTL_MS / 1_000}s`,
    BIN_FOLDER: binFolder(folder),
  };
  const machines = ['ana', 'ben', 'cleo'].map((name) => new Player(MACHINE, name, env));
  for (const machine of machines) await until('a machine', () => machine.last('ready'));

  title('The first night: it is three o’clock on all of them.');
  const first = await tick(machines, join(folder, 'first'));
  await finish(first);

  title('The second night: the machine that runs it is killed with -9 in the middle of it.');
  const second = await tick(machines, join(folder, 'second'));
  await killMachine(second);
  // Not before the lease has run out: a tick before that finds it held by the dead one.
  const third = await tick(
    machines.filter((machine) => machine !== second.runner),
    join(folder, 'third'),
    TTL_MS,
  );
  claim(
    third.fence > second.fence,
    `the next tick runs elsewhere, on ${third.runner.name}, under a higher fence`,
  );
  await finish(third);
});

/** The line is due on all of them in the same second. Resolves when one runs it and the others have said why they do not. */
async function tick(machines, figures, inMs = 0) {
  const atMs = Math.ceil((sinceStartMs() + inMs + AHEAD_MS) / 1_000) * 1_000;
  for (const machine of machines) machine.send({ atMs, figures });
  const lineOf = (machine, text) =>
    machine.heard.find((heard) => heard.figures === figures && text.test(heard.line ?? ''))?.line;
  const { seen: runner } = await until('the report to begin', () =>
    machines.find((machine) => lineOf(machine, /begins the report/)),
  );
  const others = machines.filter((machine) => machine !== runner);
  await until('the others to say why not', () =>
    others.every((other) => lineOf(other, /could not acquire .*: held by/)),
  );
  const begun = machines.filter((machine) => lineOf(machine, /begins the report/));
  claim(
    begun.length === 1,
    `${runner.name} runs the report; may not, and said why: ${others.map(({ name }) => name).join(', ')}`,
  );
  const [, fence, pid] = lineOf(runner, /begins the report/).match(/fence (\d+), process (\d+)/);
  return { runner, others, figures, fence: Number(fence), pid: Number(pid) };
}

/** The figures come, and the report ends. */
async function finish({ runner, others, figures }) {
  say('the figures of the day are there');
  writeFileSync(figures, '19\n23\n');
  for (const machine of [runner, ...others]) {
    const { seen } = await until(`${machine.name} to be done`, () =>
      machine.heard.find((heard) => heard.said === 'done' && heard.figures === figures),
    );
    claim(seen.code === 0, `exit code ${seen.code} on ${machine.name}`);
  }
}

/** Its cron and its `holdfast run` are gone without a word; what ends the report is the supervisor that stands beside it. */
async function killMachine({ runner, pid }) {
  runner.signal('SIGKILL');
  say(`${runner.name} is dead: its cron, and its holdfast run`);
  const { tookMs } = await until('the end of the report', () => !isAlive(pid));
  claim(
    tookMs < TTL_MS,
    `its report was ended ${milliseconds(tookMs)} later, before anybody else could have the lease`,
  );
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Where `holdfast` is, and the Node that it needs, whatever is installed on this host. */
function binFolder(folder) {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  symlinkSync(process.execPath, join(bin, 'node'));
  symlinkSync(HOLDFAST, join(bin, 'holdfast'));
  return bin;
}
