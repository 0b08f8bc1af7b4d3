// One declaration as it is shown: without what is private, with its comments no wider than a screen.
import ts from 'typescript';

const WIDTH = 96;

/** What a symbol is declared as, and which types of the package that names. */
export function declarationOf(symbol, types, isExported) {
  const named = [];
  const texts = symbol.declarations.map((declaration) => {
    const node = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
    const kept = membersOf(node).filter((member) => isShown(member, types, isExported));
    for (const part of partsOf(node, kept)) collect(part, types, named);
    return tidy(withMembers(node, kept));
  });
  return { text: texts.join('\n\n'), named: named.filter((one) => one !== symbol) };
}

function membersOf(node) {
  return ts.isClassDeclaration(node) || ts.isInterfaceDeclaration(node) ? [...node.members] : [];
}

function isShown(member, types, isExported) {
  const modifiers = ts.getCombinedModifierFlags(member);
  if ((modifiers & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) !== 0) return false;
  if (member.name !== undefined && ts.isPrivateIdentifier(member.name)) return false;
  if (!ts.isConstructorDeclaration(member)) return true;
  // A class whose argument is not exported is given to users, who do not make one.
  const named = [];
  collect(member, types, named);
  return named.every(isExported);
}

/** Everything but the members that are left out. */
function partsOf(node, kept) {
  const left = new Set(membersOf(node).filter((member) => !kept.includes(member)));
  const parts = [];
  ts.forEachChild(node, (child) => {
    if (!left.has(child)) parts.push(child);
  });
  return parts;
}

function collect(node, types, named) {
  if (ts.isTypeReferenceNode(node)) add(node.typeName, types, named);
  if (ts.isExpressionWithTypeArguments(node)) add(node.expression, types, named);
  if (ts.isTypeQueryNode(node)) add(node.exprName, types, named);
  ts.forEachChild(node, (child) => collect(child, types, named));
}

function add(name, types, named) {
  const symbol = types.symbolAt(name);
  // The compiler names the call that makes the base of a class `X_base`.
  if (symbol?.name.endsWith('_base')) return;
  if (symbol !== null && !named.includes(symbol)) named.push(symbol);
}

function withMembers(node, kept) {
  const file = node.getSourceFile();
  const all = membersOf(node);
  const text = node.getText(file);
  if (all.length === 0) return text;
  const head = text.slice(0, all[0].getFullStart() - node.getStart(file));
  return kept.length === 0
    ? `${head.trimEnd()} }`
    : `${head}${kept.map((member) => member.getFullText(file)).join('')}\n}`;
}

function tidy(text) {
  return text
    .replace(/^(export )?(declare )?/, '')
    .replace(/^ +/gm, (spaces) =>
      ' '.repeat(Math.floor(spaces.length / 4) * 2 + (spaces.length % 4)),
    )
    .replace(/^( *)\/\*\*([\s\S]*?)\*\//gm, (_, indent, comment) => wrapped(indent, comment));
}

function wrapped(indent, comment) {
  const words = comment
    .replace(/^\s*\* ?/gm, '')
    .trim()
    .split(/\s+/);
  const whole = `${indent}/** ${words.join(' ')} */`;
  if (whole.length <= WIDTH) return whole;
  const lines = [''];
  for (const word of words) {
    const last = lines.at(-1);
    if (`${indent} * ${last} ${word}`.length > WIDTH) lines.push(word);
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
  }
  return `${indent}/**\n${lines.map((one) => `${indent} * ${one}\n`).join('')}${indent} */`;
}
