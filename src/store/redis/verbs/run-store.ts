import { TOMBSTONE } from '../../port/lease-store.ts';
import { sized } from '../../port/limits.ts';
import {
  type DueCall,
  type DueReply,
  type KeepReply,
  type KeepStep,
  type LoadedRun,
  type NewSignal,
  type PauseReply,
  type PauseStep,
  pauseDetail,
  type RestartReply,
  type RunFull,
  type RunPhase,
  type RunSnapshot,
  type RunStore,
  type SignalReply,
  type StartRequest,
  type StartRunReply,
  type StepKind,
  type StoredSignal,
  type StoredStep,
} from '../../port/run-store.ts';
import type { Call } from '../../port/store.ts';
import { FIRST_STATE } from '../../port/workflow-store.ts';
import { scripts } from '../scripts.ts';
import { linesOf } from './action-texts.ts';
import { asJson, fromJson, type WorkConnection } from './work-connection.ts';

type ScriptFacts = [
  name: string | null,
  phase: RunPhase,
  tries: string,
  waits: string,
  value: string,
  dueOrInput: number | string | null,
];
type ScriptLoaded = [
  facts: ScriptFacts,
  dueInMs: number | null,
  steps: string[],
  signals: string[],
  nowUs: string,
];
type ScriptFull = [kind: 4, steps: number, signals: number, bytes: number];

export class RedisRunStore implements RunStore {
  readonly #work: WorkConnection;

  constructor(work: WorkConnection) {
    this.#work = work;
  }

  async start(id: string, request: StartRequest, call: Call): Promise<StartRunReply> {
    const input = sized('workflow input', id, asJson(request.input ?? null, 'an input'));
    const args = [id, request.function, input, JSON.stringify(FIRST_STATE)];
    const reply = await this.#work.run(scripts['run/start'], args, call);
    if (reply === 1) return { kind: 'started' };
    return { kind: 'found', function: (reply as [string | null])[0] };
  }

  async due(functions: readonly string[], call: DueCall): Promise<DueReply> {
    const args = [String(call.most), String(call.graceMs), ...functions];
    const reply = await this.#work.run(scripts['run/due'], args, call);
    const [nextInMs, givenInMs, ...given] = reply as [number | null, number | null, ...string[]];
    const runs = given.flatMap((id, i) =>
      i % 2 === 0 ? [{ id, function: given[i + 1] ?? '' }] : [],
    );
    return { runs, nextInMs, givenInMs };
  }

