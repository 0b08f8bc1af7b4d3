import type {
  AssignmentStatement,
  Chunk,
  Expression,
  ForGenericStatement,
  ForNumericStatement,
  FunctionDeclaration,
  IfStatement,
  LocalStatement,
  ReturnStatement,
  Statement,
} from 'luaparse';
import { type Code, Expressions, lineOf, onlyFirst, refuse } from './lua-expressions.ts';
import { type Local, Scope } from './lua-scope.ts';

/** Translates a script, statement by statement, into the body of a JavaScript function. */
export function translate(source: string, chunk: Chunk): string {
  return new Statements(source, assignedNames(chunk.body)).body(chunk.body);
}

class Statements {
  readonly #scope: Scope;
  readonly #expressions: Expressions;
  /** Whether the function being translated has given anything but one value so far. */
  #isSingle = true;

  constructor(source: string, assigned: ReadonlySet<string>) {
    this.#scope = new Scope(assigned);
    this.#expressions = new Expressions(source, this.#scope, (node) => this.#function(node).code);
  }

  /** A function's statements, with the locals they need and a return at their end. */
  body(statements: readonly Statement[]): string {
    const { temporaries } = this.#expressions;
    this.#expressions.temporaries = [];
    const code = this.#block(statements);
    const own = this.#expressions.temporaries;
    this.#expressions.temporaries = temporaries;
    const isReturned = alwaysReturns(statements);
    if (!isReturned) this.#isSingle = false;
    const declared = own.length === 0 ? '' : `let ${own.join(', ')};\n`;
    return `${declared}${code}${isReturned ? '' : 'return NOTHING;\n'}`;
  }

