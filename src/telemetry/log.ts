/**
 * The log of one instance: one line of JSON per event, with the time, the instance, the target
 * where there is one, the event's name and facts, and a sentence.
 */
import type { Clock } from '../core/clock.ts';
import type { EventName, Listener } from '../core/events.ts';
import { type Facts, plainFacts, printableJson, withoutCredentials } from './facts.ts';
import { LEVELS, LOG_LEVELS, type LogLevel } from './levels.ts';
import { sentenceOf } from './sentences.ts';

type Listeners = { [N in EventName]?: Listener<N> };

export interface LogOptions {
  readonly clock: Clock;
  readonly level: LogLevel;
  /** Called with one line and its line end. */
  write(line: string): void;
}

export class Log {
  readonly #clock: Clock;
  readonly #write: (line: string) => void;
  readonly #least: number;
  #instance: string | undefined;
  /** Targets whose last poll failed: only the first failure in a row is logged at `warn`. */
  readonly #failing = new Set<string>();

  constructor({ clock, level, write }: LogOptions) {
    this.#clock = clock;
    this.#write = write;
    this.#least = LOG_LEVELS.indexOf(level);
  }

  /** The instance of all further lines. Before the store is open there is none. */
  identify(instance: string): void {
    this.#instance = instance;
  }

  /** Listeners for the `on` option of `open`. */
  listeners(): Listeners {
    const names = Object.keys(LEVELS) as EventName[];
    const logged = names.filter((name) => name === 'poll.done' || this.#isOn(LEVELS[name]));
    return Object.fromEntries(
      logged.map((name) => [name, (facts: object) => this.#onEvent(name, facts)]),
    );
  }

  say(level: LogLevel, message: string, facts: Facts = {}): void {
    const text = withoutCredentials(message);
    if (this.#isOn(level)) this.#put(level, plainFacts(facts), text);
  }

  #put(level: LogLevel, facts: Facts, msg: string): void {
    const time = new Date(this.#clock.wallMs()).toISOString();
    const line = JSON.stringify({ level, time, instance: this.#instance, ...facts, msg });
    // On the whole line, so that no field can be missed.
    this.#write(printableJson(`${line}\n`));
  }

  #isOn(level: LogLevel): boolean {
    return LOG_LEVELS.indexOf(level) >= this.#least;
  }

  #onEvent(name: EventName, event: object): void {
    const facts = aboutTarget(name, plainFacts(event));
    const level = this.#levelOf(name, facts);
    if (!this.#isOn(level)) return;
    const sentence = sentenceOf(name, facts, this.#instance);
    this.#put(level, { event: name, ...facts }, sentence);
  }

  #levelOf(name: EventName, { target, exits }: Facts): LogLevel {
    const level = LEVELS[name];
    // Of a task that keeps ending, the first end of a row is news.
    if (name === 'run.exited' && exits !== 1) return 'debug';
    if (typeof target !== 'string') return level;
    if (name === 'poll.failed') {
      const isKnown = this.#failing.has(target);
      this.#failing.add(target);
      return isKnown ? 'debug' : level;
    }
    const isOver = name === 'poll.done' || /^lease\.(lost|released|transferred|aban)/.test(name);
    const hasRecovered = isOver && this.#failing.delete(target) && name === 'poll.done';
    return hasRecovered ? 'info' : level;
  }
}

/** Leases of class `poll` and sessions get a field `target`, so that one search finds all lines. */
function aboutTarget(name: EventName, facts: Record<string, unknown>): Facts {
  const { leaseClass, key, ...rest } = facts;
  if (leaseClass === 'poll' && key !== undefined) return { target: key, ...rest };
  // `event` is the name of this line's event, so the listener's event is named `listener`.
  if (name === 'listener.failed') return { listener: facts.event, error: facts.error };
  return typeof facts.session === 'string' ? { target: facts.session, ...facts } : facts;
}
