import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { readTree } from '../support/source-tree.ts';

const SCRIPT = fileURLToPath(new URL('../../scripts/reference.mjs', import.meta.url));
/** About eleven screens. */
const MAX_LINES = 800;

it('the reference says what the source says: npm run docs:reference updates it', async () => {
  const checked = promisify(execFile)(process.execPath, [SCRIPT, '--check']);
  await expect(checked).resolves.toEqual({ stdout: '', stderr: '' });
});

it('no page of the reference is longer than 800 lines; split one in scripts/reference', () => {
  const pages = readTree(['docs/reference'], ['.md']);
  const long = pages.filter(({ text }) => text.split('\n').length > MAX_LINES);
  expect(long.map(({ path }) => path)).toEqual([]);
});
