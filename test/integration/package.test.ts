import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The files that would be published, of what is built. */
function packed(): string[] {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const text = execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' });
  const [found] = JSON.parse(text) as [{ files: { path: string }[] }];
  return found.files.map(({ path }) => path);
}

describe('what is published', () => {
  it('is what was built, and what is to be read; nothing else', () => {
    const isPage = (path: string) =>
      /^dist\/dashboard\/(index\.html|assets\/[\w-]+\.(js|css|svg))$/.test(path);
    const isBuilt = (path: string) => isPage(path) || /^dist\/.+\.(js|d\.ts|lua)$/.test(path);
    const others = packed().filter((path) => !isBuilt(path));
    expect(others.sort()).toEqual(['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json']);
  });

  it('has everything that can be imported or run', () => {
    const roots = ['index', 'server/index', 'client/index', 'testing/index', 'cli/bin'];
    const files = [...roots.map((name) => `dist/${name}.js`), 'dist/dashboard/index.html'];
    expect(packed()).toEqual(expect.arrayContaining(files));
  });
});
