import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const SCRIPT = fileURLToPath(new URL('../../scripts/reference.mjs', import.meta.url));

it('the reference says what the source says: npm run docs:reference writes it again', async () => {
  const checked = promisify(execFile)(process.execPath, [SCRIPT, '--check']);
  await expect(checked).resolves.toEqual({ stdout: '', stderr: '' });
});
