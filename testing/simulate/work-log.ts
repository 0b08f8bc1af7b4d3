/**
 * Which handler runs: what a handler writes to the sink is judged by the lease under which the
 * handler was started. Holdfast's own methods are wrapped on one instance, so that each handler
 * runs in a context of its own.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Holdfast } from '../../src/holdfast.ts';
import type { KindDeclarations, KindFunction } from '../../src/intents/kind.ts';
import type { HeldContext } from '../../src/lease/leases.ts';
import type { HandlerContext } from '../../src/workflow/attempt.ts';
import type { Orchestrator } from '../../src/workflow/orchestrator.ts';
import type { ProcessorOptions } from '../../src/workflow/processor-options.ts';
import type { ActionDefinitions } from '../../src/workflow/schema.ts';
import type { StepContext } from '../../src/workflow/workflow-run.ts';
import type { Counters } from '../sim/counters.ts';
import type { SimProcess } from '../sim/host.ts';
import type { Trace } from '../sim/trace.ts';
import { DONE } from './faults.ts';

type WorkKind =
  | 'poll'
  | 'run'
  | 'lease'
  | 'once'
  | 'lead'
  | 'action'
  | 'workflow'
  | 'step'
  | 'session';

/** One call of one handler. */
export interface Work {
  readonly kind: WorkKind;
  /** What it works on: two handlers with one subject exclude each other. */
  readonly subject: string;
  /** As the story calls it: `the poll of 'a'`. */
  readonly title: string;
  /** Higher than those of all earlier owners of the subject. */
  readonly fence: number;
  /** Whether the same work is repeated only because an earlier call was not known to be done. */
  readonly isOnce: boolean;
}

/** A call that has begun, with a number of its own. */
export interface BegunWork extends Work {
  readonly number: number;
  /** The process: another one after a restart. */
  readonly process: string;
}

const current = new AsyncLocalStorage<BegunWork>();

/** The handler whose code runs now; null outside of handlers. */
export function currentWork(): BegunWork | null {
  return current.getStore() ?? null;
}

/** Keeps the handler for a callback that a timer calls later. */
export function boundToWork(run: () => void): () => void {
  const work = current.getStore();
  return work === undefined ? run : () => current.run(work, run);
}

export interface WorkLogParts {
  readonly name: string;
  readonly trace: Trace;
  readonly counters: Counters;
  readonly process: SimProcess;
  /** Counts the calls of a world. */
  nextNumber(): number;
}

/** The handlers of one instance, as they begin and end. */
export class WorkLog {
  readonly #parts: WorkLogParts;

  constructor(parts: WorkLogParts) {
    this.#parts = parts;
  }

  run<T>(work: Work, signal: AbortSignal | null, handler: () => T): T {
    const { name, trace, counters, nextNumber, process } = this.#parts;
    const { kind, title, subject } = work;
    const about = { about: subject };
    counters.add(`${kind} begun`);
    trace.note(name, `begins ${title}`, about);
    signal?.addEventListener('abort', () => {
      if (!process.isDead) counters.add(`${kind} told to stop`);
    });
    const ended = (how: string, why = '') => {
      if (process.isDead) return;
      counters.add(`${kind} ${how}`);
      trace.note(name, `${how === 'done' ? 'finishes' : 'fails in'} ${title}${why}`, about);
      if (how === 'done') process.reach(DONE);
    };
    const failed = (error: unknown) => ended('failed', `: ${reasonOf(error)}`);
    try {
      const result = current.run({ ...work, number: nextNumber(), process: process.name }, handler);
      if (result instanceof Promise) result.then(() => ended('done'), failed);
      else ended('done');
      return result;
    } catch (error) {
      failed(error);
      throw error;
    }
  }
}

function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return (text.split(/\n|\. /)[0] ?? '').replace(/\.$/, '');
}

/** Has every handler that is given to this Holdfast run in the log. */
export function watchHandlers(holdfast: Holdfast, log: WorkLog): void {
  watchTargets(holdfast, log);
  watchLeases(holdfast, log);
  watchProcessors(holdfast, log);
  watchFunctions(holdfast, log);
}

