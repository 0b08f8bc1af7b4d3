import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

interface Step {
  readonly name: string;
}
interface Steps {
  STEPS: readonly Step[];
  selectSteps(asked: { only?: string[]; skip?: string[] }): readonly Step[];
  isWhole(chosen: readonly Step[]): boolean;
}
interface Facts {
  versionProblem(facts: {
    version: string;
    lockedVersion: string;
    changelog: string;
  }): string | null;
  lockfileProblem(text: string): string | null;
  auditVerdict(output: string): { verdict: string; detail: string };
  scriptProblem(
    name: string,
    scripts: Record<string, string>,
    isThere: (file: string) => boolean,
  ): string | null;
  publishCommand(tarball: string): string;
}

const root = new URL('../', import.meta.url);
const load = (path: string) => import(new URL(`scripts/release/${path}`, root).href);
const { STEPS, selectSteps, isWhole } = (await load('steps.mjs')) as Steps;
const { CHECKS } = (await load('checks.mjs')) as { CHECKS: Record<string, unknown> };
const facts = (await load('facts.mjs')) as Facts;
const names = (steps: readonly Step[]) => steps.map(({ name }) => name);

describe('the steps of a release', () => {
  it('all run by default, and each has something to do', () => {
    expect(selectSteps({})).toEqual(STEPS);
    expect(isWhole(selectSteps({}))).toBe(true);
    expect(Object.keys(CHECKS)).toEqual(names(STEPS));
  });

  it('are taken in their own order, however they are named', () => {
    const chosen = selectSteps({ only: ['audit,tree', 'pack'] });
    expect(names(chosen)).toEqual(['tree', 'pack', 'audit']);
    expect(isWhole(chosen)).toBe(false);
    expect(names(selectSteps({ only: ['pack,audit'], skip: ['pack'] }))).toEqual(['audit']);
    expect(names(selectSteps({ skip: ['test', 'matrix'] }))).not.toContain('matrix');
  });

  it('have to be there, and one has to be left', () => {
    expect(() => selectSteps({ skip: ['tests'] })).toThrow(/no step 'tests': tree, version/);
    expect(() => selectSteps({ only: ['pack'], skip: ['pack'] })).toThrow('no step is left');
  });

  it('say which script is missing', () => {
    const scripts = {
      docs: 'node scripts/docs.mjs dev',
      all: 'node a.mjs && node b.mjs',
      tsc: 'tsc',
    };
    const isThere = (file: string) => file === 'a.mjs';
    const problem = (name: string) => facts.scriptProblem(name, scripts, isThere);
    expect(problem('test')).toContain(`package.json has no script 'test'`);
    expect(problem('docs')).toContain('scripts/docs.mjs, which is not there');
    expect(problem('all')).toContain('b.mjs, which is not there');
    expect(problem('tsc')).toBeNull();
  });
});

describe('what a release is held to', () => {
  const problem = (changelog: string, version = '1.2.0', lockedVersion = version) =>
    facts.versionProblem({ version, lockedVersion, changelog });

  it('is told of under its version, first of all', () => {
    expect(problem('# Changelog\n\n## 1.2.0\n\nText.\n\n## 1.1.0\n')).toBeNull();
    expect(problem('# Changelog\n\n## 1.2.0, 16 November\n')).toBeNull();
  });

  it.each([
    ['what is not released yet', '# Changelog\n\n## Unreleased\n\n## 1.2.0\n', `'Unreleased'`],
    ['an older one', '# Changelog\n\n## 1.1.0\n', `'1.1.0'`],
    ['a later one of the same beginning', '## 1.2.0-rc.1\n', `'1.2.0-rc.1'`],
    ['nothing', '# Changelog\n', `begin it with '## 1.2.0'`],
  ])('is refused where the changelog begins with %s', (_, changelog, said) => {
    expect(problem(changelog)).toContain(said);
  });

  it('is one version in package.json and the lockfile', () => {
    expect(problem('## 1.2.0\n', '1.2.0', '1.1.0')).toContain('package-lock.json at 1.1.0');
  });

  it('is installed from the registry that the user has configured', () => {
    const locked = (resolved: string) =>
      `{ "a": { "version": "1.0.0", "resolved": "${resolved}" } }`;
    expect(facts.lockfileProblem(locked('dashboard'))).toBeNull();
    expect(facts.lockfileProblem(locked('https://packages.example/a.tgz'))).toContain(
      'names packages.example, 1 times',
    );
    expect(facts.lockfileProblem(locked('git+ssh://git@git.example/a.git'))).toContain(
      'git.example',
    );
    expect(
      facts.lockfileProblem(readFileSync(new URL('package-lock.json', root), 'utf8')),
    ).toBeNull();
  });

  it('is clean only by the word of an audit that took place', () => {
    const report = (counts: Record<string, number>, vulnerabilities = {}) =>
      facts.auditVerdict(
        JSON.stringify({ metadata: { vulnerabilities: counts }, vulnerabilities }),
      );
    expect(report({ high: 0, total: 0 }).verdict).toBe('clean');
    expect(report({ high: 2, low: 0, total: 2 }, { hono: {} })).toEqual({
      ...{ verdict: 'findings', detail: '2 high: hono' },
    });
    const refused = JSON.stringify({ message: '405 Method Not Allowed', statusCode: 405 });
    expect(facts.auditVerdict(refused)).toEqual({
      ...{ verdict: 'unasked', detail: '405 Method Not Allowed' },
    });
    const offline = JSON.stringify({ error: { code: 'ENOTFOUND', summary: 'no such host' } });
    expect(facts.auditVerdict(offline)).toEqual({ verdict: 'unasked', detail: 'no such host' });
    expect(facts.auditVerdict('').verdict).toBe('unasked');
    expect(facts.auditVerdict('npm error audit').verdict).toBe('unasked');
  });

  it('is published by one command, as it was checked', () => {
    expect(facts.publishCommand('a/holdfast-1.2.0.tgz')).toBe('npm publish a/holdfast-1.2.0.tgz');
  });
});
