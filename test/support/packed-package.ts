import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CACHE = join(ROOT, 'node_modules/.cache/holdfast-package');
/** What npm pack says about it, and the name of the file it made. */
const ABOUT = 'pack.json';

export interface PackedFile {
  readonly path: string;
  readonly size: number;
  readonly mode: number;
}

/** The package as it would be published. */
export interface PackedPackage {
  readonly tarball: string;
  readonly files: readonly PackedFile[];
  /** Bytes of the tarball, and of what is in it. */
  readonly size: number;
  readonly unpackedSize: number;
}

/** Packed once for every build, by whichever test file asks first. */
export function packedPackage(): PackedPackage {
  const folder = join(CACHE, fingerprint());
  const found = readPacked(folder) ?? pack(folder);
  if (found === undefined) throw new Error(`npm pack has left nothing in ${folder}`);
  return found;
}

/** Changes with every build, and with everything else that is packed. A build dates its folder by its own start. */
function fingerprint(): string {
  const files = ['dist', 'package.json', 'README.md', 'CHANGELOG.md', 'LICENSE'];
  const pages = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' });
  const paths = [...files, ...pages.map((page) => join('docs', page))];
  const dates = paths.map((path) => `${path} ${statSync(join(ROOT, path)).mtimeMs}`);
  return createHash('sha256').update(dates.join('\n')).digest('hex').slice(0, 16);
}

function readPacked(folder: string): PackedPackage | undefined {
  try {
    const text = readFileSync(join(folder, ABOUT), 'utf8');
    const [about] = JSON.parse(text) as [Omit<PackedPackage, 'tarball'> & { filename: string }];
    return { ...about, tarball: join(folder, about.filename) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Made aside and put in place whole: of two who pack at once, the second takes what the first has made. */
function pack(folder: string): PackedPackage | undefined {
  mkdirSync(CACHE, { recursive: true });
  for (const old of readdirSync(CACHE).filter((name) => /^[0-9a-f]{16}$/.test(name)))
    rmSync(join(CACHE, old), { recursive: true, force: true });
  const staging = mkdtempSync(join(CACHE, 'packing-'));
  try {
    const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', staging];
    const options = { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' } as const;
    writeFileSync(join(staging, ABOUT), execFileSync('npm', args, options));
    renameSync(staging, folder);
  } catch (error) {
    if (readPacked(folder) === undefined) throw error;
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
  return readPacked(folder);
}
