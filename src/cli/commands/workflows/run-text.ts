/** What is kept of a workflow's function, in words. */
import type { LoadedRun, RunSnapshot, StoredStep } from '../../../store/port/run-store.ts';
import type { WaitFact } from '../../../workflow/workflow-run.ts';
import { cut, spanOf, toJson } from '../../ui/text.ts';

/** A list shows this much of a value. */
const VALUE_COLUMNS = 60;

/** Lines about the run; none for a workflow that no function runs. */
export function runLines(run: RunSnapshot | null): string[][] {
  if (run === null) return [];
  const lines = [['function', `${run.function}, ${phaseText(run)}`]];
  if (run.phase === 'done') lines.push(['result', cut(toJson(run.value), VALUE_COLUMNS)]);
  if (run.phase === 'failed' || run.phase === 'retrying')
    lines.push(['error', `${messageOf(run.value)} (failed tries: ${run.tries})`]);
  return lines;
}

/** A line for each step and each signal that waits to be received. */
export function stepLines(loaded: LoadedRun | null): string[][] {
  if (loaded === null) return [];
  const { steps, signals, nowMs } = loaded;
  return [
    ...steps.map((step) => ['step', stepText(step, nowMs)]),
    ...signals.map(({ name, value }) => [
      'signal',
      `${name}, not received yet: ${cut(toJson(value), VALUE_COLUMNS)}`,
    ]),
  ];
}

export function stepFacts(loaded: LoadedRun | null): Record<string, unknown> {
  if (loaded === null) return {};
  const { input, steps, signals } = loaded;
  const at = (atMs: number) => new Date(atMs).toISOString();
  return {
    input,
    steps: steps.map(({ atMs, ...step }) => ({ ...step, at: at(atMs) })),
    signals: signals.map(({ atMs, ...signal }) => ({ ...signal, at: at(atMs) })),
  };
}

function phaseText({ phase, waits, dueInMs }: RunSnapshot): string {
  if (phase === 'suspended') return `waits for ${waitsText(waits, dueInMs)}`;
  if (phase === 'retrying') return `tried again in ${spanOf(dueInMs ?? 0)}`;
  return phase;
}

function waitsText(waits: unknown, dueInMs: number | null): string {
  const facts = (Array.isArray(waits) ? waits : []) as WaitFact[];
  const names = facts.map((fact) =>
    'sleep' in fact ? `sleep ${fact.sleep}` : `signal ${fact.signal}`,
  );
  const until = dueInMs === null ? '' : `, at most ${spanOf(dueInMs)} more`;
  return `${names.join(' and ') || 'another instance'}${until}`;
}

function stepText({ name, kind, isDone, value, atMs }: StoredStep, nowMs: number): string {
  const ago = `${spanOf(Math.max(0, nowMs - atMs))} ago`;
  const text = cut(toJson(value), VALUE_COLUMNS);
  return `${name}: ${kind}, ${isDone ? 'done' : 'under way'}, ${ago}: ${text}`;
}

function messageOf(value: unknown): string {
  const isError = typeof value === 'object' && value !== null && 'message' in value;
  return isError ? String(value.message) : toJson(value);
}
