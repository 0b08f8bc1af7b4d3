import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Finding, report } from '../support/source-tree.ts';
import { Consumer } from './support/consumer.ts';
import { elsewhereProblems, isElsewhere, staleEntries } from './support/elsewhere.ts';
import { isExpected } from './support/expected-output.ts';
import { type Page, readPage } from './support/markdown.ts';
import { modulesOf, runPage } from './support/page-run.ts';
import { typeFindings } from './support/typed-blocks.ts';

// What holds the pages to what they say has to find out those that do not.

let consumer: Consumer;
let pages = 0;

beforeAll(() => {
  consumer = new Consumer();
});
afterAll(() => consumer.remove());

/** A page of these lines, of which nobody else has the name. */
function page(...lines: readonly string[]) {
  pages += 1;
  return readPage(`page-${pages}.md`, lines.join('\n'));
}

/** What is found on a page, with its name left out. */
function found(...lines: readonly string[]): Promise<string> {
  return foundWithin(20_000, ...lines);
}

async function foundWithin(deadlineMs: number, ...lines: readonly string[]): Promise<string> {
  const one = page(...lines);
  const findings = [...one.findings, ...(await runPage(one, consumer, deadlineMs))];
  return report(findings).replaceAll(one.path, 'page');
}

const fenced = (language: string, ...lines: readonly string[]) => [
  `\`\`\`${language}`,
  ...lines,
  '```',
];

describe('a page is read', () => {
  it.each([
    ['an unknown language', ['```rust', 'fn', '```'], "page:1 has the language 'rust'"],
    ['no language', ['Words.', '```', 'text', '```'], 'page:2 has no language'],
    ['a block without an end', ['```text', 'and so on'], 'page:1 opens a block that has no end'],
    [
      'a block that is not run, for no reason',
      ['<!-- not run -->', '```go', 'x', '```'],
      'page:1 does not say why',
    ],
    [
      'a comment that means nothing',
      ['<!-- contineus -->', '```text', 'x', '```'],
      "page:1 is no comment that steers a block: 'contineus'",
    ],
    [
      'a comment with no block',
      ['<!-- continues -->', 'Words.', '```text', 'x', '```'],
      'page:1 steers nothing',
    ],
  ])('%s is found', (_, lines, what) => {
    const { path, findings } = page(...lines);
    expect(report(findings).replaceAll(path, 'page')).toContain(what);
  });

  it('with what steers its blocks, and in lists and containers too', () => {
    const { blocks, findings } = page(
      ...['<!-- anything may be said -->', 'Words.', ''],
      ...[
        '<!-- before',
        'const a = 1;',
        '-->',
        '<!-- continues -->',
        '',
        '<!-- after check(); -->',
      ],
      ...['::: code-group', '  ```ts {1} [name]', '  use(a);', '    more();', '  ```'],
      ...['<!-- not run: needs a cloud of its own -->', '<!-- file: a.go -->', '```go', 'x', '```'],
    );
    expect(findings).toEqual([]);
    expect(blocks).toMatchObject([
      {
        ...{ line: 11, language: 'ts', text: 'use(a);\n  more();', continues: true },
        before: [{ line: 5, text: 'const a = 1;' }],
        after: [{ line: 9, text: 'check();' }],
      },
      { language: 'go', continues: false, notRun: 'needs a cloud of its own', file: 'a.go' },
    ]);
  });
});

describe.concurrent('code', () => {
  it('that does what is asserted passes, with its hidden parts, on a store of its own', async () => {
    const lines = [
      ...['<!-- before', "import { open } from 'holdfast';", 'const build = async () => 1;', '-->'],
      ...['<!-- after', "assert.equal((await holdfast.records.get('report'))?.value, 1);"],
      ...['await holdfast.close();', '-->'],
      ...fenced(
        'ts',
        'const holdfast = await open();',
        "await holdfast.withLease('a', async ({ fence }) => {",
        "  await holdfast.records.put('report', await build(), { fence });",
        '});',
      ),
    ];
    expect(await found(...lines)).toBe('');
  });

  it('that throws is found, where it does', async () => {
    const what = await found(
      '# Title',
      ...fenced('ts', 'type A = 1;', '', "throw new Error('no');"),
    );
    expect(what).toMatch(/^page:5 ends with 1\n[\s\S]*Error: no/);
  });

  it('whose assertion fails is found, in the comment it stands in', async () => {
    const what = await found(
      '<!-- after',
      'assert.equal(a, 2);',
      '-->',
      ...fenced('js', 'const a = 1;'),
    );
    expect(what).toMatch(/^page:2 ends with 1\n[\s\S]*AssertionError/);
  });

  it('that makes no sense is found', async () => {
    expect(await found(...fenced('js', 'const a = ;'))).toContain('page:2 makes no sense');
  });

  it('that does not end is found, with what keeps it', async () => {
    const what = await foundWithin(4_000, ...fenced('js', 'setInterval(() => {}, 1_000);'));
    expect(what).toMatch(
      /^page:1 does not end by itself within 4 s: [\s\S]*What is open: .*Timeout/,
    );
  });

  it('continues where it says so, and only there', async () => {
    const one = fenced('ts', 'let a = 1;');
    expect(await found(...one, '<!-- continues -->', ...fenced('ts', 'a = a + 1;'))).toBe('');
    expect(await found(...one, ...fenced('ts', 'a = a + 1;'))).toContain('a is not defined');
  });

  it('finds a Redis that makes nobody wait where the page has localhost:6379', async () => {
    const use = [
      "import { open } from 'holdfast';",
      "const holdfast = await open('redis://localhost:6379');",
      "const result = await holdfast.acquire('a');",
      'assert.ok(result.ok);',
      'await holdfast.close();',
    ];
    expect(await found(...fenced('ts', ...use), ...fenced('ts', ...use))).toBe('');
  });
});

