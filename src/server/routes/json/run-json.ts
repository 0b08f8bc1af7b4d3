/** Runs of workflow functions as JSON. Everything is bounded: values are cut, and so are lists. */
import { z } from 'zod';
import type { LoadedRun, RunSnapshot } from '../../../store/port/run-store.ts';
import type { HistoryEntry } from '../../../store/port/workflow-store.ts';
import { withoutCredentials } from '../../../telemetry/facts.ts';
import {
  type CallResults,
  type FailedTry,
  failureText,
  type StepView,
  stepViews,
  waitFacts,
} from '../../../workflow/kept-step.ts';

export const RUN_PHASES = ['running', 'suspended', 'retrying', 'done', 'failed'] as const;
/** What a run waits for, in a list. */
const MAX_WAITS = 10;
/** Of an error, in characters. */
const MAX_ERROR = 1_000;
/** Of the input and the result, in characters. */
const MAX_TEXT = 16_384;
/** Of the value of a step or a signal, in characters: there may be two thousand of them. */
const MAX_SHORT_TEXT = 500;

const momentSchema = z.number().int().meta({ description: 'Milliseconds since 1970.' });

const runFields = {
  function: z.string(),
  phase: z.enum(RUN_PHASES).meta({
    description:
      '`running`: an instance runs it, or is about to. `suspended`: it sleeps, or waits for a signal. `retrying`: its function failed, and is tried again.',
  }),
  tries: z.number().int().meta({ description: 'How many tries in a row have failed.' }),
  dueInMs: z
    .number()
    .int()
    .nullable()
    .meta({ description: 'Until it is due; null: no time is set.' }),
  waits: z
    .array(
      z.object({
        kind: z.enum(['sleep', 'signal']),
        name: z.string().meta({ description: 'Of the sleep, or of the signal.' }),
        until: momentSchema.nullable(),
      }),
    )
    .meta({ description: `What a suspended run waits for; at most ${MAX_WAITS}.` }),
  error: z
    .string()
    .nullable()
    .meta({ description: 'The error of the last failed try, if it is retrying or has failed.' }),
};

export const runSchema = z
  .object(runFields)
  .meta({ id: 'Run', description: 'What the function of a workflow does.' });

const excerptSchema = z
  .object({
    bytes: z.number().int().meta({ description: 'Of the whole value, as JSON.' }),
    text: z.string().meta({ description: 'JSON, or its beginning.' }),
    isCut: z.boolean(),
  })
  .meta({ id: 'Excerpt', description: 'A value as JSON, cut off if it is long.' });

const stepSchema = z
  .object({
    name: z.string(),
    kind: z.enum(['step', 'call', 'sleep', 'signal']),
    state: z.enum(['done', 'failed', 'dead', 'running', 'sleeping', 'waiting', 'timeout']).meta({
      description: '`dead`: its action is a dead letter. `timeout`: no signal came in time.',
    }),
    at: momentSchema
      .nullable()
      .meta({ description: 'When it began; null if the store does not know.' }),
    tookMs: z.number().int().nullable(),
    until: momentSchema
      .nullable()
      .meta({ description: 'When a sleep or a wait ends at the latest.' }),
    tries: z.number().int(),
    failed: z
      .array(z.object({ tries: z.number().int(), at: momentSchema, error: z.string() }))
      .meta({ description: 'Tries that failed, and that another followed.' }),
    error: z.string().nullable(),
    value: excerptSchema
      .nullable()
      .meta({ description: 'A result, the payload of a call, or the value of a signal.' }),
    action: z
      .object({ type: z.string(), target: z.string(), bytes: z.number().int() })
      .nullable()
      .meta({ description: 'Of a call: its type, its processor, and the size of its payload.' }),
    result: excerptSchema.nullable().meta({
      description: 'What the processor of a call returned; null while there is none, or none kept.',
    }),
    signal: z.string().nullable(),
  })
  .meta({ id: 'RunStep' });

export const runDetailSchema = z
  .object({
    ...runFields,
    input: excerptSchema,
    result: excerptSchema.nullable().meta({ description: 'Null until it is done.' }),
    steps: z.array(stepSchema).meta({ description: 'In the order in which they were kept.' }),
    signals: z
      .array(z.object({ name: z.string(), at: momentSchema, value: excerptSchema }))
      .meta({ description: 'Signals that no line of the function has received.' }),
  })
  .meta({ id: 'RunDetail' });

export type RunJson = z.output<typeof runSchema>;
type RunDetailJson = z.output<typeof runDetailSchema>;

export function runJson(run: RunSnapshot): RunJson {
  const { phase, tries, dueInMs, value } = run;
  const waits = phase === 'suspended' ? waitFacts(run.waits).slice(0, MAX_WAITS) : [];
  const isError = phase === 'retrying' || phase === 'failed';
  return {
    function: run.function,
    phase,
    tries,
    dueInMs: dueInMs === null ? null : Math.round(dueInMs),
    waits: waits.map((wait) =>
      'sleep' in wait
        ? { kind: 'sleep' as const, name: wait.sleep, until: rounded(wait.untilMs) }
        : { kind: 'signal' as const, name: wait.signal, until: rounded(wait.untilMs) },
    ),
    error: isError ? errorText(failureText(value)) : null,
  };
}

/** Null for a workflow that no function runs. */
export function runDetailJson(
  workflow: string,
  loaded: LoadedRun | null,
  history: readonly HistoryEntry[],
  results: CallResults,
): RunDetailJson | null {
  if (loaded === null || loaded.run === null) return null;
  const { run, input, signals } = loaded;
  return {
    ...runJson(run),
    input: excerpt(input, MAX_TEXT),
    result: run.phase === 'done' ? excerpt(run.value, MAX_TEXT) : null,
    steps: stepViews(workflow, loaded, history, results).map(stepJson),
    signals: signals.map(({ name, atMs, value }) => {
      return { name, at: Math.round(atMs), value: excerpt(value, MAX_SHORT_TEXT) };
    }),
  };
}

function stepJson(step: StepView): z.output<typeof stepSchema> {
  const { name, kind, state, tries, error, value, action, signal } = step;
  const hasValue = action !== null || (state === 'done' && kind !== 'sleep');
  return {
    name,
    kind,
    state,
    at: rounded(step.atMs),
    tookMs: rounded(step.tookMs),
    until: rounded(step.untilMs),
    tries,
    failed: step.failed.map(failedJson),
    error: error === null ? null : errorText(error),
    value: hasValue ? excerpt(value, MAX_SHORT_TEXT, action?.bytes) : null,
    action,
    result: step.result === null ? null : excerpt(step.result.value, MAX_SHORT_TEXT),
    signal,
  };
}

function failedJson({ tries, atMs, error }: FailedTry): RunDetailJson['steps'][0]['failed'][0] {
  return { tries, at: Math.round(atMs), error: errorText(error) };
}

/** With `bytes`, the value is JSON already, and the beginning of a text of so many bytes. */
function excerpt(value: unknown, most: number, bytes?: number): z.output<typeof excerptSchema> {
  const json = bytes === undefined ? (JSON.stringify(value) ?? 'null') : String(value);
  const all = bytes ?? Buffer.byteLength(json);
  const text = json.slice(0, most);
  return { bytes: all, text, isCut: Buffer.byteLength(text) < all };
}

function errorText(text: string): string {
  return withoutCredentials(text).slice(0, MAX_ERROR);
}

function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms);
}
