import { readFileSync } from 'node:fs';

/** The variables and the command of crontab.txt, which has one line with a time. */
export function readCrontab() {
  const text = readFileSync(new URL('crontab.txt', import.meta.url), 'utf8');
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const variables = lines.flatMap((line) => {
    const [, name, value] = line.match(/^([A-Z_]+)=(.*)$/) ?? [];
    return name === undefined ? [] : [[name, value]];
  });
  const [command] = lines.flatMap((line) => line.match(/^(?:[\d*,/-]+ +){5}(.*)$/)?.[1] ?? []);
  return { env: Object.fromEntries(variables), command };
}