// Not beside others: the compiler keeps this process from looking after them.
describe('types', () => {
  const wrong = fenced('ts', "import { open } from 'holdfast';", 'await open({ nmae: 1 });');
  const doors = ['', '/client', '/server', '/testing'].map((door) => `holdfast${door}`);
  const beside = ['ioredis', 'redis', 'express', 'pg', 'redlock', 'redis-semaphore', 'zod'];
  const imports = [...doors, ...beside].map((name, i) => `import * as a${i} from '${name}';`);
  const samples = {
    wrong: page(...wrong),
    notRun: page('<!-- not run: nobody has that here -->', ...wrong),
    continued: page(
      ...fenced('ts', 'let a = 1;'),
      '<!-- continues -->',
      ...fenced('ts', "a = '';"),
    ),
    imports: page(...fenced('ts', ...imports), ...fenced('ts', 'assert.ok(true);')),
  };
  let findings: Finding[];
  const of = ({ path }: Page) => findings.filter((one) => one.path === path);

  beforeAll(() => {
    findings = typeFindings(consumer, Object.values(samples).flatMap(modulesOf));
  });

  it('that do not fit are found, even if nothing is run', () => {
    const what = expect.stringMatching(/^does not compile: .*nmae.*\(TS\d+\)$/s);
    expect(of(samples.wrong)).toMatchObject([{ line: 3, what }]);
    expect(of(samples.notRun)).toMatchObject([{ line: 4, what }]);
  });

  it('are those of the whole module', () => {
    expect(of(samples.continued)).toMatchObject([{ line: 6 }]);
  });

  it('come with Holdfast and with what a reader uses beside it', () => {
    expect(of(samples.imports)).toEqual([]);
    expect(report(findings)).not.toContain('the project of all blocks');
  });
});

describe.concurrent('a console', () => {
  it('that shows what comes passes, with variables and folders kept', async () => {
    const what = await found(
      ...['<!-- before', 'export NAME=ana', '-->'],
      ...fenced(
        'console',
        '$ echo "$NAME has it"',
        'ana has it',
        '$ mkdir a && cd a',
        '$ echo \\',
        '  two',
        'two',
      ),
      '<!-- continues -->',
      ...fenced('console', '$ basename "$PWD"; echo $NAME', 'a', 'ana'),
      ...fenced('console', '$ echo "[$NAME]"', '[]'),
    );
    expect(what).toBe('');
  });

  it('whose output differs is found, with both', async () => {
    const what = await found(...fenced('console', '$ echo two', 'one'));
    expect(what).toBe('page:2 ends with 0: echo two\n  expected:\n    one\n  what came:\n    two');
  });

  it('whose command fails is found, unless what it says is shown, or its code', async () => {
    expect(await found(...fenced('console', '$ false'))).toContain('page:2 ends with 1: false');
    expect(await found(...fenced('console', '$ echo no; exit 3'))).toContain('page:2 ends with 1');
    const shown = fenced(
      'console',
      '$ ls none',
      '…No such file or directory',
      '$ false',
      '$ echo $?',
      '1',
    );
    expect(await found(...shown)).toBe('');
  });

  it('whose command does not end is found', async () => {
    const what = await foundWithin(1_000, ...fenced('console', '$ sleep 60'));
    expect(what).toContain('page:2 has not ended');
  });

  it('has holdfast, on the embedded store of its folder', async () => {
    const what = await found(
      ...fenced(
        'console',
        "$ holdfast run report -- sh -c 'echo done'",
        'done',
        '$ ls -a',
        '…',
        '.holdfast',
      ),
    );
    expect(what).toBe('');
  });

  it('leaves in the background what the page says, until it ends', async () => {
    const token = 'c0b106613e99154f15a8f88aa60e8d42361494320cdc342a';
    const what = await found(
      ...['<!-- before', `export HOLDFAST_API_TOKEN=${token}`, '-->', '<!-- background -->'],
      ...fenced('console', '$ holdfast up'),
      '<!-- before',
      `const token = '${token}';`,
      '-->',
      ...fenced(
        'ts',
        "import { HoldfastClient } from 'holdfast/client';",
        "const client = new HoldfastClient({ url: 'http://127.0.0.1:4747', token });",
        "assert.equal((await client.start({ serviceRef: 'a' })).replayed, false);",
      ),
    );
    expect(what).toBe('');
  });
});

