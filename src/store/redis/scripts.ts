import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export interface Script {
  readonly verb: string;
  readonly source: string;
  readonly sha: string;
  /** Whether it goes over the connection for leases, where nothing large is read. */
  readonly isAboutLeases: boolean;
}

const STREAM = ['hub', 'lanes'];
const HANDS = [...STREAM, 'mint', 'hands'];
const WORKFLOW = ['hub', 'workflow'];
const INTENT = ['hub', 'intent'];
const START = [...STREAM, 'intent'];
const TENURE = [...STREAM, 'siblings', 'mint', 'workflow', 'parking'];

/** One verb per file in `lua/`; what several need stands in files of its own before them. */
export const scripts = {
  acquire: lease('acquire', ['siblings', 'mint', 'era']),
  claim: lease('claim', ['siblings', 'mint', 'era']),
  renew: lease('renew', ['siblings', 'mint']),
  reassert: lease('reassert', ['siblings', 'mint', 'era']),
  release: lease('release', ['siblings', 'mint', 'wake']),
  transfer: lease('transfer', ['siblings', 'mint']),
  revoke: lease('revoke', ['siblings', 'mint', 'wake']),
  read: lease('read', ['siblings', 'mint']),
  wakeNext: lease('wake-next', ['siblings', 'wake']),
  beat: load('beat'),
  muster: load('muster'),
  look: load('look'),
  get: load('get', ['siblings', 'mint', 'document']),
  put: load('put', ['siblings', 'mint', 'index', 'document']),
  remove: load('remove', ['siblings', 'mint', 'index', 'document']),
  announce: load('announce', ['siblings', 'mint', 'index']),
  retire: load('retire', ['siblings', 'mint', 'index']),
  discover: load('discover', ['siblings', 'mint', 'index', 'document']),
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
  prune: load('prune', START),
  examine: lease('examine', ['mint']),
  format: lease('format'),
  bound: lease('bound'),
  witness: lease('witness'),
  retain: lease('retain', ['mint']),
} as const;

function load(verb: string, before: readonly string[] = []): Script {
  const source = [...before, verb].map(readLua).join('\n');
  const sha = createHash('sha1').update(source).digest('hex');
  return { verb, source, sha, isAboutLeases: false };
}

/** Runs a script where the store's marker is. */
export type RunScript = (script: Script, keys: string[], args: string[]) => Promise<unknown>;

/** What holders depend on to keep their leases, and nothing else. */
function lease(verb: string, before: readonly string[] = []): Script {
  return { ...load(verb, before), isAboutLeases: true };
}

function readLua(name: string): string {
  return readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), 'utf8');
}
