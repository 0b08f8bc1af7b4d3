/** The box: `holdfast up` as a process of its own, which accepts requests and runs what was asked for on its tuners. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { HoldfastClient } from 'holdfast/client';
import { until } from '../staging/telling.mjs';
import { processesWith } from './processes.mjs';

const BIN = fileURLToPath(new URL('../../dist/lib/cli/bin.js', import.meta.url));
const LEASH = new URL('../staging/leash.mjs', import.meta.url).href;
const CONFIG = fileURLToPath(new URL('holdfast.config.mjs', import.meta.url));

export class Box {
  client = null;
  store;
  #folder;
  #prefix;
  #token = randomBytes(24).toString('hex');
  #child = null;
  #starts = 0;

  constructor(folder, { store, prefix }) {
    this.#folder = folder;
    this.store = store;
    this.#prefix = prefix;
  }

  get pid() {
    return this.#child.pid;
  }

  /** Where it listens. */
  async start() {
    const log = join(this.#folder, `up-${++this.#starts}.log`);
    const output = openSync(log, 'a');
    const flags = ['--config', CONFIG, '--prefix', this.#prefix, '--port', '0'];
    this.#child = spawn(process.execPath, ['--import', LEASH, BIN, 'up', ...flags], {
      cwd: this.#folder,
      env: {
        ...environment(),
        TV_FOLDER: this.#folder,
        HOLDFAST_API_TOKEN: this.#token,
        ...this.#storeEnv,
      },
      // On a leash: it would keep its name, and with it every later run, if this were killed.
      stdio: ['ignore', output, output, 'ipc'],
      detached: true,
    });
    closeSync(output);
    const { seen: url } = await until('holdfast up listens', () => this.#urlIn(log));
    await until('holdfast up is ready', () => isReady(url));
    this.client = new HoldfastClient({ url, token: this.#token });
    return url;
  }

  /** In the environment: an address may have a password, and everybody on a host can read arguments. */
  get #storeEnv() {
    return { HOLDFAST_STORE: this.store, HOLDFAST_QUARANTINE: 'off' };
  }

  /** SIGKILL: nothing is stopped, nothing is given back. */
  async kill() {
    this.#child.kill('SIGKILL');
    await this.#exited();
  }

  /** As whoever runs it stops it; its exit code. */
  async stop() {
    this.#child?.kill('SIGTERM');
    return this.#exited();
  }

  /** Processes that it has started, and that have started others. */
  get processes() {
    return processesWith('TV_FOLDER', this.#folder);
  }

  async #exited() {
    const child = this.#child;
    if (child === null) return null;
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    return child.exitCode;
  }

  /** Once it says so; throws what it said if it has ended instead. */
  #urlIn(path) {
    const text = readFileSync(path, 'utf8');
    if (this.#child.exitCode !== null) throw new Error(`holdfast up has ended:\n${text}`);
    const lines = text.split('\n').filter((line) => line.startsWith('{') && line.endsWith('}'));
    return lines.map((line) => JSON.parse(line)).find((line) => line.url !== undefined)?.url;
  }
}

async function isReady(url) {
  return (await fetch(`${url}/readyz`)).ok;
}

/** Without what would change what `holdfast` does. */
function environment() {
  const isTheirs = ([name]) => !/^(HOLDFAST|XG2G)_/.test(name);
  return Object.fromEntries(Object.entries(process.env).filter(isTheirs));
}
