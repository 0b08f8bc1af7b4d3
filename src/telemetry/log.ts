/**
 * The log of one instance: a subscriber of the event catalogue. One line of JSON per event, with the time, the instance,
 * the target where there is one, the event, its facts, and the same in words.
 */
import { type Logger, pino } from 'pino';
import type { Clock } from '../core/clock.ts';
import type { EventName, Listener } from '../core/events.ts';
import { type Facts, plainFacts, printableJson, withoutCredentials } from './facts.ts';
import { LEVELS, type LogLevel } from './levels.ts';
import { sentenceOf } from './sentences.ts';

type Listeners = { [N in EventName]?: Listener<N> };

export interface LogOptions {
  readonly clock: Clock;
  readonly level: LogLevel;
  /** Takes one line, with its end. */
  write(line: string): void;
}

export class Log {
  readonly #logger: Logger;
  #instance: string | undefined;
  /** Targets whose last poll failed: the first failure is news, the hundredth is not. */
  readonly #failing = new Set<string>();

  constructor({ clock, level, write }: LogOptions) {
    const time = () => `,"time":"${new Date(clock.wallMs()).toISOString()}"`;
    const formatters = { level: (label: string) => ({ level: label }) };
    this.#logger = pino(
      { level, base: null, timestamp: time, formatters },
      // Of the whole line, whatever brought it there.
      { write: (line: string) => write(printableJson(line)) },
    );
  }

  /** Everything from now on is said by this instance. Before the store is open, there is none. */
  identify(instance: string): void {
    this.#instance = instance;
  }

  /** One for each event, to open a Holdfast with. */
  listeners(): Listeners {
    const names = Object.keys(LEVELS) as EventName[];
    const heard = names.filter((name) => name === 'poll.done' || this.#isOn(LEVELS[name]));
    return Object.fromEntries(
      heard.map((name) => [name, (facts: object) => this.#hear(name, facts)]),
    );
  }

  say(level: LogLevel, message: string, facts: Facts = {}): void {
    const text = withoutCredentials(message);
    this.#logger[level]({ instance: this.#instance, ...plainFacts(facts) }, text);
  }

  #isOn(level: LogLevel): boolean {
    return this.#logger.isLevelEnabled(level);
  }

  #hear(name: EventName, happened: object): void {
    const facts = aboutTarget(name, plainFacts(happened));
    const level = this.#levelOf(name, facts);
    if (!this.#isOn(level)) return;
    const sentence = sentenceOf(name, facts, this.#instance);
    this.#logger[level]({ instance: this.#instance, event: name, ...facts }, sentence);
  }

  #levelOf(name: EventName, { target }: Facts): LogLevel {
    const level = LEVELS[name];
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

/** Leases of class `poll` and sessions are targets, and called so, that one search finds all about one. */
function aboutTarget(name: EventName, facts: Record<string, unknown>): Facts {
  const { leaseClass, key, ...rest } = facts;
  if (leaseClass === 'poll' && key !== undefined) return { target: key, ...rest };
  // Which event it listened for; the event is that it failed.
  if (name === 'listener.failed') return { listener: facts.event, error: facts.error };
  return typeof facts.session === 'string' ? { target: facts.session, ...facts } : facts;
}
