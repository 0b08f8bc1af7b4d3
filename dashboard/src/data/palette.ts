/**
 * The colour and the letters of an instance. The colour follows from the instance's name alone: every browser shows the same colour, in every
 * view, and an instance that restarts keeps it. The letters are for readers who cannot tell the colours apart.
 */
const COLOURS = 12;
/** Shares no factor with `COLOURS`: `api-1` to `api-12` have twelve different colours. */
const STRIDE = 5;

/** Letters that are taken, by name. */
const given = new Map<string, string>();

export interface Mark {
  /** As CSS: `var(--owner-3)`. */
  readonly colour: string;
  readonly letters: string;
}

export function markOf(instance: string): Mark {
  const name = nameOf(instance);
  const letters = given.get(name) ?? lettersFor(name);
  given.set(name, letters);
  return { colour: `var(--owner-${colourOf(name)})`, letters };
}

/** Which of the colours a name has. Names that differ only in the number at their end never share one, up to twelve of them. */
export function colourOf(name: string): number {
  const [, stem = name, digits = ''] = /^(.*?)(\d{0,9})$/s.exec(name) ?? [];
  return (hashOf(stem) + Number(digits) * STRIDE) % COLOURS;
}

/** FNV-1a. Its usual start value gives ana and ben the same colour, and these are the names in the demo and the docs. */
const HASH_START = 0x811ca503;
const HASH_PRIME = 0x01000193;

function hashOf(text: string): number {
  let hash = HASH_START;
  for (let i = 0; i < text.length; i++)
    hash = Math.imul(hash ^ text.charCodeAt(i), HASH_PRIME) >>> 0;
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** `an` for ana, `a1` for api-1; if another name has these letters, the first letter and a later one. */
function lettersFor(name: string): string {
  const taken = new Set(given.values());
  const digits = /\d{1,2}$/.exec(name)?.[0] ?? '';
  const wanted = digits === '' ? name.slice(0, 2) : `${name.slice(0, 1)}${digits}`;
  const others = [...name.slice(2)].map((letter) => `${name.slice(0, 1)}${letter}`);
  return [wanted, ...others].find((letters) => !taken.has(letters)) ?? wanted;
}

/** The name in an instance id, `ana` in `ana-1794983676845896000-1e06117a`. It is read from the right: the name may contain dashes. */
export function nameOf(instance: string): string {
  return ID.exec(instance)?.[1] ?? instance;
}

/** When an instance started, in milliseconds since 1970; null if its id does not say. */
export function startOf(instance: string): number | null {
  const digits = ID.exec(instance)?.[2] ?? '';
  return digits.length < 16 ? null : Number(digits) / 1e6;
}

const ID = /^(.+)-(\d+)-[0-9a-f]{8}$/;

/** A text of the server with the names of instances instead of their ids. */
export function withNames(text: string): string {
  return text.replace(/\b([\w.-]+)-\d{16,}-[0-9a-f]{8}\b/g, '$1');
}
