import { execFileSync, spawn } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { packedPackage, ROOT } from './packed-package.ts';
import { atExit, killAtExit } from './process.ts';

const LOADER = join(ROOT, 'test/children/loaded-modules.mjs');

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Somebody's project with this package installed in it, from the tarball: only what a user has is to be found there. What
 * the package depends on is linked from this repository, so that nothing has to be fetched; `others` are linked, too.
 */
export class Consumer {
  readonly folder: string;

  constructor({ others = [] }: { others?: readonly string[] } = {}) {
    // Where it really is: Node tells of modules by their real paths.
    this.folder = realpathSync(mkdtempSync(join(tmpdir(), 'holdfast-consumer-')));
    atExit(() => rmSync(this.folder, { recursive: true, force: true }));
    this.write('package.json', JSON.stringify({ name: 'consumer', private: true }));
    mkdirSync(this.installed, { recursive: true });
    const unpack = ['xzf', packedPackage().tarball, '--strip-components=1', '-C', this.installed];
    execFileSync('tar', unpack);
    const { dependencies, optionalDependencies } = JSON.parse(
      readFileSync(join(this.installed, 'package.json'), 'utf8'),
    ) as Record<'dependencies' | 'optionalDependencies', Record<string, string>>;
    const all = { ...dependencies, ...optionalDependencies };
    for (const name of [...Object.keys(all), ...others]) this.#link(name);
  }

  /** Where the package is. */
  get installed(): string {
    return join(this.folder, 'node_modules/holdfast');
  }

  /** A real path, which leads back to what the linked package itself depends on, and to nothing of the consumer's. */
  #link(name: string): void {
    const place = join(this.folder, 'node_modules', name);
    mkdirSync(dirname(place), { recursive: true });
    symlinkSync(realpathSync(join(ROOT, 'node_modules', name)), place, 'dir');
  }

  write(path: string, text: string): string {
    const place = join(this.folder, path);
    mkdirSync(dirname(place), { recursive: true });
    writeFileSync(place, text);
    return place;
  }

  /** Runs a program of this Node's in the project. */
  node(args: readonly string[], env: Record<string, string> = {}): Promise<Ran> {
    const child = spawn(process.execPath, args, {
      cwd: this.folder,
      env: { PATH: process.env.PATH, HOME: this.folder, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    killAtExit(child);
    const said = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr'] as const)
      child[stream].on('data', (chunk: Buffer) => {
        said[stream] += chunk.toString();
      });
    return new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => resolve({ code, ...said }));
    });
  }

  /** Runs a module with this text. */
  run(text: string, extension: 'mjs' | 'cjs' = 'mjs'): Promise<Ran> {
    return this.node([this.write(`program-${nextNumber()}.${extension}`, text)]);
  }

  /** What is loaded by a module with this text: `node:fs`, `hono/dist/index.js`, `holdfast/dist/index.js`. */
  async loadedBy(text: string): Promise<string[]> {
    const program = this.write(`program-${nextNumber()}.mjs`, text);
    const list = `${program}.loaded`;
    appendFileSync(list, '');
    const ran = await this.node(['--import', LOADER, program], { LOADED_MODULES: list });
    if (ran.code !== 0) throw new Error(`it ended with ${ran.code}: ${ran.stderr}`);
    const lines = readFileSync(list, 'utf8').split('\n').filter(Boolean);
    return [...new Set(lines.map(nameOf))].filter((name) => !name.includes('program-')).sort();
  }
}

let programs = 0;
function nextNumber(): number {
  programs += 1;
  return programs;
}

/** Without the path before the package that it belongs to. */
function nameOf(url: string): string {
  return url.replace(/^.*\/node_modules\//, '');
}
