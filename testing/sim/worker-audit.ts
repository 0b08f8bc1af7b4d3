/**
 * Watches what workers run, by what the pipelines themselves do and by what the store has carried
 * out, and holds it to what Holdfast promises:
 *
 * - **slots**: no two pipelines run at once on one slot, for one channel or for one session, in one
 *   process or in several. A pipeline that may not continue has ended before the next begins,
 *   unless its process was frozen: then it has one step, and the time that stopping takes. A worker
 *   releases a lease only after the pipeline on it has ended or failed and the store knows that.
 *   Nothing runs for a session that has ended, and if nothing is wrong, no lease of it is held. A
 *   worker that frees a tenure was granted it, or can know that its holder is dead. After a TTL a
 *   session that has ended has no lease left;
 * - **healing**: once nothing is wrong any more, every `RUNNING` session runs on the worker that
 *   the store names, or is about to be tried again there, and no slot stays taken without a
 *   session.
 */
import type { Reply } from '../../src/store/redis/client/wire.ts';
import type { Invariant } from './audit.ts';
import type { Counters } from './counters.ts';
import type { SimProcess } from './host.ts';
import { BEAT_MOST_MS } from './pipelines.ts';
import type { Peek } from './workflow-sight.ts';

export interface WorkerAuditParts {
  nowMs(): number;
  readonly counters: Counters;
  readonly peek: Peek;
  /** How long any of their leases lasts without a renewal. */
  readonly ttlMs: number;
  readonly graceMs: number;
  /**
   * Whether the store says that this process has it, and that it is not over; null where nothing
   * can be said about that.
   */
  isGoingOn(session: string, process: SimProcess): boolean | null;
  /** Whether the store, which may have lost its end, says that it has not ended. */
  isOpen(session: string): boolean;
  /** Says whether it was excused. */
  report(
    invariant: Invariant,
    target: string,
    text: string,
    concerned?: readonly SimProcess[],
  ): boolean;
}

/** A pipeline that has begun. */
export interface Begun {
  readonly process: SimProcess;
  readonly session: string;
  /** What nobody else may have meanwhile: its slot, its channel, its session. */
  readonly things: ReadonlySet<string>;
  /** It does not stop as fast as it should. */
  readonly isDeaf: boolean;
  /** What its own lease says when it is asked now. */
  isValid(): boolean;
}

export interface PipelineRun {
  /** It has done something. */
  beat(): void;
  /** Nothing of it is left. `isByItself`: nobody has told it to end. */
  over(isByItself: boolean): void;
}

/** What a session is, as the store shows it. */
export interface RunningSession {
  readonly id: string;
  readonly worker: string | null;
}

/** Who was granted a key last, and has not released it. */
interface Tenure {
  readonly holder: string;
  readonly fence: number;
  readonly process: SimProcess;
  readonly atMs: number;
}

/** What stands before the keys of leases. */
const KEYSPACE = 'lease:';
/** Clocks do not run alike. */
const MARGIN_MS = 1_000;
/** What has ended a moment ago may be on its way to the store. */
const TELLING_MS = 10_000;
/** So many sessions are remembered whose pipelines have run. */
const REMEMBERED = 64;

export class WorkerAudit {
  readonly #parts: WorkerAuditParts;
  /** By what nobody else may have. */
  readonly #running = new Map<string, Set<Begun>>();
  readonly #contested = new Set<string>();
  /** When the pipelines of a session have last done something, and where. */
  readonly #beats = new Map<string, { readonly atMs: number; readonly process: SimProcess }>();
  /** Where and when the last pipeline of a session has ended by itself. */
  readonly #done = new Map<string, { readonly atMs: number; readonly process: SimProcess }>();
  readonly #tenures = new Map<string, Tenure>();
  /** Sessions that have ended, and until when they may have leases. */
  #ended: { readonly id: string; readonly untilMs: number }[] = [];
  /** Leases last until then at least, because the store's clock was set back. */
  #lastUntilMs = 0;
  /** What was held when the calm began. */
  readonly #heldBefore = new Map<string, Tenure>();
  #isCalm = false;

  constructor(parts: WorkerAuditParts) {
    this.#parts = parts;
  }