function watchTargets(holdfast: Holdfast, log: WorkLog): void {
  const poller = holdfast.poller.bind(holdfast);
  const runner = holdfast.runner.bind(holdfast);
  holdfast.poller = (options = {}) => {
    const { poll } = options;
    if (typeof poll !== 'function') return poller(options);
    return poller({
      ...options,
      poll: (target, context) => {
        const title = `the poll of '${target.id}'`;
        const subject = `target:${target.id}`;
        const work = { kind: 'poll', subject, title, fence: context.fence, isOnce: false } as const;
        return log.run(work, context.signal, () => poll(target, context));
      },
    });
  };
  holdfast.runner = (options) => {
    const { run } = options;
    if (typeof run !== 'function') return runner(options);
    return runner({
      ...options,
      run: (target, context) => {
        const title = `the task of '${target.id}'`;
        const subject = `target:${target.id}`;
        const work = { kind: 'run', subject, title, fence: context.fence, isOnce: false } as const;
        return log.run(work, context.signal, () => run(target, context));
      },
    });
  };
}

function watchLeases(holdfast: Holdfast, log: WorkLog): void {
  const once = holdfast.once.bind(holdfast);
  const elect = holdfast.elect.bind(holdfast);
  const withLease = holdfast.withLease.bind(holdfast);
  const under = <T>(
    kind: 'lease' | 'once' | 'lead',
    key: string,
    held: HeldContext,
    work: () => T,
  ) => {
    const titles = {
      lease: `the work under lease '${key}'`,
      once: `the job '${key}'`,
      lead: `the lead of '${key}'`,
    };
    const facts = { kind, subject: `key:${key}`, title: titles[kind], fence: held.fence };
    return log.run({ ...facts, isOnce: false }, held.signal, work);
  };
  holdfast.withLease = (key, work, options) =>
    withLease(key, (held) => under('lease', key, held, () => work(held)), options);
  holdfast.once = (key, options, work) =>
    once(key, options, (held) => under('once', key, held, () => work(held)));
  holdfast.elect = (name, options) =>
    elect(name, {
      ...options,
      onElected: (held) => under('lead', name, held, () => options.onElected(held)),
    });
}

function watchProcessors(holdfast: Holdfast, log: WorkLog): void {
  const processor = holdfast.processor.bind(holdfast);
  holdfast.processor = <A extends ActionDefinitions>(options: ProcessorOptions<A>) => {
    type Handler = (payload: unknown, context: HandlerContext) => unknown;
    const watched = Object.entries(options.handlers as Record<string, Handler>).map(
      ([type, handler]) => {
        const run: Handler = (payload, context) => {
          const { idempotencyKey, workflowId, tries, fence } = context;
          const title = `${type} of '${workflowId}' (try ${tries})`;
          const subject = `action:${idempotencyKey}`;
          const work = { kind: 'action', subject, title, fence, isOnce: true } as const;
          return log.run(work, context.signal, () => handler(payload, context));
        };
        return [type, run] as const;
      },
    );
    const handlers = Object.fromEntries(watched) as ProcessorOptions<A>['handlers'];
    return processor<A>({ ...options, handlers });
  };
}

function watchFunctions(holdfast: Holdfast, log: WorkLog): void {
  const workflow = holdfast.workflow.bind(holdfast);
  holdfast.workflow = (name, code, options) =>
    workflow(
      name,
      (order, input) => {
        watchSteps(order, log);
        const { workflowId, fence, signal } = order;
        const title = `the lines of '${workflowId}'`;
        const subject = `workflow:${workflowId}`;
        const work = { kind: 'workflow', subject, title, fence, isOnce: true } as const;
        return log.run(work, signal, () => code(order, input));
      },
      options,
    );
}

function watchSteps<A extends ActionDefinitions, S>(order: Orchestrator<A, S>, log: WorkLog): void {
  const step = order.step.bind(order);
  order.step = <T>(
    name: string,
    run: (context: StepContext) => T | Promise<T>,
    options?: Parameters<typeof step>[2],
  ) =>
    step(
      name,
      (context) => {
        const { idempotencyKey, fence, signal } = context;
        const title = `step '${name}' of '${order.workflowId}'`;
        const subject = `step:${idempotencyKey}`;
        const work = { kind: 'step', subject, title, fence, isOnce: true } as const;
        return log.run<T | Promise<T>>(work, signal, () => run(context));
      },
      options,
    );
}

/** The same for the functions of declared kinds. */
export function watchKinds(kinds: KindDeclarations, log: WorkLog): KindDeclarations {
  const watched = Object.entries(kinds).map(([name, kind]) => {
    const { run } = kind;
    if (typeof run !== 'function') return [name, kind] as const;
    const logged: KindFunction = (params, context) => {
      const { session, fence, attempt, signal } = context;
      const title = `session '${session.id}' (attempt ${attempt})`;
      const subject = `session:${session.id}`;
      const work = { kind: 'session', subject, title, fence, isOnce: true } as const;
      return log.run(work, signal, () => run(params, context));
    };
    return [name, { ...kind, run: logged }] as const;
  });
  return Object.fromEntries(watched);
}
