import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export interface Script {
  /** The verb, as errors name it. */
  readonly operation: string;
  readonly source: string;
  readonly sha: string;
  /** Whether it goes over the lease connection, on which no large value is read. */
  readonly isAboutLeases: boolean;
}

/** Runs a script where the store's marker is. */
export type RunScript = (script: Script, keys: string[], args: string[]) => Promise<unknown>;

/** Every script: `lua/<noun>/<verb>.lua`, called after the port's verb. */
const NAMES = [
  'lease/acquire',
  'lease/claim',
  'lease/renew',
  'lease/reassert',
  'lease/release',
  'lease/transfer',
  'lease/revoke',
  'lease/read',
  'lease/wake-next',
  'member/beat',
  'member/list',
  'member/read',
  'record/get',
  'record/put',
  'record/remove',
  'record/announce',
  'record/retire',
  'record/discover',
  'record/changes',
  'log/append',
  'log/read',
  'log/recall',
  'log/trim',
  'stream/append',
  'stream/consume',
  'stream/extend',
  'stream/ack',
  'stream/retry',
  'stream/bury',
  'workflow/begin',
  'workflow/emit',
  'workflow/update',
  'workflow/mark-read',
  'workflow/unpark',
  'workflow/handoff',
  'workflow/revoke',
  'workflow/take',
  'workflow/reserve',
  'workflow/settle',
  'workflow/revive',
  'workflow/read',
  'workflow/remove',
  'run/start',
  'run/due',
  'run/load',
  'run/read',
  'run/keep',
  'run/signal',
  'run/pause',
  'run/restart',
  'intent/start',
  'intent/stop',
  'intent/advance',
  'intent/republish',
  'intent/read',
  'intent/list',
  'intent/prune',
  'server/examine',
  'server/format',
  'server/change-bounds',
  'server/record-witness',
  'server/retain',
] as const;

export type ScriptName = (typeof NAMES)[number];

/** The folders whose scripts holders depend on to keep their leases. */
const LEASE_NOUNS = new Set(['lease', 'server']);

/** The Lua files that were read. In the published bundle all of them are here from the start. */
const files = new Map<string, string>();

export const scripts = Object.fromEntries(NAMES.map((name) => [name, scriptOf(name)])) as Readonly<
  Record<ScriptName, Script>
>;

/** Put together on first use: most processes use few scripts. */
function scriptOf(name: ScriptName): Script {
  const [noun = '', operation = ''] = name.split('/');
  let source: string | undefined;
  let sha: string | undefined;
  return {
    operation,
    isAboutLeases: LEASE_NOUNS.has(noun),
    get source() {
      source ??= [...closureOf(name, new Set())].map(readLua).join('\n');
      return source;
    },
    get sha() {
      sha ??= createHash('sha1').update(this.source).digest('hex');
      return sha;
    },
  };
}

/** A file and all files it needs, each after those that it needs itself. */
function closureOf(name: string, found: Set<string>): Set<string> {
  const [, needs = ''] = /^-- Needs +(.+)$/m.exec(readLua(name)) ?? [];
  for (const need of needs.split(/, */).filter(Boolean)) closureOf(need, found);
  return found.add(name);
}

function readLua(name: string): string {
  const text =
    files.get(name) ?? readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), 'utf8');
  files.set(name, text);
  return text;
}
