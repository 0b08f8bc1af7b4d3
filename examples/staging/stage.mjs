/** Where an example plays: what it was told, its store, a folder of its own; and that nothing of it stays, however it ends. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { open } from 'holdfast';
import { killAll } from './player.mjs';
import { sweep } from './sweeping.mjs';
import { objections, paint } from './telling.mjs';

const STORE_HELP = `  --store URL   redis://…, rediss://…, redis+sentinel://…, redis+cluster://… or sqlite:path; also HOLDFAST_STORE.
                Default: a new embedded store that is removed at the end. Elsewhere its keys have a prefix of
                their own, and are removed, too (with Sentinel and Cluster they stay)
  --help        this text`;

/** A signal ends the process, and what fails because of that is no objection. */
let isInterrupted = false;

/**
 * Plays `play({ flags, store, prefix, storeEnv, where, folder })`, which says what it claims, and ends the process: 0 if all of it was so, 1 if not.
 * `about` is the text of `--help`, without what all examples have.
 */
export async function stage({ name, about, options = {} }, play) {
  const flags = readArguments(name, about, options);
  const folder = mkdtempSync(join(tmpdir(), `holdfast-${name}-`));
  const isEmbedded = flags.store === undefined;
  const store = flags.store ?? `sqlite:${join(folder, 'holdfast.db')}`;
  // In a store that others use, too, the example keeps to itself.
  const prefix = isEmbedded ? '' : `${name}-${randomBytes(4).toString('hex')}:`;
  const where = isEmbedded ? 'a new embedded store' : withoutPassword(store);
  // For processes of this run. No quarantine: nothing is at stake after a restart of the store.
  const storeEnv = { HOLDFAST_STORE: store, HOLDFAST_PREFIX: prefix, HOLDFAST_QUARANTINE: 'off' };
  leaveNothing({ folder, store, prefix });
  await requireStore(store, prefix);
  try {
    await play({ flags, store, prefix, storeEnv, where, folder });
  } catch (error) {
    objections.push(error.message);
  }
  // The listener of the signal ends the process.
  if (isInterrupted) return;
  killAll();
  await sweep(store, prefix).catch((error) => objections.push(error.message));
  process.exit(conclude());
}

function leaveNothing({ folder, store, prefix }) {
  process.once('exit', () => {
    killAll();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ])
    process.once(signal, async () => {
      isInterrupted = true;
      killAll();
      await sweep(store, prefix).catch(() => {});
      process.exit(code);
    });
}

/** A store that is not there is said once, and not by every process of the run. */
async function requireStore(store, prefix) {
  try {
    await (await open(store, { prefix, quarantine: 'off' })).close();
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}

function conclude() {
  if (objections.length === 0) {
    console.log(paint(32, '\nEverything that was claimed was so.'));
    return 0;
  }
  console.log(paint(31, `\nNot everything was as it should be:\n  ${objections.join('\n  ')}`));
  return 1;
}

function readArguments(name, about, options) {
  const help = `npm run example:${name} [-- --store URL]\n\n${about}\n${STORE_HELP}`;
  const known = { ...options, store: { type: 'string' }, help: { type: 'boolean', short: 'h' } };
  try {
    const { values } = parseArgs({ options: known });
    if (!values.help)
      return { ...values, store: values.store ?? (process.env.HOLDFAST_STORE || undefined) };
    console.log(help);
    return process.exit(0);
  } catch (error) {
    console.error(`${error.message}\n\n${help}`);
    return process.exit(2);
  }
}

function withoutPassword(address) {
  return address.replace(/\/\/[^@/]*@/, '//…@');
}
