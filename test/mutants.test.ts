import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

interface Mutant {
  file: string;
  code: string;
  was: string;
  becomes: string;
  state: string;
}
type Entry = Omit<Mutant, 'state'> & { why: string };
type Line = Pick<Entry, 'file' | 'code' | 'why'> & { changes: [string, string][] };
interface Mutated {
  mutants: readonly Mutant[];
}
type Mutate = (root: string, files: readonly string[]) => Mutated | Promise<Mutated>;

const root = fileURLToPath(new URL('..', import.meta.url));
const load = (name: string) => import(`${root}/scripts/mutants/${name}.mjs`);
const { isText } = (await load('texts')) as { isText(node: object): boolean };
const { entriesOf, subtract } = (await load('equivalent')) as {
  entriesOf(list: Line[]): Entry[];
  subtract(mutants: Mutant[], entries: Entry[]): { mutants: Mutant[]; stale: Entry[] };
};
const { mutateTypeScript } = (await load('typescript')) as { mutateTypeScript: Mutate };
const { mutateLua } = (await load('lua')) as { mutateLua: Mutate };
const list = new URL('../scripts/mutants/equivalent.json', import.meta.url);
const entries = entriesOf(JSON.parse(readFileSync(list, 'utf8')));

const survivor = (facts: Partial<Mutant>): Mutant => ({
  ...{ file: 'a.ts', code: 'if (a < b) return;', was: 'a < b', becomes: 'a <= b' },
  ...{ state: 'survived', ...facts },
});

describe('npm run mutants', () => {
  it.each([
    ['a lease lasts from ', true],
    ['lease is gone', true],
    ['not-held', false],
    [' (kept)', false],
    ['', false],
    ['lease:', false],
  ])('changes no text for people: %j', (value, expected) => {
    expect(isText({ type: 'StringLiteral', value })).toBe(expected);
  });

  it('changes TypeScript in one place at a time, and says where', async () => {
    const { mutants } = await mutateTypeScript(root, ['src/core/validity.ts']);
    expect(mutants).toContainEqual(
      expect.objectContaining({
        file: 'src/core/validity.ts',
        was: 'guardMs / 2',
        becomes: 'guardMs * 2',
      }),
    );
  });

  it('changes Lua in one place at a time, and says where', async () => {
    const { mutants } = await mutateLua(root, ['src/store/redis/lua/lease/renew.lua']);
    expect(mutants.length).toBeGreaterThan(20);
    for (const { was, becomes } of mutants) expect(becomes).not.toBe(was);
  });

  it('takes survivors from the list that make no difference, and names entries that fit none', () => {
    const line = { file: 'a.ts', code: 'if (a < b) return;', why: 'a is never b' };
    const [entry] = entriesOf([{ ...line, changes: [['a < b', 'a <= b']] }]) as [Entry];
    const killed = survivor({ state: 'killed' });
    expect(subtract([survivor({})], [entry])).toMatchObject({
      mutants: [{ state: 'equivalent', why: 'a is never b' }],
      stale: [],
    });
    expect(subtract([killed], [entry])).toEqual({ mutants: [killed], stale: [entry] });
    const other = { ...entry, becomes: 'false' };
    expect(subtract([survivor({})], [other]).stale).toEqual([other]);
  });

  it('has entries whose line is in the file, each with a reason', () => {
    for (const { file, code, why } of entries) {
      const lines = readFileSync(`${root}/${file}`, 'utf8').split('\n');
      const flat = lines.map((line) => line.replace(/\s+/g, ' ').trim());
      expect(flat).toContain(code);
      expect(why.length).toBeGreaterThan(10);
    }
  });
});
