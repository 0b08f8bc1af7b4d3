import type {
  BinaryExpression,
  CallExpression,
  Expression,
  FunctionDeclaration,
  Identifier,
  LogicalExpression,
  Node,
  TableConstructorExpression,
  UnaryExpression,
} from 'luaparse';
import { LIBRARY } from './lua-library.ts';
import type { Scope, StaticType } from './lua-scope.ts';
import { asText, NotSimulatedError } from './lua-value.ts';

/** JavaScript for a Lua expression. */
export interface Code {
  readonly code: string;
  readonly type: StaticType;
  /** It may be `Several` values, of which who wants one takes the first. */
  readonly isSeveral?: boolean;
}

const ARITHMETIC: Readonly<Record<string, string>> = {
  '+': 'add',
  '-': 'subtract',
  '*': 'multiply',
  '/': 'divide',
  '%': 'modulo',
};

/** The tables that a script is given. They are there for reading. */
const GIVEN = new Set(['KEYS', 'ARGV']);

/** What the server does for a script, by the name it is called by. */
const REDIS = new Map([
  ['redis.call', 'call'],
  ['redis.pcall', 'pcall'],
  ['redis.error_reply', 'errorReply'],
  ['redis.status_reply', 'statusReply'],
  ['redis.sha1hex', 'sha1hex'],
]);

export function lineOf(node: Node): number {
  return node.loc?.end.line ?? 0;
}

export function refuse(node: Node, what: string = node.type): never {
  throw new NotSimulatedError(`${what}, line ${lineOf(node)}`);
}

export class Expressions {
  readonly #source: string;
  readonly #scope: Scope;
  readonly #functionCode: (node: FunctionDeclaration) => string;
  /** Locals of JavaScript that the function being translated needs for values on their way. */
  temporaries: string[] = [];

  constructor(source: string, scope: Scope, functionCode: (node: FunctionDeclaration) => string) {
    this.#source = source;
    this.#scope = scope;
    this.#functionCode = functionCode;
  }

  /** For one value. */
  one(node: Expression): Code {
    return onlyFirst(this.any(node));
  }

