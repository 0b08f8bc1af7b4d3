/**
 * The folder of one demo, and the store in it. It lies in the system's folder for temporary files:
 * on a local disk, and apart from `.holdfast/`, which is the embedded store of the user. So no demo
 * meets another demo or a real fleet.
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

export interface DemoFolder {
  readonly store: Pick<HoldfastConfig, 'store' | 'prefix' | 'quarantine' | 'maxTtl'>;
  /** Only this demo uses the store, and it is removed with the folder. */
  readonly isPrivate: boolean;
  /** Writes the configuration of the instances. Returns its path. */
  configure(config: HoldfastConfig): string;
  remove(): void;
}

/** Ignores the environment and the configuration: a demo uses another store only by flags. */
export function makeDemoFolder({ store, prefix, quarantine, maxTtl }: StoreFlags): DemoFolder {
  removeAbandoned();
  const folder = mkdtempSync(join(tmpdir(), FOLDER));
  const removeFolder = () => rmSync(folder, { recursive: true, force: true });
  // However this process ends. After SIGKILL the next demo removes the folder.
  process.once('exit', removeFolder);
  writeFileSync(join(folder, OWNER), systemHost.self);
  const isPrivate = store === undefined;
  return {
    store: {
      store: store ?? `sqlite:${join(folder, 'holdfast.db')}`,
      prefix: prefix ?? (isPrivate ? '' : `demo-${systemRandom.hex(PREFIX_DIGITS)}:`),
      ...(quarantine !== undefined && { quarantine }),
      ...(maxTtl !== undefined && { maxTtl }),
    },
    isPrivate,
    configure(config) {
      const path = join(folder, 'instance.config.mjs');
      writeFileSync(path, `export default ${JSON.stringify(config, null, 2)};\n`);
      return path;
    },
    remove() {
      process.off('exit', removeFolder);
      removeFolder();
    },
  };
}

/** Removes the folders of demos that were killed. A folder whose owner is unknown stays. */
function removeAbandoned(): void {
  const names = readdirSync(tmpdir()).filter((name) => name.startsWith(FOLDER));
  for (const folder of names.map((name) => join(tmpdir(), name))) {
    try {
      const isOurs = statSync(folder).uid === process.getuid?.();
      const owner = isOurs ? readFileSync(join(folder, OWNER), 'utf8') : '';
      if (/^\d+-\d+$/.test(owner) && !systemHost.isAlive(owner))
        rmSync(folder, { recursive: true, force: true });
    } catch {
      // Another demo is removing it, or has just made it.
    }
  }
}
