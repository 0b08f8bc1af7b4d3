import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readTree } from '../../support/source-tree.ts';
import { ROOT } from './consumer.ts';

/** A command that pages show and that is not run for them: who runs it instead, or why nobody does. */
interface Elsewhere {
  /** Behind `npm`. A `*` at the end stands for any name, a `|` between two for either. */
  readonly npm: string;
  /** The test that runs the same. */
  readonly test?: string;
  /** Any test but those of the pages that names the folder of that example. */
  readonly isTestedExample?: true;
  readonly why?: string;
}

const ELSEWHERE: readonly Elsewhere[] = [
  { npm: 'ci|install', why: 'it comes before these tests, which need what it installs' },
  { npm: 'start', test: 'test/integration/demo.test.ts' },
  { npm: 'test', why: 'these tests are part of it' },
  { npm: 'run test:*', why: 'part of npm test, but for test:slow, which takes minutes' },
  { npm: 'run check', why: 'run by whoever commits, and by CI, beside the tests' },
  { npm: 'run example:*', isTestedExample: true },
  { npm: 'run model', test: 'test/integration/lease-model.test.ts' },
  { npm: 'run sim', test: 'test/integration/sim-command.test.ts' },
  { npm: 'run sim:bugs', why: 'takes minutes' },
  { npm: 'run chaos', test: 'test/slow/chaos.test.ts' },
  { npm: 'run soak', test: 'test/integration/soak.test.ts' },
  { npm: 'run upgrade-test', why: 'takes minutes, and compiles two earlier commits' },
  { npm: 'run matrix', why: 'takes minutes, and installs every Node' },
  { npm: 'run bench:*', why: 'takes minutes, and measures the machine' },
];

/** Whether a command is one of this repository, or several of them joined by `&&`: those are not run for a page. */
export function isElsewhere(command: string): boolean {
  return npmCalls(command).length > 0;
}

/** What is wrong with a command of npm: a script that is not there, or that nobody answers for. */
export function elsewhereProblems(command: string): string[] {
  return npmCalls(command).flatMap((call) => {
    const script = /^(?:run )?([\w:-]+)/.exec(call)?.[1] ?? '';
    const isScript = /^(run|start|test)\b/.test(call);
    if (isScript && !scripts().has(script)) return [`package.json has no script '${script}'`];
    const entry = entryFor(call);
    if (entry === undefined)
      return [`'npm ${call}' is not run here: say in elsewhere.ts who runs it, or why nobody does`];
    const example = script.replace('example:', '');
    const isHole = entry.isTestedExample && !isTested(example);
    return isHole ? [`no test starts the example '${example}'`] : [];
  });
}

/** Entries that are not true, or that no page needs. */
export function staleEntries(commands: readonly string[]): string[] {
  const calls = commands.flatMap(npmCalls);
  return ELSEWHERE.flatMap((entry) => {
    const { npm, test, why, isTestedExample } = entry;
    if (!calls.some((call) => entryFor(call) === entry)) return [`npm ${npm}: no page shows it`];
    if (test !== undefined && !existsSync(join(ROOT, test))) return [`npm ${npm}: no ${test}`];
    return (test ?? why ?? isTestedExample)
      ? []
      : [`npm ${npm}: say who runs it, or why nobody does`];
  });
}

function entryFor(call: string): Elsewhere | undefined {
  return ELSEWHERE.find(({ npm }) =>
    npm.split('|').some((name) => {
      if (name.endsWith('*')) return call.startsWith(name.slice(0, -1));
      return call === name || call.startsWith(`${name} `);
    }),
  );
}

/** What stands behind `npm` in each part of a command; nothing if one of them is something else. */
function npmCalls(command: string): string[] {
  const parts = command
    .replace(/\s#.*$/gm, '')
    .split('&&')
    .map((part) => part.trim());
  const calls = parts.map((part) => /^npm (.+)$/.exec(part)?.[1]?.replace(/^i(?= |$)/, 'install'));
  return calls.every((call) => call !== undefined) ? calls : [];
}

function scripts(): Set<string> {
  const text = readFileSync(join(ROOT, 'package.json'), 'utf8');
  return new Set(Object.keys((JSON.parse(text) as { scripts: object }).scripts));
}

/** Whether a test starts it, by its folder or by its name. */
function isTested(example: string): boolean {
  return readTree(['test'], ['.test.ts']).some(
    ({ path, text }) =>
      !path.startsWith('test/docs/') &&
      (text.includes(`examples/${example}`) ||
        (text.includes('scripts/start.mjs') && text.includes(`'${example}'`))),
  );
}
