/**
 * Draws the end of a run as lines of text: one row for each process that had to do with the target,
 * a column for each moment, and below them what happened, in words.
 */
import type { Violation } from './audit.ts';
import type { Note } from './trace.ts';
import type { WorldReport } from './world.ts';

const COLUMNS = 100;
/** How much of the time before is shown. */
const BEFORE_MS = 120_000;
const MOST_LINES = 60;

/** What a row shows from this event on. */
const SIGNS: Record<string, string> = {
  started: '.',
  'lease.acquired': '=',
  'lease.confirmed': '=',
  'lease.uncertain': '?',
  'lease.lost': '.',
  'lease.released': '.',
  'lease.transferred': '.',
  'lease.abandoned': '.',
  'told to stop': '>',
  killed: ' ',
  ended: ' ',
};

/** The target as events name it: without its class. */
function keyOf(target: string): string {
  return target.slice(target.indexOf(':') + 1);
}

export function draw({ violation, notes, simulatedMs }: WorldReport): string {
  if (violation === null) return '';
  const fromMs = Math.max(0, violation.atMs - BEFORE_MS);
  const shown = notes.filter(({ atMs }) => atMs >= fromMs);
  return [
    `${clockOf(fromMs)} ${'─'.repeat(COLUMNS - 18)} ${clockOf(violation.atMs)}`,
    ...rows(notes, violation, fromMs),
    `${violation.target === '' ? '' : `  ${violation.target}: `}= held  ? uncertain  . not held  > stopping  ! fault`,
    '',
    ...lines(shown, violation),
    `${clockOf(simulatedMs)} ${violation.invariant}: ${violation.text}`,
  ].join('\n');
}

function rows(notes: readonly Note[], violation: Violation, fromMs: number): string[] {
  const key = keyOf(violation.target);
  const names = [...new Set(notes.map(({ who }) => who))];
  const stepMs = Math.max(1, (violation.atMs - fromMs) / COLUMNS);
  return names.flatMap((name) => {
    const cells = new Array<string>(COLUMNS).fill('');
    let before = ' ';
    let isConcerned = name === 'nemesis';
    for (const { atMs, who, what, facts } of notes) {
      if (who !== name) continue;
      const ofKey = (facts as { key?: string }).key;
      const isOther = ofKey !== undefined && ofKey !== key;
      const sign = name === 'nemesis' ? '!' : SIGNS[what];
      if (isOther || sign === undefined) continue;
      if (ofKey === key) isConcerned = true;
      const at = Math.floor((atMs - fromMs) / stepMs);
      if (at < 0) before = sign;
      else cells[Math.min(at, COLUMNS - 1)] = sign;
    }
    const row = filled(cells, name === 'nemesis' ? ' ' : before);
    return isConcerned && row.trim() !== '' ? [`${name.padEnd(8)} ${row}`] : [];
  });
}

/** Each sign holds until the next, but for those of the nemesis, which are moments. */
function filled(cells: readonly string[], before: string): string {
  let sign = before;
  return cells
    .map((cell) => {
      if (cell === '!') return cell;
      if (cell !== '') sign = cell;
      return sign;
    })
    .join('');
}

function lines(shown: readonly Note[], violation: Violation): string[] {
  const key = keyOf(violation.target);
  const told = shown.filter(({ who, facts }) => {
    const ofKey = (facts as { key?: string }).key;
    return who === 'nemesis' || ofKey === undefined || ofKey === key;
  });
  const left = told.length - MOST_LINES;
  return [
    ...(left > 0 ? [`… ${left} more before`] : []),
    ...told.slice(-MOST_LINES).map(({ atMs, who, what, facts }) => {
      const said = Object.entries(facts).map(([name, value]) => `${name}=${wordOf(value)}`);
      return `${clockOf(atMs)} ${who.padEnd(8)} ${what} ${said.join(' ')}`.trimEnd();
    }),
  ];
}

function wordOf(value: unknown): string {
  if (value instanceof Error) return JSON.stringify(value.message);
  return typeof value === 'number' ? String(Math.round(value)) : String(value);
}

function clockOf(ms: number): string {
  const pad = (value: number, digits = 2) => String(Math.floor(value)).padStart(digits, '0');
  return `${pad(ms / 3_600_000)}:${pad((ms / 60_000) % 60)}:${pad((ms / 1_000) % 60)}.${pad(ms % 1_000, 3)}`;
}
