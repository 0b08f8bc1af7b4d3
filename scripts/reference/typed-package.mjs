// The types of the package as it is published: what is exported under which name, and what is written about it.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const WHOLE =
  ts.TypeFormatFlags.NoTruncation | ts.TypeFormatFlags.UseSingleQuotesForStringLiteralType;

export class TypedPackage {
  /** What can be imported: `{ name: 'holdfast/client', file, exports }`, without what is not built. */
  doors;
  #checker;
  #dist;

  constructor(root) {
    this.#dist = join(root, 'dist/lib');
    const { name, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const doors = Object.entries(exports)
      .filter(([, target]) => target.types !== undefined)
      .map(([path, { types }]) => ({ name: name + path.slice(1), file: join(root, types) }))
      .filter(({ file }) => existsSync(file));
    const more = [this.file('config'), this.file('core/events')];
    const program = ts.createProgram([...doors.map(({ file }) => file), ...more], {
      target: ts.ScriptTarget.ES2023,
      module: ts.ModuleKind.NodeNext,
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: true,
      noEmit: true,
      types: ['node'],
      lib: ['lib.es2023.d.ts', 'lib.es2024.string.d.ts', 'lib.esnext.disposable.d.ts'],
    });
    this.#checker = program.getTypeChecker();
    this.program = program;
    this.doors = doors.map((door) => ({ ...door, exports: this.exportsOf(door.file) }));
  }

  file(path) {
    return join(this.#dist, `${path}.d.ts`);
  }

  /** Name → symbol, in the order in which they are exported. */
  exportsOf(file) {
    const module = this.#checker.getSymbolAtLocation(this.program.getSourceFile(file));
    const symbols = this.#checker.getExportsOfModule(module);
    return new Map(symbols.map((symbol) => [symbol.name, this.#meant(symbol)]));
  }

  /** What an identifier in a type stands for, if it is something of ours. */
  symbolAt(node) {
    const symbol = this.#checker.getSymbolAtLocation(node);
    if (symbol === undefined) return null;
    const meant = this.#meant(symbol);
    const isParameter = (meant.flags & ts.SymbolFlags.TypeParameter) !== 0;
    return !isParameter && this.pathOf(meant) !== null ? meant : null;
  }

  /** `lease/pool` for what src/lease/pool/pool.ts declares; null for what is not ours. */
  pathOf(symbol) {
    const file = symbol.declarations?.[0]?.getSourceFile().fileName;
    if (!file?.startsWith(`${this.#dist}/`)) return null;
    return file.slice(this.#dist.length + 1).replace(/\.d\.ts$/, '');
  }

  isCallable(symbol) {
    return (symbol.flags & ts.SymbolFlags.Function) !== 0;
  }

  docOf(symbol) {
    return ts.displayPartsToString(symbol.getDocumentationComment(this.#checker));
  }

  propertiesOf(type) {
    return this.#checker.getPropertiesOfType(type);
  }

  declaredType(symbol) {
    return this.#checker.getDeclaredTypeOfSymbol(symbol);
  }

  typeOf(symbol) {
    return this.#checker.getTypeOfSymbol(symbol);
  }

  withoutUndefined(type) {
    return this.#checker.getNonNullableType(type);
  }

  /** A type in words; unions of literals are written out, whatever they are called. */
  textOf(type) {
    const present = this.#checker.getNonNullableType(type);
    const isUnion = present.isUnion() && present.types.every((one) => one.isLiteral());
    const flags = isUnion ? WHOLE | ts.TypeFormatFlags.InTypeAlias : WHOLE;
    const text = this.#checker.typeToString(type, undefined, flags);
    return text.replace(/ \| undefined$/, '');
  }

  /** The same of a property, in its own words where the checker has fewer: `Duration | 'off'` is text to it. */
  textOfProperty(property) {
    const type = this.withoutUndefined(this.typeOf(property));
    const text = this.textOf(type);
    const written = property.valueDeclaration?.type?.getText() ?? text;
    return written.includes(' | ') && !text.includes(' | ') ? written : text;
  }

  extendsError(symbol) {
    if ((symbol.flags & ts.SymbolFlags.Class) === 0) return false;
    const bases = this.declaredType(symbol).getBaseTypes() ?? [];
    return bases.some((base) => this.#isError(base));
  }

  /** The base of a class that `defineError` makes is an intersection. */
  #isError(type) {
    if (type.isIntersection()) return type.types.some((part) => this.#isError(part));
    const { symbol } = type;
    if (symbol === undefined) return false;
    return symbol.name === 'HoldfastError' || this.extendsError(symbol);
  }

  #meant(symbol) {
    const isAlias = (symbol.flags & ts.SymbolFlags.Alias) !== 0;
    return isAlias ? this.#checker.getAliasedSymbol(symbol) : symbol;
  }
}
