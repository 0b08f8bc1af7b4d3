import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Finding, report } from '../support/source-tree.ts';
import { FIRST_PAGES, suite } from '../support/suites.ts';
import { Consumer } from './support/consumer.ts';
import { elsewhereProblems, staleEntries } from './support/elsewhere.ts';
import { modulesOf, runPage } from './support/page-run.ts';
import { readPages } from './support/pages.ts';
import { commandsOf } from './support/run-console.ts';
import { typeFindings } from './support/typed-blocks.ts';

/** What can not be had here: somebody else's service, another language, minutes of waiting. Each is a hole. */
const MAX_NOT_RUN = 25;

/** Against what hangs: every command and every module has a deadline of its own. */
const PAGE_DEADLINE_MS = 300_000;

const pages = readPages();
const blocks = pages.flatMap((page) => page.blocks);
const commands = blocks
  .filter(({ language }) => language === 'console')
  .flatMap((block) => commandsOf(block).map((command) => ({ ...command, path: block.path })));

describe('every block does what its page says', () => {
  let consumer: Consumer;
  let mistyped: Finding[];

  beforeAll(() => {
    consumer = new Consumer();
    mistyped = typeFindings(consumer, pages.flatMap(modulesOf));
    // Packs, installs and compiles everything in one turn.
  }, PAGE_DEADLINE_MS);
  afterAll(() => consumer.remove());

  it('and all of them are read', () => {
    expect(report(pages.flatMap(({ findings }) => findings))).toBe('');
  });

  const isWanted = (path: string) =>
    suite === 'all' || FIRST_PAGES.includes(path) === (suite === 'first');
  for (const page of pages.filter((one) => one.blocks.length > 0 && isWanted(one.path))) {
    it.concurrent(`${page.path}: ${page.blocks.length} blocks`, {
      timeout: PAGE_DEADLINE_MS,
    }, async () => {
      const found = [
        ...mistyped.filter(({ path }) => path === page.path),
        ...(await runPage(page, consumer)),
      ];
      expect(report(found.sort((a, b) => a.line - b.line))).toBe('');
    });
  }

  it('and nothing of them keeps others from compiling', () => {
    const known = new Set(pages.map(({ path }) => path));
    expect(report(mistyped.filter(({ path }) => !known.has(path)))).toBe('');
  });
});

describe('what is not run', () => {
  it('is little, and there is a reason for each', async ({ annotate }) => {
    const notRun = blocks.filter(({ notRun }) => notRun !== undefined);
    const listed = notRun.map(({ path, line, notRun }) => `${path}:${line} ${notRun}`);
    await annotate(listed.join('\n'), 'not run');
    expect(listed.length, listed.join('\n')).toBeLessThanOrEqual(MAX_NOT_RUN);
  });

  it('is run elsewhere, if it is a command of this repository, and those are still there', () => {
    expect(staleEntries(commands.map(({ text }) => text))).toEqual([]);
    const problems = commands.flatMap(({ path, line, text }) =>
      elsewhereProblems(text).map((what) => ({ path, line, what })),
    );
    expect(report(problems)).toBe('');
  });
});
