import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { PROBLEMS, type ProblemName } from '../../src/server/http/problem.ts';

const page = readFileSync(new URL('../../docs/problems.md', import.meta.url), 'utf8');
const sections = new Map(
  page
    .split(/^## /m)
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf('\n')), section]),
);

describe('the page of problems', () => {
  it('has a section for each there is, and for nothing else', () => {
    expect([...sections.keys()]).toEqual(Object.keys(PROBLEMS));
  });

  it.each(Object.keys(PROBLEMS) as ProblemName[])('says what %s is, and what to do', (name) => {
    const { status, title, when, advice } = PROBLEMS[name];
    const code = name.toUpperCase().replaceAll('-', '_');
    const [, first, ...rest] = (sections.get(name) ?? '').trim().split('\n\n');
    expect(first).toBe(`${status} \`${code}\`: ${title}.`);
    // As the server's own page of it has it.
    expect(rest).toEqual([when, advice]);
  });
});
