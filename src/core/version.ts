import { readFileSync } from 'node:fs';

/** The version of this package. Sources and built files are equally deep below package.json. */
export function packageVersion(): string {
  const path = new URL('../../package.json', import.meta.url);
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
}
