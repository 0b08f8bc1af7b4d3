import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export interface Script {
  readonly verb: string;
  readonly source: string;
  readonly sha: string;
}

/** One verb per file in `lua/`; what several need stands in files of its own before them. */
export const scripts = {
  acquire: load('acquire', ['mint']),
  renew: load('renew'),
  reassert: load('reassert', ['mint']),
  release: load('release', ['mint', 'wake']),
  transfer: load('transfer', ['mint']),
  revoke: load('revoke', ['mint', 'wake']),
  read: load('read', ['mint']),
  forgo: load('forgo', ['wake']),
  put: load('put'),
  examine: load('examine', ['mint']),
} as const;

function load(verb: string, before: readonly string[] = []): Script {
  const source = [...before, verb].map(readLua).join('\n');
  return { verb, source, sha: createHash('sha1').update(source).digest('hex') };
}

function readLua(name: string): string {
  return readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), 'utf8');
}
