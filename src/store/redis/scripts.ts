import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export interface Script {
  readonly verb: string;
  readonly source: string;
  readonly sha: string;
}

/** One verb per file in `lua/`; what several need stands in files of its own before them. */
export const scripts = {
  acquire: load('acquire', ['siblings', 'mint']),
  renew: load('renew'),
  reassert: load('reassert', ['siblings', 'mint']),
  release: load('release', ['siblings', 'mint', 'wake']),
  transfer: load('transfer', ['siblings', 'mint']),
  revoke: load('revoke', ['siblings', 'mint', 'wake']),
  read: load('read', ['siblings', 'mint']),
  forgo: load('forgo', ['siblings', 'wake']),
  beat: load('beat'),
  muster: load('muster'),
  look: load('look'),
  get: load('get', ['siblings', 'document']),
  put: load('put', ['siblings', 'mint', 'index', 'document']),
  remove: load('remove', ['siblings', 'mint', 'index', 'document']),
  announce: load('announce', ['siblings', 'mint', 'index']),
  retire: load('retire', ['siblings', 'mint', 'index']),
  discover: load('discover', ['siblings', 'mint', 'index']),
  changes: load('changes', ['siblings', 'mint', 'index']),
  append: load('append', ['mint', 'log']),
  follow: load('follow', ['mint', 'log']),
  recall: load('recall', ['mint', 'log']),
  examine: load('examine', ['mint']),
  format: load('format'),
} as const;

function load(verb: string, before: readonly string[] = []): Script {
  const source = [...before, verb].map(readLua).join('\n');
  return { verb, source, sha: createHash('sha1').update(source).digest('hex') };
}

function readLua(name: string): string {
  return readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), 'utf8');
}
