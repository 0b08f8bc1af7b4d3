import { sized } from '../../port/limits.ts';
import {
  type KeepStep,
  type LoadedRun,
  pauseDetail,
  RUN_MOST_BYTES,
  RUN_SIGNALS_MOST,
  RUN_STEPS_MOST,
  type RunSnapshot,
  type RunStore,
} from '../../port/run-store.ts';
import { asJson } from '../../values.ts';
import type { FunctionConnection } from './function-connection.ts';

/** As the functions return them: values are JSON text. */
type RawRun = RunSnapshot & { readonly waits: string; readonly value: string };
interface RawLoaded extends LoadedRun {
  readonly run: RawRun | null;
  readonly input: string;
  readonly steps: readonly (LoadedRun['steps'][number] & { readonly value: string })[];
  readonly signals: readonly (LoadedRun['signals'][number] & { readonly value: string })[];
}

export function postgresRuns(functions: FunctionConnection): RunStore {
  return {
    async start(id, request, call) {
      const input = sized('workflow input', id, asJson(request.input ?? null));
      return functions.ask('start run', 'run_start', { ...request, id, input }, call);
    },
    async due(names, call) {
      type Reply = [runs: [string, string][], nextInMs: number | null, givenInMs: number | null];
      const request = { functions: names, most: call.most, grace: call.graceMs };
      const reply = await functions.call<Reply>('give out runs', 'run_due', request, call);
      const [given, nextInMs, givenInMs] = reply;
      const runs = given.map(([id, name]) => ({ id, function: name }));
      return { runs, nextInMs, givenInMs };
    },
    async load(id, call) {
      const found = await functions.call<RawLoaded | null>('load run', 'run_load', { id }, call);
      if (found === null) return null;
      const { run, input, steps, signals, ...rest } = found;
      return {
        run: snapshot(run),
        input: JSON.parse(input) as unknown,
        steps: steps.map(withValue),
        signals: signals.map(withValue),
        ...rest,
      };
    },
    async read(ids, call) {
      const found = await functions.call<(RawRun | null)[]>('read runs', 'run_read', { ids }, call);
      return found.map(snapshot);
    },
    async keep(id, step, call) {
      return functions.call('keep step', 'run_keep', keepRequest(id, step), call);
    },
    async signal(id, { id: signal, name, value }, call) {
      const json = sized('workflow signal', name, asJson(value ?? null));
      const mosts = { mostSignals: RUN_SIGNALS_MOST, mostBytes: RUN_MOST_BYTES };
      return functions.ask('signal', 'run_signal', { id, signal, name, json, ...mosts }, call);
    },
    async pause(id, step, call) {
      const request = {
        ...step,
        id,
        wake: step.wakeInMs,
        waits: asJson(step.waits ?? null),
        value: sized('result', id, asJson(step.value ?? null)),
        // As JSON, which may stand for a NUL.
        detail: JSON.stringify(pauseDetail(step)),
      };
      return functions.ask('pause run', 'run_pause', request, call);
    },
    async restart(id, call) {
      return functions.ask('restart run', 'run_restart', { id }, call);
    },
  };
}

/** The request of `run_keep` and `keep_step`, without the scope. */
export function keepRequest(id: string, { value, ...step }: KeepStep): object {
  const json = sized('workflow step', step.name, asJson(value));
  return { ...step, id, json, mostSteps: RUN_STEPS_MOST, mostBytes: RUN_MOST_BYTES };
}

function snapshot(raw: RawRun | null): RunSnapshot | null {
  if (raw === null) return null;
  return { ...raw, waits: JSON.parse(raw.waits), value: JSON.parse(raw.value) };
}

function withValue<R extends { readonly value: string }>(raw: R): R & { readonly value: unknown } {
  return { ...raw, value: JSON.parse(raw.value) };
}
