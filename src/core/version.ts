import { readFileSync } from 'node:fs';

/** Of this package, as its manifest says: the sources and what is built from them are equally deep below it. */
export function packageVersion(): string {
  const path = new URL('../../package.json', import.meta.url);
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
}
