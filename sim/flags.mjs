/**
 * The arguments of a command: those that are numbers are checked, and what makes no sense is said with the help. A run of nothing,
 * or by nobody, would find nothing and look like a good one.
 */
import { parseArgs } from 'node:util';

/** Of these a part is enough; others are counted. */
const FRACTIONS = new Set(['hours', 'world']);

export function readFlags(help, { numbers, booleans, strings = [] }) {
  const options = {};
  for (const name of [...numbers, ...strings]) options[name] = { type: 'string' };
  for (const name of [...booleans, 'help', 'json'])
    options[name] = { type: 'boolean', default: false };
  try {
    const { values } = parseArgs({ options });
    if (values.help) {
      console.log(help);
      process.exit(0);
    }
    for (const name of numbers) {
      if (values[name] === undefined) continue;
      const value = Number(values[name]);
      const isRight = FRACTIONS.has(name) ? value > 0 : Number.isSafeInteger(value) && value > 0;
      if (!isRight && !(name === 'seed' && values.seed === '0'))
        throw new Error(`--${name} is a number above 0, not '${values[name]}'`);
      values[name] = value;
    }
    return values;
  } catch (error) {
    console.error(`${error.message}\n\n${help}`);
    return process.exit(2);
  }
}
