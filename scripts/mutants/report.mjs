/** What the command says at its end: the survivors, then a line per file. */
import { table } from '../release/command.mjs';

const SHOWN = 160;

export function reportOf({ mutants, stale }) {
  const open = mutants.filter(({ state }) => state === 'survived' || state === 'unreached');
  const files = [...new Set(mutants.map(({ file }) => file))];
  const rows = [
    ...files.map((file) =>
      rowOf(
        file,
        mutants.filter((mutant) => mutant.file === file),
      ),
    ),
    ...(files.length > 1 ? [rowOf('together', mutants)] : []),
  ];
  return [
    ...open.map(survivorOf),
    ...stale.map(staleOf),
    table([['', 'mutants', 'killed', 'equivalent', 'survived', 'score'], ...rows]),
  ].join('\n');
}

function survivorOf({ file, line, kind, state, tests, was, becomes }) {
  const reach = state === 'unreached' ? 'no test reaches it' : `${tests} tests reach it`;
  return `${file}:${line}  ${kind}, ${reach}\n  - ${cut(was)}\n  + ${cut(becomes)}\n`;
}

function staleOf({ file, code, was, becomes }) {
  return `${file}: an entry of the list fits no survivor any more\n  ${code}\n  - ${was}\n  + ${becomes}\n`;
}

function rowOf(name, mutants) {
  const count = (...states) => mutants.filter(({ state }) => states.includes(state)).length;
  const [killed, equivalent] = [count('killed'), count('equivalent')];
  const survived = count('survived', 'unreached');
  const facts = [mutants.length, killed, equivalent, survived].map(String);
  return [name, ...facts, scoreOf(killed, survived)];
}

/** How many of those that make a difference are killed. */
function scoreOf(killed, survived) {
  const all = killed + survived;
  return all === 0 ? '–' : `${((100 * killed) / all).toFixed(1)} %`;
}

function cut(text) {
  return text.length <= SHOWN ? text : `${text.slice(0, SHOWN)} …`;
}
