// Uses a store on a disk that gets full, and has room again later; says what came of each step.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { open } from 'holdfast';
import { say } from './parent.mjs';

const [folder] = process.argv.slice(2);
const filler = join(folder, 'filler');

function fill() {
  // First in large pieces, then in small ones: to the last byte.
  for (const bytes of [65_536, 4_096, 512, 1]) {
    try {
      for (;;) writeFileSync(filler, Buffer.alloc(bytes), { flag: 'a' });
    } catch (error) {
      if (error.code !== 'ENOSPC') throw error;
    }
  }
}

async function outcome(work) {
  try {
    const result = await work();
    return { ok: result.ok };
  } catch (error) {
    return { code: error.code, message: error.message };
  }
}

const holdfast = await open(`sqlite:${join(folder, 'test.db')}`);
say({ event: 'empty', ...(await outcome(() => holdfast.acquire('before'))) });
fill();
const failures = new Set();
for (let n = 0; n < 50; n++) {
  const { code, message } = await outcome(() => holdfast.acquire(`k${n}`));
  if (code !== undefined) failures.add(`${code}: ${message}`);
}
say({ event: 'full', failures: [...failures] });
say({
  event: 'read',
  ...(await outcome(async () => ({ ok: (await holdfast.inspect('before')).kind === 'held' }))),
});
rmSync(filler);
say({ event: 'roomy', ...(await outcome(() => holdfast.acquire('after'))) });
await holdfast.close({ within: 0 });
say({ event: 'closed' });
