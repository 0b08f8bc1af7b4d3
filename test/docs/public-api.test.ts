import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

interface Symbol {
  readonly name: string;
  readonly declarations?: readonly unknown[];
}
interface Door {
  readonly name: string;
  readonly exports: ReadonlyMap<string, Symbol>;
}
interface Types {
  readonly doors: readonly Door[];
  pathOf(symbol: Symbol): string | null;
}
interface Scripts {
  TypedPackage: new (root: string) => Types;
  declarationOf(
    symbol: Symbol,
    types: Types,
    isExported: (symbol: Symbol) => boolean,
  ): { named: readonly Symbol[] };
}

/** `holdfast/client` runs in browsers, so it exports everything itself. The others may name what `holdfast` exports. */
function exportedBy(door: Door, main: Door): ReadonlySet<Symbol> {
  const own = [...door.exports.values()];
  return new Set(door.name === 'holdfast/client' ? own : [...own, ...main.exports.values()]);
}

it('every type that a public declaration names can be imported', { timeout: 60_000 }, async () => {
  const scripts = `${ROOT}/scripts/reference`;
  const { TypedPackage } = (await import(`${scripts}/typed-package.mjs`)) as Scripts;
  const { declarationOf } = (await import(`${scripts}/declaration.mjs`)) as Scripts;
  const types = new TypedPackage(ROOT);
  const [main] = types.doors;
  const missing = types.doors.flatMap((door) => {
    const exported = exportedBy(door, main as Door);
    const isExported = (symbol: Symbol) => exported.has(symbol);
    return [...door.exports.values()].flatMap((symbol) =>
      (symbol.declarations === undefined ? [] : declarationOf(symbol, types, isExported).named)
        .filter((named) => !isExported(named))
        .map((named) => `${door.name}: ${symbol.name} names ${types.pathOf(named)} ${named.name}`),
    );
  });
  expect(missing).toEqual([]);
});
