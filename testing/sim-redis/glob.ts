const matchers = new Map<string, (text: string) => boolean>();
/** Beyond so many, they are forgotten and made again. */
const MOST_MATCHERS = 256;

/** What Redis' patterns match: `*`, `?`, sets in brackets, and `\` before what means itself. */
export function globMatcher(pattern: string): (text: string) => boolean {
  const known = matchers.get(pattern);
  if (known !== undefined) return known;
  const expression = new RegExp(`^${sourceOf(pattern)}$`, 's');
  const matcher = (text: string) => expression.test(text);
  if (matchers.size >= MOST_MATCHERS) matchers.clear();
  matchers.set(pattern, matcher);
  return matcher;
}

const TOKEN = /\\(.)|\[(\^?)((?:\\.|[^\]\\])*)\]?|[\s\S]/gs;

function sourceOf(pattern: string): string {
  return pattern.replace(TOKEN, (token, escaped?: string, not?: string, set?: string) => {
    if (escaped !== undefined) return literal(escaped);
    if (set !== undefined) return setSource(not ?? '', set);
    if (token === '*') return '.*';
    return token === '?' ? '.' : literal(token);
  });
}

function setSource(not: string, set: string): string {
  const members = set.replace(/\\(.)|[\]^[]/gs, (token, escaped?: string) =>
    literal(escaped ?? token),
  );
  if (members === '') return not === '' ? '(?!)' : '.';
  return `[${not}${members}]`;
}

function literal(char: string): string {
  return /[\\^$.*+?()[\]{}|/-]/.test(char) ? `\\${char}` : char;
}
