/** Says what happens, and keeps account of whether it is what was claimed. */
import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_EVERY_MS = 10;
/** Whatever takes longer than this does not happen any more. */
const DEADLINE_MS = 15_000;

const startMs = performance.now();
const hasColour = process.stdout.isTTY && !process.env.NO_COLOR;
const paint = (code, text) => (hasColour ? `\x1b[${code}m${text}\x1b[0m` : text);
/** What did not hold. */
export const objections = [];

export function title(text) {
  console.log(`\n${paint(1, text)}`);
}

export function say(text) {
  console.log(`${time()}    ${text}`);
}

export function claim(isSo, text) {
  console.log(`${time()}  ${isSo ? paint(32, '✓') : paint(31, '✗')} ${text}`);
  if (!isSo) objections.push(text);
}

/** What `look` gives, once it is neither false nor null; how long that took stands in `tookMs` of the second. */
export async function until(what, look) {
  const fromMs = performance.now();
  for (;;) {
    const seen = await look();
    const tookMs = performance.now() - fromMs;
    if (seen) return { seen, tookMs };
    if (tookMs > DEADLINE_MS) throw new Error(`not within ${DEADLINE_MS / 1_000} s: ${what}`);
    await sleep(LOOK_EVERY_MS);
  }
}

export function milliseconds(ms) {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(2)} s`;
}

function time() {
  return paint(2, `${((performance.now() - startMs) / 1_000).toFixed(2).padStart(6)} s`);
}
