/** How the examples speak: what happens and when, on one clock for all processes of a run, and whether it is what was claimed. */
import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_EVERY_MS = 10;
/** Whatever takes longer than this does not happen any more. */
const DEADLINE_MS = 60_000;
const COLOURS = { ana: 36, ben: 33, cleo: 35 };

/** When the run began, on the clock that all processes of a host share. */
process.env.EXAMPLE_START_NS ??= String(process.hrtime.bigint());
const startNs = BigInt(process.env.EXAMPLE_START_NS);
const hasColour = process.stdout.isTTY && !process.env.NO_COLOR;
/** What did not hold. */
export const objections = [];

export function paint(code, text) {
  return hasColour ? `\x1b[${code}m${text}\x1b[0m` : text;
}

/** Milliseconds since the run began. */
export function sinceStartMs() {
  return Number(process.hrtime.bigint() - startNs) / 1e6;
}

export function title(text) {
  console.log(`\n${paint(1, text)}`);
}

export function say(text) {
  console.log(`${time()}    ${text}`);
}

/** What somebody does, or says. */
export function tell(who, text) {
  console.log(`${time()}  ${paint(COLOURS[who] ?? 34, who.padEnd(5))} ${text}`);
}

export function claim(isSo, text) {
  console.log(`${time()}  ${isSo ? paint(32, '✓') : paint(31, '✗')} ${text}`);
  if (!isSo) objections.push(text);
}

/** What `look` gives, once it is neither false nor null nor undefined; how long that took stands in `tookMs`. */
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
  return paint(2, `${(sinceStartMs() / 1_000).toFixed(2).padStart(6)} s`);
}