  begun(begun: Begun): PipelineRun {
    const { process, session, things } = begun;
    this.#done.delete(session);
    for (const thing of things) {
      const others = this.#running.get(thing) ?? new Set();
      this.#running.set(thing, others.add(begun));
      if (others.size > 1) this.#contested.add(thing);
    }
    const beat = () => {
      remember(this.#beats, session, { atMs: this.#parts.nowMs(), process });
    };
    beat();
    const over = (isByItself: boolean) => {
      this.#drop(begun);
      const atMs = this.#parts.nowMs();
      if (isByItself && !process.isDead) remember(this.#done, session, { atMs, process });
    };
    return { beat, over };
  }

  /**
   * The store has counted a failure, and the worker begins the pipeline again after a pause: until
   * then it may hand the session over, and nothing of it runs.
   */
  retried(session: string, inMs: number, process: SimProcess): void {
    this.#done.delete(session);
    remember(this.#beats, session, { atMs: this.#parts.nowMs() + inMs, process });
  }

  /** A process is gone: nothing of it runs any more. */
  forget(process: SimProcess): void {
    for (const running of [...this.#running.values()])
      for (const begun of [...running]) if (begun.process === process) this.#drop(begun);
  }

  /** After everything that happens. */
  settled(): void {
    for (const thing of this.#contested) {
      const acting = [...(this.#running.get(thing) ?? [])].filter((one) => this.#mayAct(one));
      if (acting.length < 2) continue;
      this.#parts.counters.add('two pipelines');
      const processes = acting.map(({ process }) => process);
      const names = processes.map(({ name }) => name).join(' and ');
      this.#parts.report(
        'slots',
        thing,
        `pipelines of ${names} run on ${thing} at once`,
        processes,
      );
    }
  }

  granted(key: string, holder: string, fence: number, process: SimProcess): void {
    this.#tenures.set(key, { holder, fence, process, atMs: this.#parts.nowMs() });
  }

  /** `EVALSHA sha n lease… (holder fence)…` → {index …} of each that was not released */
  released(args: readonly string[], reply: Reply, by: SimProcess): void {
    if (!Array.isArray(reply)) return;
    const keys = Number(args[2]);
    // What was released and waited for is told with its index alone.
    const notReleased = (reply as Reply[][]).filter(({ length }) => length > 1);
    const failed = new Set(notReleased.map(([index]) => index));
    for (let i = 0; i < keys; i++) {
      const key = args[3 + i] ?? '';
      const [holder, fence] = args.slice(3 + keys + 2 * i);
      const tenure = this.#tenures.get(key);
      if (failed.has(i + 1) || tenure?.holder !== holder || tenure?.fence !== Number(fence))
        continue;
      this.#tenures.delete(key);
      if (tenure.process !== by) this.#freed(key, tenure, by);
      else this.#letGo(key, tenure);
    }
  }

  /** By who was granted it: then nothing that it was granted for is left. */
  #letGo(key: string, { holder, process, atMs }: Tenure): void {
    const session = holder.slice(holder.lastIndexOf('/') + 1);
    const name = key.slice(KEYSPACE.length);
    const things = [`slot:${name}`, `channel:${name}`];
    const running = things.flatMap((thing) => [...(this.#running.get(thing) ?? [])]);
    if (running.some((one) => one.process === process && one.session === session))
      this.#parts.report('slots', key, `${holder} has let go of ${key}, and still runs`, [process]);
    const done = this.#done.get(session);
    // A tenure that began later is that of a recovery, which has not run anything yet.
    const hasRunOnIt = done?.process === process && atMs <= done.atMs;
    const isSaid = !hasRunOnIt || !this.#parts.isGoingOn(session, process);
    const text = `${holder} has let go of ${key}, and has not said that it is over`;
    if (!isSaid) this.#parts.report('slots', key, text, [process]);
  }

  /** By another than was granted it. */
  #freed(key: string, { process, holder }: Tenure, by: SimProcess): void {
    const isProven = process.isDead && process.host === by.host;
    this.#parts.counters.add('freed after a death');
    const text = `${by.name} has freed ${key}, which ${process.name} holds as ${holder}`;
    if (!isProven) this.#parts.report('slots', key, text, [process, by]);
  }

  /** The store's clock was set back by so much. */
  setBack(ms: number): void {
    this.#lastUntilMs = Math.max(this.#lastUntilMs, this.#dueMs(this.#parts.nowMs())) + ms;
  }

  /**
   * A session has ended, because a worker says so: what ends before anybody has taken it was never
   * run.
   */
  endedBy(process: SimProcess, id: string): void {
    for (const one of this.#running.get(`session:${id}`) ?? [])
      if (this.#mayAct(one))
        this.#parts.report(
          'slots',
          `session:${id}`,
          `${id} has ended, and runs on ${one.process.name}`,
          [one.process],
        );
    for (const [key, tenure] of this.#tenures)
      if (
        this.#isCalm &&
        tenure.process === process &&
        tenure.holder.endsWith(`/${id}`) &&
        this.#isHeld(key, tenure)
      )
        this.#parts.report('slots', key, `${id} has ended, and ${tenure.holder} has ${key}`, [
          process,
        ]);
  }

  /** A session has ended. */
  ended(id: string): void {
    const nowMs = this.#parts.nowMs();
    this.#ended.push({ id, untilMs: this.#dueMs(nowMs) });
    const isDue = ({ untilMs }: { untilMs: number }) => untilMs < nowMs;
    const due = this.#ended.filter(isDue);
    if (due.length === 0) return;
    this.#ended = this.#ended.filter((one) => !isDue(one));
    for (const one of due) this.#checkEnded(one.id, nowMs);
  }

  #checkEnded(id: string, nowMs: number): void {
    if (this.#parts.isOpen(id)) return;
    for (const [key, tenure] of this.#tenures) {
      if (!tenure.holder.endsWith(`/${id}`) || !this.#isHeld(key, tenure)) continue;
      // What was asked for in time may have been granted late. It is not renewed.
      const untilMs = Math.max(this.#dueMs(tenure.atMs), this.#lastUntilMs);
      if (untilMs >= nowMs) this.#ended.push({ id, untilMs });
      else this.#parts.report('slots', key, `${id} has ended long ago, and has ${key}`);
    }
  }

  /** Nothing has been wrong for long: what is held now is not to be held for ever. */
  calmBegins(): void {
    this.#isCalm = true;
    this.#heldBefore.clear();
    for (const [key, tenure] of this.#tenures)
      if (this.#isHeld(key, tenure)) this.#heldBefore.set(key, tenure);
  }

  /**
   * It is over: nothing runs for so long. `sessions`: those that the store takes for running;
   * `isSession` tells their leases from others.
   */
  checkHealed(sessions: readonly RunningSession[], isSession: (id: string) => boolean): void {
    this.#isCalm = false;
    for (const [key, tenure] of this.#heldBefore) {
      const { holder } = tenure;
      const isSame = this.#tenures.get(key) === tenure && this.#isHeld(key, tenure);
      if (isSame && isSession(holder.slice(holder.lastIndexOf('/') + 1)))
        this.#parts.report('healing', key, `${key} is taken by ${holder}, and stays so`);
    }
    for (const { id, worker } of sessions) {
      const { atMs, process } = this.#beats.get(id) ?? { atMs: Number.NEGATIVE_INFINITY };
      const isFresh = this.#parts.nowMs() - atMs < BEAT_MOST_MS + TELLING_MS;
      if (isFresh && process?.isDead === false && process.name === worker) continue;
      this.#parts.report(
        'healing',
        `session:${id}`,
        `${id} is RUNNING on ${worker}, and does not run`,
      );
    }
  }

  #isHeld(key: string, { holder }: Tenure): boolean {
    return this.#parts.peek(['GET', key]) === holder;
  }

  /** When a lease that was granted or released then is over. */
  #dueMs(fromMs: number): number {
    return fromMs + this.#parts.ttlMs + MARGIN_MS;
  }

  #drop(begun: Begun): void {
    for (const thing of begun.things) {
      const others = this.#running.get(thing);
      others?.delete(begun);
      if (others !== undefined && others.size < 2) this.#contested.delete(thing);
      if (others?.size === 0) this.#running.delete(thing);
    }
  }

  /** Whether it can do anything now, or should not be there any more. */
  #mayAct({ process, isDeaf, isValid }: Begun): boolean {
    if (process.isDead || process.isFrozen) return false;
    if (isValid()) return true;
    const { nowMs, graceMs } = this.#parts;
    return !isDeaf && nowMs() > process.thawedMs + BEAT_MOST_MS + graceMs + MARGIN_MS;
  }
}

/** As the latest, for as long as there is room. */
function remember<T>(into: Map<string, T>, name: string, value: T): void {
  into.delete(name);
  into.set(name, value);
  const [oldest] = into.keys();
  if (into.size > REMEMBERED && oldest !== undefined) into.delete(oldest);
}
