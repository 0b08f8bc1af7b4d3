/** What the processes of the demo have in common: one clock, and how they speak. */
const hasColour = process.stdout.isTTY && !process.env.NO_COLOR;
const COLOURS = { ana: 36, ben: 33, cleo: 35 };

/** When the demo began, on the clock that all processes of a host share. */
process.env.DEMO_START_NS ??= String(process.hrtime.bigint());
const startNs = BigInt(process.env.DEMO_START_NS);

export function paint(code, text) {
  return hasColour ? `\x1b[${code}m${text}\x1b[0m` : text;
}

export function say(who, text) {
  const seconds = Number(process.hrtime.bigint() - startNs) / 1e9;
  const time = paint(2, `${seconds.toFixed(2).padStart(6)} s`);
  console.log(`${time}  ${paint(COLOURS[who], who.padEnd(5))} ${text}`);
}
