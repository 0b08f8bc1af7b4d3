/**
 * The log of one instance: a subscriber of the event catalogue. One line of JSON per event, with the time, the instance,
 * the target where there is one, the event, its facts, and the same in words.
 */
import { type Logger, pino } from 'pino';
import type { Clock } from '../base/clock.ts';
import type { EventName, Listener } from '../base/events.ts';
import { type Facts, plainFacts, printableJson, withoutCredentials } from './facts.ts';
import { sentenceOf } from './sentences.ts';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * `error`: something that this instance is there for does not work. `warn`: it lost something, or may soon. `info`: it did
 * what it should, and ownership changed or was kept. `debug`: what happens all the time.
 */
const LEVELS: Readonly<Record<EventName, LogLevel>> = {
  'lease.acquired': 'info',
  'lease.refused': 'info',
  'lease.renewed': 'info',
  'lease.extended': 'debug',
  'lease.uncertain': 'warn',
  'lease.confirmed': 'info',
  'lease.reasserted': 'warn',
  'lease.releasing': 'debug',
  'lease.released': 'info',
  'lease.abandoned': 'warn',
  'lease.transferred': 'info',
  'lease.lost': 'warn',
  'lease.revoked': 'warn',
  'lease.returned': 'warn',
  'leader.elected': 'info',
  'leader.lost': 'info',
  'leader.failed': 'error',
  'member.joined': 'info',
  'member.left': 'info',
  'member.draining': 'info',
  'member.undrained': 'info',
  'fleet.planned': 'debug',
  'fleet.asked': 'debug',
  'fleet.stalled': 'error',
  'fleet.resumed': 'info',
  'session.added': 'info',
  'session.changed': 'info',
  'session.paused': 'info',
  'session.resumed': 'info',
  'session.removed': 'info',
  'session.unreadable': 'warn',
  'poll.done': 'debug',
  'poll.failed': 'warn',
  'poll.stuck': 'error',
  'poll.settled': 'info',
  'result.refused': 'warn',
  'result.failed': 'warn',
  'log.dropped': 'error',
  'loop.delayed': 'warn',
  'store.connected': 'info',
  'store.disconnected': 'warn',
  'store.forgot': 'warn',
  'store.quarantined': 'warn',
  'store.warned': 'warn',
  'listener.failed': 'error',
};

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
    this.#logger[level]({ instance: this.#instance, ...facts, event: name }, sentence);
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
  if (name === 'listener.failed') return { listener: facts.event, error: facts.error };
  return typeof facts.session === 'string' ? { target: facts.session, ...facts } : facts;
}
