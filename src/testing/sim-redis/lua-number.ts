/** Numbers and their texts, as C has them. */

const DECIMAL = /^[ \t-\r]*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[ \t-\r]*$/;
const HEXADECIMAL = /^[ \t-\r]*([+-]?)(0[xX][\da-fA-F]+)[ \t-\r]*$/;
const SPECIAL = /^[ \t-\r]*([+-]?)(inf(?:inity)?|nan)[ \t-\r]*$/i;

/** The number a text is, or nil. */
export function readNumber(text: string): number | undefined {
  if (DECIMAL.test(text)) return Number(text);
  const [, sign, digits] = HEXADECIMAL.exec(text) ?? SPECIAL.exec(text) ?? [];
  if (digits === undefined) return undefined;
  const isHexadecimal = digits.startsWith('0');
  const size = isHexadecimal ? Number(digits) : digits.startsWith('n') ? Number.NaN : Infinity;
  return sign === '-' ? -size : size;
}

/** What numbers Lua itself turns into text with. */
const LUA_DIGITS = 14;
/** What numbers Redis turns into text with: enough for none to change. */
const REDIS_DIGITS = 17;
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
  if (number === 0) return Object.is(number, -0) ? '-0' : '0';
  const [mantissa = '', power = '0'] = number.toExponential(digits - 1).split('e');
  const exponent = Number(power);
  if (exponent < -4 || exponent >= digits) {
    const size = String(Math.abs(exponent)).padStart(2, '0');
    return `${withoutZeros(mantissa)}e${exponent < 0 ? '-' : '+'}${size}`;
  }
  return withoutZeros(number.toFixed(Math.max(0, digits - 1 - exponent)));
}

function withoutZeros(text: string): string {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
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
