/** The arguments of a command: those that are numbers are checked, and what makes no sense is said with the help. */
import { parseArgs } from 'node:util';

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
      if (!(value >= 0)) throw new Error(`--${name} is a number, not '${values[name]}'`);
      values[name] = value;
    }
    return values;
  } catch (error) {
    console.error(`${error.message}\n\n${help}`);
    return process.exit(2);
  }
}
