/**
 * A row of the report: a measure, everybody's figures, and whether ours is good enough. `value` is what the bar is
 * about: our figure, or how many times the figure of the best rival it is.
 */
import { OURS, PEERS } from './contenders.mjs';

/** Ours against the best of `rivals`, all peers unless named: the ratio is to be `atLeast` or `atMost` this. */
export function versus({ rivals = PEERS.map(({ name }) => name), atLeast, atMost, ...row }) {
  const present = rivals.filter((name) => name in row.figures);
  const better = atLeast === undefined ? Math.min : Math.max;
  const bestFigure = better(...present.map((name) => row.figures[name]));
  const best = present.find((name) => row.figures[name] === bestFigure);
  const value = row.figures[OURS.name] / bestFigure;
  return { ...row, best, value, valueUnit: `× ${best}`, ...judged(value, { atLeast, atMost }) };
}

/** The same next to one rival, without a bar. */
export function beside({ rival, ...row }) {
  const value = row.figures[OURS.name] / row.figures[rival];
  return { ...row, best: rival, value, valueUnit: `× ${rival}`, bar: null, ok: true };
}

/** Our own figure is to be `atLeast` or `atMost` this, in its unit. */
export function absolute({ atLeast, atMost, ...row }) {
  const value = row.figures[OURS.name];
  return { ...row, value, valueUnit: row.unit, ...judged(value, { atLeast, atMost }) };
}

/** A figure without a bar. */
export function fact(row) {
  return { ...row, value: row.figures[OURS.name], valueUnit: row.unit, bar: null, ok: true };
}

/** A measure that failed: its bars are not met. */
export function unmeasured(measure, error) {
  const row = { requirement: '–', measure, unit: '', figures: { [OURS.name]: Number.NaN } };
  const notes = [error.stack ?? String(error)];
  return { ...row, value: Number.NaN, valueUnit: '', bar: 'a result', ok: false, notes };
}

function judged(value, { atLeast, atMost }) {
  if (atLeast !== undefined) return { bar: `≥ ${shown(atLeast)}`, ok: value >= atLeast };
  return { bar: `≤ ${shown(atMost)}`, ok: value <= atMost };
}

export function asJson(rows) {
  const entries = rows.map(({ requirement, measure, value, valueUnit, bar, ok }) => {
    const name = `${requirement} ${measure}`;
    const rounded = Number(value.toPrecision(4));
    return { name, value: rounded, unit: valueUnit, bar, ok };
  });
  return JSON.stringify(entries, null, 2);
}

export function asText(rows, { absent, where }) {
  const absences = [...absent].map(([name, why]) => `${name} does not run here: ${why}`);
  const notes = rows.filter(({ notes }) => notes !== undefined);
  return [
    where,
    verdicts(rows),
    ownFigures(rows),
    ...notes.map(({ measure, notes }) => [measure, ...notes].join('\n  ')),
    ...absences,
    summary(rows),
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

/** Which bars were missed. */
export function summary(rows) {
  const missed = rows.filter(({ ok }) => !ok);
  const barred = rows.filter(({ bar }) => bar !== null);
  const names = missed.map(({ requirement, measure }) => `${requirement} ${measure}`);
  return [`${missed.length} of ${barred.length} bars missed`, ...names].join('\n  ');
}

function verdicts(rows) {
  const lines = rows.map(({ requirement, measure, unit, figures, best, value, bar, ok }) => [
    requirement,
    measure,
    `${shown(figures[OURS.name])} ${unit}`,
    best === undefined ? '' : `${shown(figures[best])} ${unit} (${best})`,
    best === undefined ? '' : shown(value),
    bar ?? '',
    bar === null ? '' : ok ? 'ok' : 'MISS',
  ]);
  return table(['', 'measure', OURS.name, 'best rival', 'ratio', 'bar', ''], lines);
}

/** Everybody's figures side by side, once for each set of them. */
function ownFigures(rows) {
  const sets = new Map();
  for (const row of rows) {
    if (Object.keys(row.figures).length > 1 && !sets.has(row.figures)) sets.set(row.figures, row);
  }
  if (sets.size === 0) return '';
  const names = [...new Set([...sets.keys()].flatMap((figures) => Object.keys(figures)))];
  const lines = [...sets.values()].map(({ measure, unit, figures }) => [
    `${measure}, ${unit}`,
    ...names.map((name) => (name in figures ? shown(figures[name]) : '')),
  ]);
  return table(['measure', ...names], lines);
}

/** Words to the left, figures to the right. */
function table(head, body) {
  const lines = [head, ...body];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  const isWords = (column) => head[column] === '' || head[column] === 'measure';
  const aligned = (cell, i) => (isWords(i) ? cell.padEnd(widths[i]) : cell.padStart(widths[i]));
  return lines.map((line) => line.map(aligned).join('  ').trimEnd()).join('\n');
}

/** Three digits, or as many as stand before the point. */
function shown(figure) {
  if (Number.isNaN(figure)) return 'failed';
  if (!Number.isFinite(figure)) return 'permanently';
  const digits = Math.abs(figure) >= 100 ? 0 : Math.abs(figure) >= 10 ? 1 : 2;
  return figure.toLocaleString('en-US', { maximumFractionDigits: digits });
}
