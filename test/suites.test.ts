import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { filesOf, NAMED_FILES } from './support/suites.ts';

describe('the suites', () => {
  it('name only test files that exist', () => {
    expect(NAMED_FILES.filter((path) => !existsSync(path))).toEqual([]);
  });

  it('leave no file out: without a suite, a project has its whole folder', () => {
    expect(filesOf('integration', 'all')).toEqual({
      include: ['test/integration/**/*.test.ts'],
      exclude: [],
    });
    const { include } = filesOf('integration', 'first');
    expect(filesOf('integration', 'rest').exclude).toEqual(include);
  });
});
