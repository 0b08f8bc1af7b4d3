import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { killAtExit } from '../support/process.ts';

const START = fileURLToPath(new URL('../../scripts/start.mjs', import.meta.url));

it('K-04 K-11 npm start shows a frozen and a killed holder on the embedded store, and that neither does harm', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  try {
    const child = spawn(process.execPath, [START], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    killAtExit(child);
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    const [code] = await once(child, 'close');
    expect(code, output).toBe(0);
    expect(output).toContain('on sqlite:.holdfast/holdfast.db');
    const story = [
      'ana   has it',
      'ben   may not have it: held',
      'ben   has it',
      'cleo  has it',
      'ben   asks first: isHeld() is false',
      'refused: FENCE_STALE',
      'cleo  is dead',
      'ana   has it',
      'as it should be: {"by":"cleo"}',
    ];
    let at = 0;
    for (const line of story) {
      expect(output.slice(at), output).toContain(line);
      at = output.indexOf(line, at) + line.length;
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
