import { NotSimulatedError } from './lua-value.ts';

/** Lua's classes of characters, as RegExp has them. Bytes beyond ASCII belong to none of them. */
const CLASSES: Readonly<Record<string, string>> = {
  a: 'A-Za-z',
  d: '0-9',
  l: 'a-z',
  s: '\\t-\\r ',
  u: 'A-Z',
  w: 'A-Za-z0-9',
  x: 'A-Fa-f0-9',
};

const REPETITIONS: Readonly<Record<string, string>> = { '*': '*', '+': '+', '?': '?', '-': '*?' };

const translated = new Map<string, RegExp>();

/**
 * A Lua pattern as a RegExp: anchors, classes, captures and quantifiers. Sets, `%b`, `%f` and back
 * references are refused.
 */
export function regExpOf(pattern: string): RegExp {
  let known = translated.get(pattern);
  if (known === undefined) {
    known = translate(pattern);
    translated.set(pattern, known);
  }
  return known;
}

function translate(pattern: string): RegExp {
  let source = '';
  // Behind anything but one character or class, what would repeat it stands for itself.
  let mayRepeat = false;
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern.charAt(i);
    const repeated = mayRepeat ? REPETITIONS[char] : undefined;
    mayRepeat = false;
    if (repeated !== undefined) source += repeated;
    else if (char === '^' && i === 0) source += '^';
    else if (char === '$' && i === pattern.length - 1) source += '$';
    else if (char === ')' || (char === '(' && pattern.charAt(i + 1) !== ')')) source += char;
    else if (char === '[' || char === ']' || char === '(') refuse(pattern);
    else {
      mayRepeat = true;
      if (char === '.') source += '[\\s\\S]';
      else source += char === '%' ? escaped(pattern, ++i) : literal(char);
    }
  }
  return new RegExp(source);
}

function escaped(pattern: string, at: number): string {
  const char = pattern.charAt(at);
  if (!/[A-Za-z0-9]/.test(char)) return char === '' ? refuse(pattern) : literal(char);
  const characters = CLASSES[char.toLowerCase()] ?? refuse(pattern);
  return char === char.toLowerCase() ? `[${characters}]` : `[^${characters}]`;
}

function literal(char: string): string {
  return /[\\^$.*+?()[\]{}|/-]/.test(char) ? `\\${char}` : char;
}

function refuse(pattern: string): never {
  throw new NotSimulatedError(`the pattern '${pattern}'`);
}
