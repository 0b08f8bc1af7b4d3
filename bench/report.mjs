import { OURS, PEERS } from './contenders.mjs';

/**
 * A row of the report: a measure, everybody's figures, and whether ours is good enough. `value` is what the bar is
 * about: our figure, or how many times that of the best rival it is.
 */

/** Ours against the best of `rivals` (all peers unless named): the ratio is to be `atLeast` or `atMost` this. */
export function versus({ rivals = PEERS.map(({ name }) => name), atLeast, atMost, ...row }) {
  const present = rivals.filter((name) => name in row.figures);
  const isBetter = atLeast === undefined ? (a, b) => a < b : (a, b) => a > b;
  const best = present.reduce((a, b) => (isBetter(row.figures[b], row.figures[a]) ? b : a), present[0]);
  const value = row.figures[OURS.name] / row.figures[best];
  return { ...row, best, value, valueUnit: `× ${best}`, ...judged(value, { atLeast, atMost }) };
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

function judged(value, { atLeast, atMost }) {
  if (atLeast !== undefined) return { bar: `≥ ${shown(atLeast)}`, ok: value >= atLeast };
  return { bar: `≤ ${shown(atMost)}`, ok: value <= atMost };
}

export function asJson(rows) {
  const entries = rows.map(({ requirement, measure, value, valueUnit, bar, ok }) => ({
    name: `${requirement} ${measure}`,
    value: Number(value.toPrecision(4)),
    unit: valueUnit,
    bar,
    ok,
  }));
  return JSON.stringify(entries, null, 2);
}

export function asText(rows, absent) {
  const verdicts = rows.map((row) => [
    row.requirement,
    row.measure,
    withUnit(row.figures[OURS.name], row.unit),
    row.best === undefined ? '' : `${withUnit(row.figures[row.best], row.unit)} (${row.best})`,
    row.best === undefined ? '' : shown(row.value),
    row.bar ?? '',
    row.bar === null ? '' : row.ok ? 'ok' : 'MISS',
  ]);
  const names = [...new Set(rows.flatMap(({ figures }) => Object.keys(figures)))];
  const compared = rows.filter(({ figures }) => Object.keys(figures).length > 1);
  const own = [...new Map(compared.map((row) => [row.figures, row])).values()].map((row) => [
    `${row.measure}, ${row.unit}`,
    ...names.map((name) => (name in row.figures ? shown(row.figures[name]) : '')),
  ]);
  return [
    table(['', 'measure', OURS.name, 'best rival', 'ratio', 'bar', ''], verdicts),
    ...(own.length === 0 ? [] : ['Each for itself', table(['', ...names], own)]),
    ...rows.flatMap(({ measure, notes }) => (notes ? [[`${measure}`, ...notes].join('\n  ')] : [])),
    ...[...absent].map(([name, why]) => `${name} does not run here (Node ${process.version}): ${why}`),
    verdict(rows),
  ].join('\n\n');
}

/** The last line: which bars were missed. */
export function verdict(rows) {
  const missed = rows.filter(({ ok }) => !ok).map(({ requirement, measure }) => `${requirement} ${measure}`);
  const barred = rows.filter(({ bar }) => bar !== null).length;
  if (missed.length === 0) return `All ${barred} bars are met.`;
  return `${missed.length} of ${barred} bars missed: ${missed.join('; ')}.`;
}

function table(head, body) {
  const lines = [head, ...body];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  // Names to the left, figures to the right.
  const isName = (column) => head[column] === '' || head[column] === 'measure';
  return lines
    .map((line) => line.map((cell, i) => (isName(i) ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))))
    .map((cells) => cells.join('  ').trimEnd())
    .join('\n');
}

function withUnit(figure, unit) {
  return Number.isFinite(figure) ? `${shown(figure)} ${unit}` : 'for good';
}

/** Three digits at least, and no more than anybody reads. */
function shown(figure) {
  if (!Number.isFinite(figure)) return 'for good';
  const digits = Math.abs(figure) >= 100 ? 0 : Math.abs(figure) >= 10 ? 1 : 2;
  return figure.toLocaleString('en-US', { maximumFractionDigits: digits });
}
