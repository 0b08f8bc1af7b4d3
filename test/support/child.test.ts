import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Child, spawnChild } from './child.ts';

const PARROT = `
import { createInterface } from 'node:readline';
const say = (message) => process.stdout.write(JSON.stringify(message) + '\\n');
process.on('SIGTERM', () => process.exit(7));
say({ event: 'ready', args: process.argv.slice(2), colour: process.env.COLOUR });
process.stdout.write('not a message\\n');
console.error('on stderr');
createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line);
  if (message.crash) throw new Error(message.crash);
  say({ event: 'heard', ...message });
});
`;

let dir: string;
let script: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'holdfast-child-'));
  const path = join(dir, 'parrot.mjs');
  writeFileSync(path, PARROT);
  script = pathToFileURL(path).href;
});
afterAll(() => rmSync(dir, { recursive: true }));

async function parrot(): Promise<Child> {
  const child = spawnChild(script);
  await child.next('ready');
  return child;
}

describe('a child process', () => {
  it('gets its arguments and environment', async () => {
    await using child = spawnChild(script, { args: ['a', 'b'], env: { COLOUR: 'green' } });
    expect(await child.next('ready')).toEqual({
      event: 'ready',
      args: ['a', 'b'],
      colour: 'green',
    });
  });

  it('hands out each message once, by name or by content, also those that came before', async () => {
    await using child = await parrot();
    for (const n of [1, 2, 3]) child.send({ n });
    expect(await child.next((message) => message.n === 3)).toMatchObject({ n: 3 });
    expect(await child.next('heard')).toMatchObject({ n: 1 });
    expect(await child.next('heard')).toMatchObject({ n: 2 });
    await expect(child.next('heard', 20)).rejects.toThrow("did not say 'heard' within 20 ms");
    expect(child.received.map(({ n }) => n)).toEqual([undefined, 1, 2, 3]);
  });

  it('says nothing while frozen and catches up when thawed', async () => {
    await using child = await parrot();
    await child.freeze();
    child.send({ n: 1 });
    await expect(child.next('heard', 50)).rejects.toThrow('still running');
    await child.thaw();
    expect(await child.next('heard')).toMatchObject({ n: 1 });
  });

  it('ends at once when killed, frozen or not', async () => {
    const child = await parrot();
    await child.freeze();
    expect(await child.kill()).toEqual({ code: null, signal: 'SIGKILL' });
    expect(await child.kill()).toEqual({ code: null, signal: 'SIGKILL' });
    expect(() => child.send({})).toThrow('has ended');
  });

  it('can be asked to end, and waited for', async () => {
    await using child = await parrot();
    await expect(child.exit(20)).rejects.toThrow('did not end within 20 ms');
    child.signal('SIGTERM');
    expect(await child.exit()).toEqual({ code: 7, signal: null });
  });

  it('that dies fails the wait for its next message at once, with its last words', async () => {
    await using child = await parrot();
    child.send({ crash: 'wings fell off' });
    const waiting = child.next('heard');
    await expect(waiting).rejects.toThrow(/ended without 'heard' \(ended with code 1\)/);
    await expect(child.next('heard')).rejects.toThrow('wings fell off');
    expect(child.stderr).toContain('not a message\n');
  });

  it('that can not be started is an error with its name', async () => {
    await using child = spawnChild('no-such-child.mjs');
    await expect(child.next('ready')).rejects.toThrow('no-such-child.mjs ended without');
  });
});