  /**
   * For as many values as it has: one, where it stands in parentheses, of which the parser tells
   * nothing.
   */
  any(node: Expression, opened = 0): Code {
    const made = this.#any(node);
    return made.isSeveral && openedBefore(this.#source, node) > opened ? onlyFirst(made) : made;
  }

  #any(node: Expression): Code {
    switch (node.type) {
      case 'Identifier':
        return this.#name(node);
      case 'StringLiteral':
        return { code: JSON.stringify(asText(node.value)), type: 'string' };
      case 'NumericLiteral':
        return { code: String(node.value), type: 'number' };
      case 'BooleanLiteral':
        return { code: String(node.value), type: 'boolean' };
      case 'NilLiteral':
        return { code: 'undefined', type: 'unknown' };
      case 'FunctionDeclaration':
        return { code: `(${this.#functionCode(node)})`, type: 'unknown' };
      case 'TableConstructorExpression':
        return this.#table(node);
      case 'UnaryExpression':
        return this.#unary(node);
      case 'BinaryExpression':
        return this.#binary(node);
      case 'LogicalExpression':
        return this.#logical(node);
      case 'MemberExpression':
        if (node.indexer === ':') return refuse(node, 'a method');
        return this.#at(node, node.base, {
          code: JSON.stringify(node.identifier.name),
          type: 'string',
        });
      case 'IndexExpression':
        return this.#at(node, node.base, this.one(node.index));
      case 'CallExpression':
        return this.#call(node);
      default:
        return refuse(node);
    }
  }

  /** As what decides: nil and false are no, everything else is yes. */
  condition(node: Expression): string {
    if (node.type === 'LogicalExpression') {
      const operator = node.operator === 'and' ? '&&' : '||';
      return `(${this.condition(node.left)} ${operator} ${this.condition(node.right)})`;
    }
    if (node.type === 'UnaryExpression' && node.operator === 'not')
      return `!${this.condition(node.argument)}`;
    const { code, type } = this.one(node);
    if (type === 'boolean') return `(${code})`;
    return type === 'unknown' ? `isTrue(${code})` : `(${code}, true)`;
  }

  /**
   * What a list of expressions gives: each one value, but the last all it has. `opened` where it is
   * in parentheses itself.
   */
  list(nodes: readonly Expression[], opened = 0): string {
    return nodes
      .map((node, i) => {
        if (i < nodes.length - 1) return this.one(node).code;
        const { code, isSeveral } = this.any(node, i === 0 ? opened : 0);
        return isSeveral ? `...all(${code})` : code;
      })
      .join(', ');
  }

  #name(node: Identifier): Code {
    const local = this.#scope.find(node.name);
    if (local !== undefined) return { code: local.code, type: local.type };
    if (GIVEN.has(node.name)) return { code: node.name, type: 'unknown' };
    return refuse(node, `the global '${node.name}' as a value`);
  }

  #temporary(): string {
    const name = this.#scope.fresh();
    this.temporaries.push(name);
    return name;
  }

  #table({ fields }: TableConstructorExpression): Code {
    const values: Expression[] = [];
    const named: string[] = [];
    for (const field of fields) {
      if (field.type === 'TableValue') values.push(field.value);
      else if (field.type === 'TableKeyString')
        named.push(`[${JSON.stringify(field.key.name)}, ${this.one(field.value).code}]`);
      else refuse(field);
    }
    const rest = named.length === 0 ? '' : `, new Map([${named.join(', ')}])`;
    return { code: `new LuaTable([${this.list(values)}]${rest})`, type: 'unknown' };
  }

  #unary(node: UnaryExpression): Code {
    if (node.operator === 'not')
      return { code: `!${this.condition(node.argument)}`, type: 'boolean' };
    const { code, type } = this.one(node.argument);
    if (node.operator === '#')
      return {
        code: this.#isGiven(node.argument)
          ? `${code}.items.length`
          : `lengthOf(${code}, ${lineOf(node)})`,
        type: 'number',
      };
    if (node.operator !== '-') return refuse(node, node.operator);
    return {
      code: type === 'number' ? `(-${code})` : `negate(${code}, ${lineOf(node)})`,
      type: 'number',
    };
  }

  #binary(node: BinaryExpression): Code {
    const [left, right] = [this.one(node.left), this.one(node.right)];
    const both = `${left.code}, ${right.code}`;
    const line = lineOf(node);
    const { operator } = node;
    if (operator === '==') return { code: `(${left.code} === ${right.code})`, type: 'boolean' };
    if (operator === '~=') return { code: `(${left.code} !== ${right.code})`, type: 'boolean' };
    const areNumbers = left.type === 'number' && right.type === 'number';
    if (operator === '<' || operator === '<=' || operator === '>' || operator === '>=')
      return {
        code: areNumbers
          ? `(${left.code} ${operator} ${right.code})`
          : compared(operator, left, right, line),
        type: 'boolean',
      };
    if (operator === '..') {
      const areStrings = left.type === 'string' && right.type === 'string';
      const code = areStrings ? `(${left.code} + ${right.code})` : `concatenate(${both}, ${line})`;
      return { code, type: 'string' };
    }
    const name = ARITHMETIC[operator];
    if (name === undefined) return refuse(node, operator);
    const isPlain = areNumbers && operator !== '%';
    const code = isPlain ? `(${left.code} ${operator} ${right.code})` : `${name}(${both}, ${line})`;
    return { code, type: 'number' };
  }

  #logical(node: LogicalExpression): Code {
    const [left, right] = [this.one(node.left), this.one(node.right)];
    const type = left.type === right.type ? left.type : 'unknown';
    if (left.type === 'boolean')
      return {
        code: `(${left.code} ${node.operator === 'and' ? '&&' : '||'} ${right.code})`,
        type,
      };
    const held = this.#temporary();
    const [yes, no] = node.operator === 'and' ? [right.code, held] : [held, right.code];
    return { code: `(isTrue(${held} = ${left.code}) ? ${yes} : ${no})`, type };
  }

  #isGiven(node: Expression): boolean {
    return node.type === 'Identifier' && GIVEN.has(node.name) && !this.#scope.find(node.name);
  }

  #at(node: Node, base: Expression, key: Code): Code {
    const { code } = this.one(base);
    if (this.#isGiven(base) && key.type === 'number')
      return { code: `${code}.items[${key.code} - 1]`, type: 'unknown' };
    return { code: `at(${code}, ${key.code}, ${lineOf(node)})`, type: 'unknown' };
  }

  #call(node: CallExpression): Code {
    const name = this.#libraryName(node.base);
    const line = lineOf(node.base);
    const args = this.list(node.arguments, 1);
    const more = args === '' ? '' : `, ${args}`;
    const asked = REDIS.get(name);
    if (asked !== undefined) return { code: `redis.${asked}(${line}${more})`, type: 'unknown' };
    const own = LIBRARY.get(name);
    if (own !== undefined)
      return {
        code: `${libraryCode(name)}(${line}${more})`,
        type: own.type ?? 'unknown',
        isSeveral: own.isSeveral ?? false,
      };
    if (name !== '') return refuse(node, name);
    const local = node.base.type === 'Identifier' ? this.#scope.find(node.base.name) : undefined;
    if (local?.isFunction)
      return { code: `${local.code}(${args})`, type: 'unknown', isSeveral: !local.isSingle };
    const { code } = this.one(node.base);
    return { code: `call(${code}, [${args}], ${line})`, type: 'unknown', isSeveral: true };
  }

  /** How a function of a library is called, or '' for one of the script's own. */
  #libraryName(base: Expression): string {
    if (base.type === 'Identifier') return this.#scope.find(base.name) ? '' : base.name;
    if (base.type !== 'MemberExpression' || base.indexer === ':') return '';
    const { base: library, identifier } = base;
    if (library.type !== 'Identifier' || this.#scope.find(library.name)) return '';
    return GIVEN.has(library.name) ? '' : `${library.name}.${identifier.name}`;
  }
}

/** How many parentheses are opened just before an expression. */
function openedBefore(source: string, node: Node): number {
  const [begin = 0] = 'range' in node ? (node.range as number[]) : [];
  return /[\s(]*$/.exec(source.slice(0, begin))?.[0].replace(/\s/g, '').length ?? 0;
}

/** Evaluates in the order in which they stand, whichever way they are compared. */
function compared(operator: string, left: Code, right: Code, line: number): string {
  const name = operator.length === 1 ? 'isLess' : 'isAtMost';
  if (operator.startsWith('<')) return `${name}(${left.code}, ${right.code}, ${line})`;
  return `${name}Turned(${left.code}, ${right.code}, ${line})`;
}

export function onlyFirst({ code, type, isSeveral }: Code): Code {
  return { code: isSeveral ? `first(${code})` : code, type };
}

/** What a function of a library is called in the translation. */
export function libraryCode(name: string): string {
  return `lua_${name.replace('.', '_')}`;
}
