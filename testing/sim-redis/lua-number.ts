/** Numbers and their texts, as C has them. */

const [ZERO, NINE] = [48, 57];
const DECIMAL = /^[ \t-\r]*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[ \t-\r]*$/;
const HEXADECIMAL = /^[ \t-\r]*([+-]?)(0[xX][\da-fA-F]+)[ \t-\r]*$/;
const SPECIAL = /^[ \t-\r]*([+-]?)(inf(?:inity)?|nan)[ \t-\r]*$/i;

/** The number a text is, or nil. */
export function readNumber(text: string): number | undefined {
  // Nearly always it is just digits; the rest of the rules would cost as much as a command.
  if (isDigits(text) || DECIMAL.test(text)) return Number(text);
  const [, sign, digits] = HEXADECIMAL.exec(text) ?? SPECIAL.exec(text) ?? [];
  if (digits === undefined) return undefined;
  const isHexadecimal = digits.startsWith('0');
  const size = isHexadecimal ? Number(digits) : digits.startsWith('n') ? Number.NaN : Infinity;
  return sign === '-' ? -size : size;
}

function isDigits(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < ZERO || code > NINE) return false;
  }
  return text !== '';
}

/** What numbers Lua itself turns into text with. */
const LUA_DIGITS = 14;
/** What numbers Redis turns into text with: enough for none to change. */
const REDIS_DIGITS = 17;
/** As many digits as JavaScript can give: enough to tell what is half way. */
const MOST_EXACT = 100;
const MOST_LUA = 10 ** LUA_DIGITS;

export function luaText(number: number): string {
  if (Number.isInteger(number) && Math.abs(number) < MOST_LUA && !Object.is(number, -0))
    return String(number);
  return general(number, LUA_DIGITS);
}

export function redisText(number: number): string {
  if (Number.isSafeInteger(number) && !Object.is(number, -0)) return String(number);
  return general(number, REDIS_DIGITS);
}

/** C's `%.<digits>g`. */
function general(number: number, digits: number): string {
  if (Number.isNaN(number)) return 'nan';
  if (!Number.isFinite(number)) return number < 0 ? '-inf' : 'inf';
  const sign = number < 0 || Object.is(number, -0) ? '-' : '';
  if (number === 0) return `${sign}0`;
  const [figures, exponent] = rounded(Math.abs(number), digits);
  if (exponent < -4 || exponent >= digits) {
    const size = String(Math.abs(exponent)).padStart(2, '0');
    const mantissa = withoutZeros(`${figures[0]}.${figures.slice(1)}`);
    return `${sign}${mantissa}e${exponent < 0 ? '-' : '+'}${size}`;
  }
  if (exponent < 0) return `${sign}${withoutZeros(`0.${'0'.repeat(-exponent - 1)}${figures}`)}`;
  const whole = figures.slice(0, exponent + 1);
  return `${sign}${withoutZeros(`${whole}.${figures.slice(exponent + 1)}`)}`;
}

/**
 * So many figures of a number, and the power of ten of the first. A half is rounded to the even
 * figure.
 */
function rounded(number: number, digits: number): [figures: string, exponent: number] {
  const [mantissa = '', power] = number.toExponential(digits - 1).split('e');
  const [exact = '', exactPower] = number.toExponential(MOST_EXACT).split('e');
  const all = exact.replace('.', '');
  const isHalf = /^50*$/.test(all.slice(digits));
  // JavaScript has gone up.
  if (isHalf && Number(all[digits - 1]) % 2 === 0)
    return [all.slice(0, digits), Number(exactPower)];
  return [mantissa.replace('.', ''), Number(power)];
}

function withoutZeros(text: string): string {
  return text.replace(/\.?0*$/, '');
}

/** C's `%.0f`: half goes to the even neighbour. */
export function wholeText(number: number): string {
  if (Number.isSafeInteger(number) && !Object.is(number, -0)) return String(number);
  if (!Number.isFinite(number)) return general(number, LUA_DIGITS);
  const below = Math.floor(number);
  const rest = number - below;
  const isUp = rest > 0.5 || (rest === 0.5 && below % 2 !== 0);
  const whole = isUp ? below + 1 : below;
  const isNegative = number < 0 || Object.is(number, -0);
  return (isNegative ? '-' : '') + BigInt(Math.abs(whole)).toString();
}
