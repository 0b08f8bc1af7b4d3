import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export interface Script {
  readonly verb: string;
  readonly source: string;
  readonly sha: string;
}

const STREAM = ['hub', 'lanes'];
const HANDS = [...STREAM, 'mint', 'hands'];
const WORKFLOW = ['hub', 'workflow'];
const INTENT = ['hub', 'intent'];
const START = [...STREAM, 'intent'];
const TENURE = [...STREAM, 'siblings', 'mint', 'workflow', 'parking'];

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
  trim: load('trim', ['mint', 'log']),
  enqueue: load('enqueue', STREAM),
  consume: load('consume', HANDS),
  extend: load('extend', HANDS),
  ack: load('ack', HANDS),
  retry: load('retry', HANDS),
  bury: load('bury', HANDS),
  begin: load('begin', [...TENURE, 'relay']),
  emit: load('emit', [...STREAM, 'workflow']),
  update: load('update', WORKFLOW),
  mark: load('mark', WORKFLOW),
  unpark: load('unpark', [...STREAM, 'workflow', 'parking']),
  handoff: load('handoff', TENURE),
  depose: load('depose', [...TENURE, 'wake']),
  take: load('take', [...HANDS, 'workflow']),
  reserve: load('reserve', [...HANDS, 'workflow']),
  settle: load('settle', [...HANDS, 'workflow']),
  revive: load('revive', [...STREAM, 'workflow']),
  snapshot: load('snapshot', WORKFLOW),
  forget: load('forget', [...STREAM, 'workflow', 'parking']),
  start: load('start', START),
  stop: load('stop', INTENT),
  progress: load('progress', INTENT),
  republish: load('republish', START),
  view: load('view', INTENT),
  browse: load('browse', INTENT),
  prune: load('prune', INTENT),
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
