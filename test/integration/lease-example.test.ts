import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { privateFolder, startProgram } from './support/cli.ts';

const START = fileURLToPath(new URL('../../scripts/start.mjs', import.meta.url));

describe('the example of a lease', () => {
  it('K-04 K-11 shows a frozen and a killed holder, and that neither does harm', async () => {
    const cwd = privateFolder();
    await using demo = startProgram(process.execPath, [START, 'lease'], { cwd });
    const { code, stdout, stderr } = await demo.end();
    const output = `${stdout}${stderr}`;
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
  });
});
