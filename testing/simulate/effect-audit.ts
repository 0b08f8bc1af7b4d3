/**
 * Judges what handlers do to the outside world: the effects that the sink accepted.
 *
 * - **fence fell**: the sink took a write with a lower fence than it had taken before;
 * - **key twice**: two effects have one idempotency key;
 * - **two owners**: a process had an effect on a target, key or session after another process had
 *   taken over from it, and had an effect;
 * - **repeated effect**: two tries of one action, step or workflow had the same effect.
 *
 * The first two are about what the handler gave to the sink. The others are judged by the lease
 * under which the handler ran, whether or not the handler passed anything on.
 */
import type { BegunWork } from './work-log.ts';

/** What can be found. `escape`: code that left the simulated world. */
export type SimulationInvariant =
  | 'fence fell'
  | 'key twice'
  | 'two owners'
  | 'repeated effect'
  | 'check'
  | 'client'
  | 'setup'
  | 'unhandled rejection'
  | 'escape';

export interface SimulationViolation {
  readonly invariant: SimulationInvariant;
  readonly text: string;
  /** What it is about: a subject of work, or what was written to. */
  readonly about: readonly string[];
  /** Milliseconds since the world began. */
  readonly atMs: number;
}

/** Something that a handler did to the outside world. */
export interface Effect {
  /** What was written to. */
  readonly to: string;
  /** As JSON has it. */
  readonly value: unknown;
  /** The instance. */
  readonly by: string;
  /** Milliseconds since the world began. */
  readonly atMs: number;
  readonly fence: number | null;
  readonly idempotencyKey: string | null;
}

export interface EffectAuditParts {
  nowMs(): number;
  readonly allowed: ReadonlySet<string>;
}

export class EffectAudit {
  readonly effects: Effect[] = [];
  violation: SimulationViolation | null = null;
  readonly #parts: EffectAuditParts;
  readonly #keys = new Set<string>();
  readonly #fences = new Map<string, number>();
  readonly #owners = new Map<string, { fence: number; by: string; process: string }>();
  readonly #done = new Map<string, { number: number; by: string }>();

  constructor(parts: EffectAuditParts) {
    this.#parts = parts;
  }

  /** The first one counts. */
  report(invariant: SimulationInvariant, text: string, about: readonly string[] = []): void {
    if (this.#parts.allowed.has(invariant)) return;
    this.violation ??= { invariant, text, about, atMs: this.#parts.nowMs() };
  }

  accepted(effect: Effect, work: BegunWork | null): void {
    this.effects.push(effect);
    this.#checkFence(effect);
    this.#checkKey(effect);
    if (work === null) return;
    // The more telling of the two first.
    if (work.isOnce) this.#checkOnce(effect, work);
    this.#checkOwner(effect, work);
  }

  #checkFence({ to, by, fence }: Effect): void {
    if (fence === null) return;
    const seen = this.#fences.get(to) ?? 0;
    if (fence < seen)
      this.report(
        'fence fell',
        `'${to}' took a write of ${by} with fence ${fence} after one with fence ${seen}. Have it refuse lower fences.`,
        [to],
      );
    this.#fences.set(to, Math.max(fence, seen));
  }

  #checkKey({ to, idempotencyKey }: Effect): void {
    if (idempotencyKey === null) return;
    const name = `${to}\n${idempotencyKey}`;
    if (this.#keys.has(name))
      this.report(
        'key twice',
        `'${to}' had two effects with idempotency key '${idempotencyKey}'. Have it remember the keys.`,
        [to],
      );
    this.#keys.add(name);
  }

  #checkOwner({ to, by }: Effect, { subject, title, fence, process }: BegunWork): void {
    const name = `${subject}\n${to}`;
    const last = this.#owners.get(name);
    if (last !== undefined && last.fence > fence && last.process !== process) {
      const who = by === last.by ? `${by}, before its restart,` : by;
      this.report(
        'two owners',
        `${who} wrote to '${to}' in ${title}, after ${last.by} had taken over and written. ` +
          'Pass the fence with the write, and have the other side refuse lower ones.',
        [subject],
      );
    }
    if (last === undefined || fence > last.fence) this.#owners.set(name, { fence, by, process });
  }

  #checkOnce({ to, by, value }: Effect, { subject, title, number }: BegunWork): void {
    const name = JSON.stringify([subject, to, value]);
    const first = this.#done.get(name);
    if (first !== undefined && first.number !== number)
      this.report(
        'repeated effect',
        `${JSON.stringify(value)} was written to '${to}' again by ${by} in ${title}; ${first.by} had ` +
          'done it in another try. Pass an idempotency key that all tries share.',
        [subject],
      );
    if (first === undefined) this.#done.set(name, { number, by });
  }
}
