import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { describe, expect, it } from 'vitest';
import { packedPackage, ROOT } from '../support/packed-package.ts';

/** The package measured 1.72 MB packed and 6.07 MB unpacked on 19 November 2026. */
const MOST_PACKED_BYTES = 1_750_000;
const MOST_UNPACKED_BYTES = 6_200_000;
/** Without optional dependencies; measured: 4 packages and 12.6 MB. */
const MOST_LEAN_PACKAGES = 20;
const MOST_LEAN_BYTES = 15_000_000;
const EXECUTABLE = 0o111;
/** Somebody else's program, on a machine that does something else, too. */
const SLOW = { timeout: 120_000 };

interface Manifest {
  readonly bin: Record<string, string>;
  readonly exports: Record<string, string | Record<string, string>>;
  readonly dependencies: Record<string, string>;
}

const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;
const packed = packedPackage();
const paths = packed.files.map(({ path }) => path);

describe('what is published', () => {
  it('is what was built, and what is to be read; nothing else', () => {
    const isPage = (path: string) =>
      /^dist\/lib\/dashboard\/(index\.html|assets\/[\w-]+\.(js|css|svg))$/.test(path);
    const isBuilt = (path: string) =>
      isPage(path) || /^dist\/lib\/(.+\.(js|d\.ts|lua|sql)|LICENSES\.txt)$/.test(path);
    const isGuide = (path: string) =>
      /^docs\/(?:(?:coming-from|concepts|guides|reference)\/)?[\w-]+\.md$|^docs\/(alerts|grafana)\/|^docs\/images\/[\w-]+\.svg$/.test(
        path,
      );
    const others = paths.filter((path) => !isBuilt(path) && !isGuide(path));
    expect(others.sort()).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'clients/bash/holdfast-http.sh',
      'clients/go/go.mod',
      'clients/go/holdfast.go',
      'clients/python/holdfast_http.py',
      // What `holdfast run` loads is CommonJS, which starts sooner.
      'dist/lib/cli/package.json',
      'package.json',
    ]);
  });

  it('has neither sources nor maps that would lead to them', () => {
    expect(paths.filter((path) => /\.map$|(?<!\.d)\.ts$|\.tsx$|\.test\./.test(path))).toEqual([]);
    const linked = paths
      .filter((path) => path.endsWith('.js'))
      .filter((path) => readFileSync(join(ROOT, path), 'utf8').includes('//# sourceMappingURL='));
    expect(linked).toEqual([]);
  });

  it('has everything that can be imported or run', () => {
    const targets = Object.values(manifest.exports)
      .flatMap((target) => (typeof target === 'string' ? [target] : Object.values(target)))
      .map((target) => target.replace(/^\.\//, ''));
    const files = [...targets, ...Object.values(manifest.bin), 'dist/lib/dashboard/index.html'];
    expect(files.filter((file) => !paths.includes(file))).toEqual([]);
  });

  // Whoever reads an error or the README has the package, and not the repository. That links lead anywhere is seen to elsewhere.
  it('has the pages that its messages and the README send people to', () => {
    const isBuilt = (path: string) =>
      path.endsWith('.js') && !path.startsWith('dist/lib/dashboard/');
    const texts = ['README.md', ...paths.filter(isBuilt)].map((path) =>
      readFileSync(join(ROOT, path), 'utf8'),
    );
    const named = texts.flatMap(
      (text) => text.match(/\bdocs\/(?!decisions\/)[\w/-]+\.md\b/g) ?? [],
    );
    const pages = [...new Set(named)].filter((page) => existsSync(join(ROOT, page)));
    expect(pages.length).toBeGreaterThan(0);
    expect(pages.filter((page) => !paths.includes(page))).toEqual([]);
  });

  it('has every declaration that another one imports', () => {
    const declarations = paths.filter((path) => path.endsWith('.d.ts'));
    const imported = declarations.flatMap((path) => {
      const text = readFileSync(join(ROOT, path), 'utf8');
      const names = text.matchAll(/(?:from |import\()['"](\.[^'"]+)\.[jt]s['"]/g);
      return [...names].map(([, name]) => `${join(dirname(path), String(name))}.d.ts`);
    });
    expect(imported.length).toBeGreaterThan(100);
    expect(imported.filter((path) => !paths.includes(path))).toEqual([]);
  });

  it('has the licence of each package that is bundled', () => {
    const text = readFileSync(join(ROOT, 'dist/lib/LICENSES.txt'), 'utf8');
    for (const name of ['commander', 'prom-client', 'tdigest', 'bintrees'])
      expect(text).toMatch(new RegExp(`^${name} \\d+\\.\\d+`, 'm'));
  });

  it('has commands that can be run', () => {
    const commands = packed.files.filter(({ path }) => Object.values(manifest.bin).includes(path));
    expect(commands.map(({ mode }) => mode & EXECUTABLE)).toEqual([EXECUTABLE]);
  });

  it('is not much larger than it was', () => {
    expect(packed.size).toBeLessThan(MOST_PACKED_BYTES);
    expect(packed.unpackedSize).toBeLessThan(MOST_UNPACKED_BYTES);
  });
});

/** What npm installs without optional dependencies: the folder of each package. */
function leanInstall(names: readonly string[], found = new Set<string>()): Set<string> {
  for (const name of names) {
    const folder = join(ROOT, 'node_modules', name);
    if (found.has(folder)) continue;
    found.add(folder);
    const { dependencies = {} } = JSON.parse(
      readFileSync(join(folder, 'package.json'), 'utf8'),
    ) as Partial<Manifest>;
    leanInstall(Object.keys(dependencies), found);
  }
  return found;
}

function filesOf(folder: string): string[] {
  const all = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return all.map((path) => join(folder, path)).filter((path) => statSync(path).isFile());
}

describe('a lean install', () => {
  const folders = leanInstall(Object.keys(manifest.dependencies));
  const files = [...folders].flatMap(filesOf);

  it('has few packages, which are small', () => {
    const others = files.reduce((sum, file) => sum + statSync(file).size, 0);
    expect(folders.size + 1).toBeLessThanOrEqual(MOST_LEAN_PACKAGES);
    expect(others + packed.unpackedSize).toBeLessThan(MOST_LEAN_BYTES);
  });

  it('has no native binary', () => {
    expect(files.filter((file) => /\.(node|so|dll|dylib)$/.test(file))).toEqual([]);
  });
});

describe('those who look at packages', () => {
  it('publint has nothing to say', async () => {
    const bytes = readFileSync(packed.tarball);
    const tarball = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
    const { messages, pkg } = await publint({ pack: { tarball }, level: 'suggestion' });
    expect(messages.map((message) => formatMessage(message, pkg))).toEqual([]);
  });

  // There is no CommonJS in it: the profile says so. From CommonJS it is reached by require(esm), which attw does not know of; package-imports.test.ts does.
  it('attw finds the types right for ES modules', SLOW, async () => {
    const attw = join(ROOT, 'node_modules/.bin/attw');
    const args = [packed.tarball, '--profile', 'esm-only', '--format', 'json'];
    const { stdout } = await promisify(execFile)(attw, args, { maxBuffer: 64 << 20 });
    const { problems } = JSON.parse(stdout) as { problems: Record<string, unknown[]> };
    const known = ['CJSResolvesToESM'];
    expect(Object.keys(problems).filter((kind) => !known.includes(kind))).toEqual([]);
    const ignored = Object.values(problems).flat() as { resolutionKind: string }[];
    const kinds = new Set(ignored.map(({ resolutionKind }) => resolutionKind));
    expect([...kinds]).toEqual(['node16-cjs']);
  });
});