  async load(id: string, call: Call): Promise<LoadedRun | null> {
    const reply = (await this.#work.run(scripts['run/load'], [id], call)) as ScriptLoaded | null;
    if (reply === null) return null;
    const [facts, dueInMs, steps, signals, nowUs] = reply;
    const [name, phase, tries, waits, value, input] = facts;
    const all = pairsOf(signals).map(([signalId, text]) => signalOf(id, signalId, text));
    return {
      run: runOf(id, [name, phase, tries, waits, value, dueInMs]),
      input: fromJson(String(input ?? 'null'), id),
      steps: pairsOf(steps)
        .map(([stepName, text]) => stepOf(id, stepName, text))
        .sort((a, b) => a.atMs - b.atMs),
      signals: all
        .flatMap(({ signal, isReceived }) => (isReceived ? [] : [signal]))
        .sort((a, b) => a.atMs - b.atMs),
      signalCount: all.length,
      nowMs: Number(nowUs) / 1_000,
    };
  }

  async read(ids: readonly string[], call: Call): Promise<(RunSnapshot | null)[]> {
    const each = ids.map((id) => [id]);
    const replies = await this.#work.runEach(scripts['run/read'], [], each, call);
    return replies.map((reply, i) =>
      reply === null ? null : runOf(ids[i] ?? '', reply as ScriptFacts),
    );
  }

  async keep(id: string, step: KeepStep, call: Call): Promise<KeepReply> {
    const { leaseId, name, kind, isDone, value, receives = '' } = step;
    const json = sized('workflow step', name, asJson(value, 'a step'));
    const args = [id, leaseId, name, kind, isDone ? '1' : '0', json, receives];
    const reply = (await this.#work.run(scripts['run/keep'], args, call)) as
      | [1, string, string]
      | [2, string | null]
      | ScriptFull;
    if (reply[0] === 4) return fullOf(reply);
    if (reply[0] === 2) return notHeld(reply[1]);
    return { kind: 'done', atMs: Number(reply[1]) / 1_000, nowMs: Number(reply[2]) / 1_000 };
  }

  async signal(id: string, signal: NewSignal, call: Call): Promise<SignalReply> {
    const json = sized('workflow signal', signal.name, asJson(signal.value ?? null, 'a signal'));
    const args = [id, signal.id, signal.name, json];
    const reply = (await this.#work.run(scripts['run/signal'], args, call)) as
      | [0 | 1 | 3]
      | ScriptFull;
    if (reply[0] === 4) return fullOf(reply);
    return { kind: reply[0] === 1 ? 'kept' : reply[0] === 3 ? 'ended' : 'absent' };
  }

  async pause(id: string, step: PauseStep, call: Call): Promise<PauseReply> {
    const { leaseId, phase, signalCount, wakeInMs, tries } = step;
    const value = sized('result', id, asJson(step.value ?? null, 'a result'));
    const args = [id, leaseId, phase, String(signalCount), textOf(wakeInMs), String(tries)];
    args.push(asJson(step.waits ?? null, 'waits'), value, pauseDetail(step), ...step.forgets);
    const reply = (await this.#work.run(scripts['run/pause'], args, call)) as
      | [1 | 3]
      | [2, string | null];
    if (reply[0] === 2) return notHeld(reply[1]);
    return { kind: reply[0] === 1 ? 'done' : 'signalled' };
  }

  async restart(id: string, call: Call): Promise<RestartReply> {
    const reply = (await this.#work.run(scripts['run/restart'], [id], call)) as
      | [1, string]
      | [0]
      | [3, RunPhase];
    if (reply[0] === 1) return { kind: 'restarted', function: reply[1] };
    return reply[0] === 3 ? { kind: 'not-failed', phase: reply[1] } : { kind: 'absent' };
  }
}

function runOf(id: string, facts: ScriptFacts): RunSnapshot | null {
  const [name, phase, tries, waits, value, dueInMs] = facts;
  if (name === null) return null;
  return {
    function: name,
    phase,
    tries: Number(tries),
    waits: fromJson(waits, id),
    value: fromJson(value, id),
    dueInMs: typeof dueInMs === 'number' ? dueInMs : null,
  };
}

function stepOf(id: string, name: string, text: string): StoredStep {
  const [kind = '', done = '', atUs = '', json = ''] = linesOf(text, 3);
  const isDone = done === '1';
  const value = fromJson(json, id);
  return { name, kind: kind as StepKind, isDone, value, atMs: Number(atUs) / 1_000 };
}

function signalOf(
  id: string,
  signalId: string,
  text: string,
): { signal: StoredSignal; isReceived: boolean } {
  const [atUs = '', received = '', name = '', json = ''] = linesOf(text, 3);
  const signal = { id: signalId, name, value: fromJson(json, id), atMs: Number(atUs) / 1_000 };
  return { signal, isReceived: received === '1' };
}

function pairsOf(list: readonly string[]): [string, string][] {
  return list.flatMap((key, i) => (i % 2 === 0 ? [[key, list[i + 1] ?? '']] : []));
}

/** Whole milliseconds: a fraction would make the sleep shorter. */
function textOf(wakeInMs: number | null): string {
  return wakeInMs === null ? '' : String(Math.ceil(wakeInMs));
}

function fullOf([, steps, signals, bytes]: ScriptFull): RunFull {
  return { kind: 'full', steps, signals, bytes };
}

/** A tombstone is no holder. */
function notHeld(holder: string | null): { kind: 'not-held'; leaseId: string | null } {
  return { kind: 'not-held', leaseId: holder === TOMBSTONE ? null : holder };
}
