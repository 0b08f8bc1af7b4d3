/** Tells a run in plain sentences: what went wrong, and what it led to. */
import { exactly } from '../../src/core/time-text.ts';
import type { Note } from '../sim/trace.ts';
import { INSTANCE_NAMES } from './instance.ts';
import type { SimulatedRun } from './world.ts';

/** The last so many sentences are told. */
const MOST_LINES = 40;
/** Of what happens to the subject before the first fault, so much is told. */
const LINES_BEFORE = 3;

interface Facts {
  readonly about?: string;
  readonly to?: string;
  readonly fault?: string;
}

/** A round of repeated sentences is no longer than this. */
const LONGEST_ROUND = 4;
const TIME_COLUMNS = 15;
/** A process, as its seat notes it: its number, and how often it was started. */
const PROCESS = /^i(\d+)\.(\d+)$/;

/** One sentence for each thing that has to do with the violation, with the time before it. */
export function tellStory({ violation, notes, instances }: SimulatedRun): string[] {
  if (violation === null) return [];
  const names = INSTANCE_NAMES.slice(0, instances);
  const about = new Set(violation.about);
  const told = notes.map((note) => sentenceOf(note, names, about)).filter((one) => one !== null);
  // The last one is what was wrong.
  const joined = [...joinRepeated(told.slice(0, -1)), ...told.slice(-1)];
  const first = joined.findIndex(({ kind }) => kind === 'fault');
  const from = Math.max(0, first);
  const before = joined.slice(0, from);
  const starts = before.filter(({ kind }) => kind === 'start');
  const works = before.filter(({ kind }) => kind === 'work').slice(-LINES_BEFORE);
  const after = joined.slice(from);
  const kept = after.length <= MOST_LINES ? after : withoutMiddle(after);
  return [...starts, ...works, ...kept].map(textOf);
}

interface Sentence {
  readonly atMs: number;
  readonly text: string;
  readonly kind: 'start' | 'fault' | 'work' | 'gap';
  /** How often it happened, with nothing else in between. */
  readonly times: number;
}

function textOf({ atMs, text, kind, times }: Sentence): string {
  const at = kind === 'gap' ? '' : exactly(atMs);
  const often = times === 2 ? ' (twice)' : ` (${times} times)`;
  return `${at.padStart(TIME_COLUMNS)}  ${text}${times === 1 ? '' : often}`;
}

function sentenceOf(
  { atMs, who, what, facts }: Note,
  names: readonly string[],
  about: ReadonlySet<string>,
): Sentence | null {
  const { about: subject = '', to = '', fault } = facts as Facts;
  const sentence = { atMs, text: `${who} ${what}.`, times: 1 };
  if (fault !== undefined) return { ...sentence, kind: 'fault' };
  const [, number, life] = PROCESS.exec(who) ?? [];
  if (number === undefined)
    return about.has(subject) || about.has(to) ? { ...sentence, kind: 'work' } : null;
  const name = names[Number(number)];
  if (what !== 'started' || name === undefined) return null;
  return { ...sentence, text: `${name} starts${life === '1' ? '' : ' again'}.`, kind: 'start' };
}

/** Rounds of the same sentences, such as a poll every 5 s, are told once. */
function joinRepeated(sentences: readonly Sentence[]): Sentence[] {
  const joined: Sentence[] = [];
  for (let n = 0; n < sentences.length; ) {
    const { round, times } = roundAt(sentences, n);
    const isWork = sentences.slice(n, n + round).every(({ kind }) => kind === 'work');
    const count = isWork ? times : 1;
    for (const one of sentences.slice(n, n + round)) joined.push({ ...one, times: count });
    n += round * count;
  }
  return joined;
}

/** The shortest round that is repeated from there on, and how often it is there. */
function roundAt(sentences: readonly Sentence[], from: number): { round: number; times: number } {
  const text = (n: number) => sentences[n]?.text;
  for (let round = 1; round <= LONGEST_ROUND; round++) {
    const isSame = (n: number) => text(n) !== undefined && text(n) === text(n + round);
    let length = round;
    while (isSame(from + length - round)) length++;
    const times = Math.floor(length / round);
    if (times > 1) return { round, times };
  }
  return { round: 1, times: 1 };
}

/** All faults, and what happened last. */
function withoutMiddle(sentences: readonly Sentence[]): Sentence[] {
  const tail = sentences.slice(-MOST_LINES / 2);
  const head = sentences.slice(0, -MOST_LINES / 2);
  const kept = head.filter(({ kind }) => kind === 'fault').slice(-MOST_LINES / 2);
  const text = `… (${head.length - kept.length} sentences left out)`;
  return [...kept, { atMs: 0, text, kind: 'gap', times: 1 }, ...tail];
}

/** The first thing that two runs of one seed did differently, in words; null if all is the same. */
export function firstDifference(a: SimulatedRun, b: SimulatedRun): string | null {
  if (a.digest === b.digest) return null;
  const words = ({ atMs, who, what }: Note) => `${exactly(atMs)}: ${who} ${what}`;
  const length = Math.max(a.notes.length, b.notes.length);
  for (let n = 0; n < length; n++) {
    const [first, second] = [a.notes[n], b.notes[n]];
    const texts = [first, second].map((note) => (note === undefined ? 'nothing' : words(note)));
    if (texts[0] !== texts[1]) return `first "${texts[0]}", then "${texts[1]}"`;
  }
  return 'what it asked of the store';
}
