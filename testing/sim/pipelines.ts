/**
 * What runs for sessions in a simulated world: it beats on its tuner, asks before each beat, says
 * from time to time how far it is, and ends by itself at last. Some fail, at once or later, and
 * some are slow to stop: most within their grace, a few not.
 */
import { dedupKey } from '../../src/intents/dedup-key.ts';
import type { IntentSession } from '../../src/intents/intent-session.ts';
import type { KindContext } from '../../src/intents/kind.ts';
import type { PipelineContext } from '../../src/worker/pipelines/pipeline.ts';
import type { Audit } from './audit.ts';
import type { Counters } from './counters.ts';
import type { Device } from './device.ts';
import type { SimProcess } from './host.ts';

export interface PipelinesParts {
  readonly process: SimProcess;
  readonly audit: Audit;
  readonly counters: Counters;
  readonly device: Device;
  readonly graceMs: number;
}

/** How often a session of a declared kind is tried. */
export const SIM_TRIES = 3;

/** Between two beats. */
export const BEAT_MOST_MS = 3_000;
/**
 * How long one runs by itself, mostly; and one in so many, up to the longest: longer than most
 * leases last.
 */
const RUN_USUAL_MS = 8_000;
const RUN_LONG_MS = 60_000;
const LONG_ONE_IN = 6;
/**
 * One in so many throws before it has begun, or before it returns a promise; and one in so many
 * fails at its end.
 */
const THROWS_ONE_IN = 25;
const FAILS_ONE_IN = 12;
/**
 * One in so many says how far it is, at every beat: who does learns from the store's answer how
 * things are, and others do not.
 */
const PROGRESS_ONE_IN = 3;
/**
 * One in so many takes its time to stop, and of these a few more than they may, up to so many
 * graces.
 */
const SLOW_ONE_IN = 2;
const DEAF_ONE_IN = 30;
export const DEAF_GRACES = 3;
/** Of its grace, for clocks that do not run alike. */
const SLOW_MOST = 0.95;

export class Pipelines {
  readonly #parts: PipelinesParts;
  #deaf = 0;

  constructor(parts: PipelinesParts) {
    this.#parts = parts;
  }

  /** How many there are now that do not stop when they are told to. */
  get deaf(): number {
    return this.#deaf;
  }

  /** One that needs a slot of a pool whose keys begin so; null: none. */
  of(pool: string | null) {
    return (session: IntentSession, context: PipelineContext) => {
      const channel = dedupKey(session);
      const target = pool === null ? `channel:${channel}` : `slot:${pool}:${context.slot}`;
      const things = new Set([target, `channel:${channel}`, `session:${session.id}`]);
      return this.#run(session.id, context, target, things);
    };
  }

  /**
   * One of a declared kind, which has its own channel and no slot. `taken`: the kinds of its
   * worker.
   */
  ofKind(taken: readonly string[]) {
    return async (params: unknown, context: KindContext): Promise<string> => {
      const { id, kind, key } = context.session;
      const { audit } = this.#parts;
      audit.intents?.ranKind(id, { kind, key, params, isTaken: taken.includes(kind) });
      const channel = `channel:kind:${kind}:${key}`;
      const things = new Set([channel, `session:${id}`]);
      try {
        return await this.#run(id, context, channel, things);
      } catch (error) {
        if (!context.signal.aborted) audit.intents?.failed(id);
        throw error;
      }
    };
  }

  #run(
    session: string,
    context: PipelineContext,
    target: string,
    things: ReadonlySet<string>,
  ): Promise<string> {
    const { process, audit, counters } = this.#parts;
    counters.add('pipeline begun');
    const isDeaf = this.#oneIn(DEAF_ONE_IN);
    audit.intents?.ran(session, isDeaf);
    const isValid = () => isAllowed(context);
    const run = audit.workers?.begun({ process, session, things, isDeaf, isValid });
    if (this.#oneIn(THROWS_ONE_IN)) {
      counters.add('pipeline threw');
      run?.over(true);
      throw new Error('simulated');
    }
    if (isDeaf) this.#deaf++;
    return this.#work(target, context, () => run?.beat())
      .catch((error: unknown) => this.#end(error, context, isDeaf))
      .finally(() => {
        if (isDeaf) this.#deaf--;
        run?.over(!context.signal.aborted);
      });
  }

  async #work(target: string, context: PipelineContext, beaten: () => void): Promise<string> {
    const { process, device, counters } = this.#parts;
    const mostMs = this.#oneIn(LONG_ONE_IN) ? RUN_LONG_MS : RUN_USUAL_MS;
    const untilMs = process.monotonicMs() + process.random.next() * mostMs;
    const tells = this.#oneIn(PROGRESS_ONE_IN);
    while (process.monotonicMs() < untilMs) {
      await process.sleep(process.random.next() * BEAT_MOST_MS, context.signal);
      context.assertHeld();
      device.write(process, target, context.fence);
      beaten();
      if (tells) context.progress({ beats: true });
    }
    if (this.#oneIn(FAILS_ONE_IN)) {
      counters.add('pipeline failed');
      throw new Error('simulated');
    }
    counters.add('pipeline ended by itself');
    return 'ok';
  }

  /** It fails, or was told to end. */
  async #end(error: unknown, { signal }: PipelineContext, isDeaf: boolean): Promise<never> {
    const { process, counters, graceMs } = this.#parts;
    if (signal.aborted) {
      counters.add(isDeaf ? 'pipeline stopped too late' : 'pipeline stopped');
      if (isDeaf) await process.sleep(graceMs * (1 + process.random.next() * (DEAF_GRACES - 1)));
      else if (this.#oneIn(SLOW_ONE_IN))
        await process.sleep(process.random.next() * graceMs * SLOW_MOST);
    }
    throw error;
  }

  #oneIn(count: number): boolean {
    return this.#parts.process.random.next() * count < 1;
  }
}

/** Whether it may continue. */
function isAllowed({ assertHeld }: Pick<PipelineContext, 'assertHeld'>): boolean {
  try {
    assertHeld();
    return true;
  } catch {
    return false;
  }
}
