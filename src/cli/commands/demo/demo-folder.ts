/**
 * Where a demo keeps its things: a folder of its own, and a store in it. Not `.holdfast/`: that is what the embedded store of whoever tries
 * this is called, and two demos, or a demo and a fleet that means it, must not find each other. Under the system's folder for what is
 * temporary it is on a local disk, and forgotten by itself if nobody else removes it.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HoldfastConfig } from '../../../config.ts';
import { systemRandom } from '../../../core/random.ts';
import { systemHost } from '../../../worker/supervisor/system-host.ts';
import type { StoreFlags } from '../../context.ts';

const FOLDER = 'holdfast-demo-';
/** Names the process that a folder belongs to. */
const OWNER = 'owner';
const PREFIX_DIGITS = 8;

export class DemoFolder {
  /** How instances, and whoever watches them, are to be told apart from others of the same store. */
  readonly store: Pick<HoldfastConfig, 'store' | 'prefix' | 'quarantine' | 'maxTtl'>;
  /** Nobody else is in it, and it goes with the folder. */
  readonly isPrivate: boolean;
  readonly #folder: string;
  readonly #leave = () => rmSync(this.#folder, { recursive: true, force: true });

  /** Neither environment nor configuration says where: a demo is in nobody's store unless it is told so on the command line. */
  constructor({ store, prefix, quarantine, maxTtl }: StoreFlags) {
    removeAbandoned();
    this.#folder = mkdtempSync(join(tmpdir(), FOLDER));
    // Whatever ends this process, but for SIGKILL: then the next demo removes it.
    process.once('exit', this.#leave);
    writeFileSync(join(this.#folder, OWNER), systemHost.self);
    this.isPrivate = store === undefined;
    this.store = {
      store: store ?? `sqlite:${join(this.#folder, 'holdfast.db')}`,
      prefix: prefix ?? (this.isPrivate ? '' : `demo-${systemRandom.hex(PREFIX_DIGITS)}:`),
      ...(quarantine !== undefined && { quarantine }),
      ...(maxTtl !== undefined && { maxTtl }),
    };
  }

  /** Writes what instances are told, and says where. */
  configure(config: HoldfastConfig): string {
    const path = join(this.#folder, 'instance.config.mjs');
    writeFileSync(path, `export default ${JSON.stringify(config, null, 2)};\n`);
    return path;
  }

  leave(): void {
    process.off('exit', this.#leave);
    this.#leave();
  }
}

/** What demos have left that were killed. Of those of which it can not be told, nothing. */
function removeAbandoned(): void {
  const names = readdirSync(tmpdir()).filter((name) => name.startsWith(FOLDER));
  for (const folder of names.map((name) => join(tmpdir(), name))) {
    try {
      const isOurs = statSync(folder).uid === process.getuid?.();
      const owner = isOurs ? readFileSync(join(folder, OWNER), 'utf8') : '';
      if (/^\d+-\d+$/.test(owner) && !systemHost.isAlive(owner))
        rmSync(folder, { recursive: true, force: true });
    } catch {
      // Another demo removes it just now, or has only just made it.
    }
  }
}
