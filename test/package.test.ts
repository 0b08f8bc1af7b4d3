import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

interface Locked {
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly hasInstallScript?: boolean;
}

const lockfile = readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8');
const { packages } = JSON.parse(lockfile) as { packages: Record<string, Locked> };
/** What is installed with this package, wherever it is used. */
const installed = Object.entries(packages).filter(
  ([path, { dev, devOptional }]) => path !== '' && !dev && !devOptional,
);

describe('what is installed with this package', () => {
  it('runs no program of its own while it is', () => {
    expect(installed.length).toBeGreaterThan(0);
    expect(installed.filter(([, { hasInstallScript }]) => hasInstallScript)).toEqual([]);
  });

  it('comes from the registry that the user has configured', () => {
    expect(lockfile).not.toMatch(/"resolved": "(?!dashboard")|https?:\/\/[^"]*registry/);
  });
});