  #block(statements: readonly Statement[]): string {
    return this.#scope.inside(() => statements.map((each) => this.#statement(each)).join(''));
  }

  #statement(node: Statement): string {
    switch (node.type) {
      case 'LocalStatement':
        return this.#local(node);
      case 'AssignmentStatement':
        return this.#assignment(node);
      case 'CallStatement':
        return `${this.#expressions.any(node.expression).code};\n`;
      case 'FunctionDeclaration':
        return this.#localFunction(node);
      case 'IfStatement':
        return this.#if(node);
      case 'WhileStatement':
        return `while (${this.#expressions.condition(node.condition)}) {\n${this.#block(node.body)}}\n`;
      case 'DoStatement':
        return `{\n${this.#block(node.body)}}\n`;
      case 'ForNumericStatement':
        return this.#count(node);
      case 'ForGenericStatement':
        return this.#each(node);
      case 'BreakStatement':
        return 'break;\n';
      case 'ReturnStatement':
        return this.#return(node);
      default:
        return refuse(node);
    }
  }

  /**
   * The values are worked out before there are the locals, which may have the same names as others.
   */
  #local({ variables, init }: LocalStatement): string {
    const { before, values } = this.#adjusted(init, variables.length);
    const made = variables.map((variable, i) => {
      const { code, type } = values[i] ?? NIL;
      return `let ${this.#scope.declare(variable.name, { type }).code} = ${code};\n`;
    });
    return before + made.join('');
  }

  #assignment({ variables, init }: AssignmentStatement): string {
    const { before, values } = this.#adjusted(init, variables.length);
    const isAlone = variables.length === 1;
    const held = values.map(({ code }) => (isAlone ? code : this.#scope.fresh()));
    const holding = isAlone ? [] : values.map(({ code }, i) => `const ${held[i]} = ${code};\n`);
    const stored = variables.map((variable, i) => {
      const value = held[i] ?? 'undefined';
      if (variable.type === 'Identifier') {
        const local = this.#scope.find(variable.name);
        return `${local?.code ?? refuse(variable, 'a global that is set')} = ${value};\n`;
      }
      const table = this.#expressions.one(variable.base).code;
      const key =
        variable.type === 'IndexExpression'
          ? this.#expressions.one(variable.index).code
          : JSON.stringify(variable.identifier.name);
      return `put(${table}, ${key}, ${value}, ${lineOf(variable)});\n`;
    });
    return `${isAlone ? '' : '{\n'}${before}${holding.join('')}${stored.join('')}${isAlone ? '' : '}\n'}`;
  }

  /** As many values as there are places for them. */
  #adjusted(init: readonly Expression[], wanted: number): { before: string; values: Code[] } {
    let before = '';
    const values: Code[] = [];
    for (const [i, node] of init.entries()) {
      const made = this.#expressions.any(node);
      const isSpread = made.isSeveral && i === init.length - 1 && wanted > init.length;
      if (isSpread) {
        const rest = this.#scope.fresh();
        before += values.map((value, n) => this.#keep(value, values, n)).join('');
        before += `const ${rest} = all(${made.code});\n`;
        for (let n = i; n < wanted; n++)
          values.push({ code: `${rest}[${n - i}]`, type: 'unknown' });
      } else values.push(onlyFirst(made));
    }
    return { before, values };
  }

  /** Works a value out here and now, so that what follows comes after it. */
  #keep({ code, type }: Code, values: Code[], n: number): string {
    const name = this.#scope.fresh();
    values[n] = { code: name, type };
    return `const ${name} = ${code};\n`;
  }

  #localFunction(node: FunctionDeclaration): string {
    if (!node.isLocal || node.identifier?.type !== 'Identifier')
      return refuse(node, 'a global function');
    const local = this.#scope.declare(node.identifier.name, { isFunction: true });
    const { code, isSingle } = this.#function(node);
    local.isSingle = isSingle;
    return `let ${local.code} = ${code};\n`;
  }

  #function(node: FunctionDeclaration): { code: string; isSingle: boolean } {
    const outer = this.#isSingle;
    this.#isSingle = true;
    return this.#scope.inside(() => {
      const parameters = node.parameters.map((parameter) => {
        if (parameter.type !== 'Identifier') return refuse(node, 'a function with ...');
        return this.#scope.declare(parameter.name).code;
      });
      const code = `function (${parameters.join(', ')}) {\n${this.body(node.body)}}`;
      const made = { code, isSingle: this.#isSingle };
      this.#isSingle = outer;
      return made;
    });
  }

  #if({ clauses }: IfStatement): string {
    const parts = clauses.map((clause) => {
      const body = `{\n${this.#block(clause.body)}}`;
      if (clause.type === 'ElseClause') return body;
      return `if (${this.#expressions.condition(clause.condition)}) ${body}`;
    });
    return `${parts.join(' else ')}\n`;
  }

  #count(node: ForNumericStatement): string {
    const { variable, start, end, step, body } = node;
    if (step !== null && (step.type !== 'NumericLiteral' || step.value <= 0))
      return refuse(step, 'a step that is no positive number');
    const from = this.#bound(start, 'initial value');
    const to = this.#bound(end, 'limit');
    const limit = this.#scope.fresh();
    return this.#scope.inside(() => {
      const local = this.#scope.declare(variable.name, { type: 'number' });
      const counter = this.#scope.isAssigned(variable.name) ? this.#scope.fresh() : local.code;
      const copied = counter === local.code ? '' : `let ${local.code} = ${counter};\n`;
      const head = `let ${counter} = ${from}, ${limit} = ${to}; ${counter} <= ${limit}; ${counter} += ${step?.value ?? 1}`;
      return `for (${head}) {\n${copied}${this.#block(body)}}\n`;
    });
  }

  #bound(node: Expression, what: string): string {
    const { code, type } = this.#expressions.one(node);
    return type === 'number' ? code : `bound(${code}, '${what}', ${lineOf(node)})`;
  }

  #each({ variables, iterators, body, ...node }: ForGenericStatement): string {
    const [iterator, ...more] = iterators;
    const isIpairs =
      iterator?.type === 'CallExpression' &&
      iterator.base.type === 'Identifier' &&
      iterator.base.name === 'ipairs' &&
      this.#scope.find('ipairs') === undefined;
    const over = isIpairs ? iterator.arguments[0] : undefined;
    if (over === undefined || more.length > 0)
      return refuse({ variables, iterators, body, ...node }, 'a for over anything but ipairs');
    const [items, i, item] = [this.#scope.fresh(), this.#scope.fresh(), this.#scope.fresh()];
    const code = this.#expressions.one(over).code;
    return this.#scope.inside(() => {
      const values = [`${i} + 1`, item];
      const made = variables.map(({ name }, n): string => {
        const local: Local = this.#scope.declare(name, { type: n === 0 ? 'number' : 'unknown' });
        return `let ${local.code} = ${values[n] ?? 'undefined'};\n`;
      });
      const head = `let ${i} = 0, ${items} = itemsOf(${code}, ${lineOf(over)}), ${item}; (${item} = ${items}[${i}]) !== undefined; ${i}++`;
      return `for (${head}) {\n${made.join('')}${this.#block(body)}}\n`;
    });
  }

  #return({ arguments: values }: ReturnStatement): string {
    const [only] = values;
    if (only !== undefined && values.length === 1) {
      const { code, isSeveral } = this.#expressions.any(only);
      if (isSeveral) this.#isSingle = false;
      return `return ${code};\n`;
    }
    this.#isSingle = false;
    if (only === undefined) return 'return NOTHING;\n';
    return `return new Several([${this.#expressions.list(values)}]);\n`;
  }
}

const NIL: Code = { code: 'undefined', type: 'unknown' };

/** Whether the end of these cannot be reached. */
function alwaysReturns(statements: readonly Statement[]): boolean {
  const last = statements.at(-1);
  if (last?.type === 'ReturnStatement') return true;
  if (last?.type !== 'IfStatement') return false;
  return (
    last.clauses.at(-1)?.type === 'ElseClause' &&
    last.clauses.every(({ body }) => alwaysReturns(body))
  );
}

/** Every name that is assigned to anywhere in a script. */
function assignedNames(statements: readonly Statement[]): Set<string> {
  const names = new Set<string>();
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) for (const each of node) visit(each);
    else if (typeof node === 'object' && node !== null) {
      if ('type' in node && node.type === 'AssignmentStatement') {
        for (const variable of (node as AssignmentStatement).variables)
          if (variable.type === 'Identifier') names.add(variable.name);
      }
      for (const each of Object.values(node)) visit(each);
    }
  };
  visit(statements);
  return names;
}
