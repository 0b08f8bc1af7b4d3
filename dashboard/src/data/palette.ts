/**
 * A colour for each instance, the same for as long as the page is open, and two letters, because colour alone tells some people nothing. In
 * order of appearance: neighbours in a list are then as different as the palette allows.
 */
const COLOURS = 12;
const given = new Map<string, { index: number; letters: string }>();

export interface Mark {
  /** As CSS: `var(--owner-3)`. */
  readonly colour: string;
  readonly letters: string;
}

export function markOf(instance: string): Mark {
  const known = given.get(instance) ?? { index: given.size, letters: lettersFor(instance) };
  given.set(instance, known);
  return { colour: `var(--owner-${known.index % COLOURS})`, letters: known.letters };
}

/** The first two letters of its name; where another has them, its number beside the first. */
function lettersFor(instance: string): string {
  const letters = nameOf(instance).slice(0, 2);
  const isTaken = [...given.values()].some((other) => other.letters === letters);
  return isTaken ? `${letters.slice(0, 1)}${given.size}` : letters;
}

/** Instance ids are read from the right: the name may contain dashes. */
export function nameOf(instance: string): string {
  return /^(.+)-\d+-[0-9a-f]{8}$/.exec(instance)?.[1] ?? instance;
}