describe('an output', () => {
  it.each([
    ['fence 1794735737005000', 'fence 1794735733062000'],
    ['has it after 824 ms', 'has it after 1.2 s'],
    ['by ana-8e707e5e', 'by ana-00aa11bb'],
    [
      'session 2158d048-72a8-4712-b877-9a8171457cda',
      'session 6f772632-716c-4306-9c43-a8c3b7cf3c25',
    ],
    [
      'held by vm-1794735731650762000-c586043d/0',
      'held by my.host-2-1794735731650762001-00000000/0',
    ],
    ['02:19:30  ana is dead', '11:00:01  ana is dead'],
    ['2026-11-15 16:45:03.150Z  0', '2027-01-01 00:00:00.000Z  0'],
    ['http://127.0.0.1:4747/docs', 'http://127.0.0.1:41234/docs'],
    ['ID      STATE', 'ID  STATE'],
    ['a\n…\nb', 'a\nb'],
    ['a\n  …\nb', 'a\n1\n2\nb'],
    ['{"a":1,…}', '{"a":1,"b":2}'],
  ])('is what is shown: %j for %j', (shown, came) => {
    expect(isExpected(shown, came)).toBe(true);
  });

  it.each([
    ['12 targets', '13 targets'],
    ['tuner:1', 'tuner:2'],
    ['a\nb', 'a\nx\nb'],
    ['a\n…\nb', 'a\n1\nb\nc'],
    ['fence 1794735737005000', 'fence none'],
    ['has it (expired)', 'has it (revoked)'],
    ['order-7', 'order-8'],
  ])('is not what is shown: %j for %j', (shown, came) => {
    expect(isExpected(shown, came)).toBe(false);
  });
});

describe.concurrent('what is neither code nor a command', () => {
  it.each([
    ['json', ['{ "a": 1, }'], 'is not JSON'],
    ['yaml', ['a: [1'], 'is not YAML'],
    ['lua', ['return redis.call('], 'Redis refuses the script'],
    ['conf', ['maxmemory-policy whatever'], 'redis-server does not start with it'],
    ['sql', ['select 1;'], 'can not be tried'],
    ['go', ['package main'], 'can not be tried'],
    ['text', ['$ ls'], 'has commands'],
  ])('has to be what it is said to be: %s', async (language, lines, what) => {
    expect(await found(...fenced(language, ...lines))).toContain(`page:1 ${what}`);
  });

  it('passes where it is', async () => {
    const what = await found(
      ...fenced('json', '{ "a": 1 }', '{ "a": 2 }'),
      ...fenced('yaml', 'a: 1', '---', 'b: 2'),
      ...fenced('lua', 'return 1'),
      ...fenced('conf', 'maxmemory-policy noeviction', 'appendonly yes'),
      ...['<!-- not run: needs a cluster of its own -->', ...fenced('go', 'package main')],
    );
    expect(what).toBe('');
  });

  it('may be a file, which what follows finds', async () => {
    const what = await found(
      '<!-- file: holdfast.config.mjs -->',
      ...fenced(
        'js',
        "import { defineConfig } from 'holdfast';",
        'export default defineConfig({ resources: { tuners: 2 } });',
      ),
      '<!-- file: report.sh -->',
      ...fenced('sh', 'echo reported'),
      ...fenced(
        'console',
        '$ holdfast run report -- ./report.sh',
        'reported',
        '$ holdfast slots',
        'POOL …',
        'tuners  1  free …',
        'tuners  2  free …',
      ),
    );
    expect(what).toBe('');
    const bad = [
      '<!-- file: holdfast.config.mjs -->',
      ...fenced('js', 'export default { prot: 1 };'),
    ];
    expect(await found(...bad)).toMatch(
      /page:2 holdfast.config.mjs: is no configuration: [\s\S]*prot/,
    );
  });
});

describe('a command of this repository', () => {
  it('is run elsewhere, and what else there is here', () => {
    expect(isElsewhere('npm ci && npm start   # see it')).toBe(true);
    expect(isElsewhere('holdfast up && npm start')).toBe(false);
    expect(elsewhereProblems('npm run example:lease')).toEqual([]);
  });

  it('has to be there, and somebody has to answer for it', () => {
    expect(elsewhereProblems('npm run nonsense')).toEqual([
      "package.json has no script 'nonsense'",
    ]);
    expect(elsewhereProblems('npm run dashboard')).toEqual([
      expect.stringContaining("'npm run dashboard' is not run here"),
    ]);
  });

  it('has no entry where no page shows it', () => {
    expect(staleEntries(['npm ci'])).toContain('npm start: no page shows it');
    expect(staleEntries(['npm ci'])).not.toContain('npm ci|install: no page shows it');
  });
});
