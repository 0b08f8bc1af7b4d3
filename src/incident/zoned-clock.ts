/** Moments as people of one time zone read them. */
import { ConfigError } from '../core/errors.ts';

export class ZonedClock {
  /** The name of the zone, such as `Europe/Berlin`. */
  readonly zone: string;
  readonly #day: Intl.DateTimeFormat;
  readonly #clock: Intl.DateTimeFormat;
  readonly #minute: Intl.DateTimeFormat;

  /** Without a name, the zone of this process. */
  constructor(zone?: string, field = 'zone') {
    try {
      const timeZone = zone ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;
      const minute = { timeZone, hourCycle: 'h23', hour: '2-digit', minute: '2-digit' } as const;
      // The one locale whose dates are in the order of ISO 8601.
      this.#day = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' });
      this.#minute = new Intl.DateTimeFormat('en-GB', minute);
      this.#clock = new Intl.DateTimeFormat('en-GB', {
        ...minute,
        second: '2-digit',
        fractionalSecondDigits: 3,
      });
      this.zone = timeZone;
    } catch {
      const rule = 'the name of a time zone, such as UTC or Europe/Berlin';
      throw new ConfigError({ field, value: zone, rule });
    }
  }

  /** `2026-01-31` */
  day(ms: number): string {
    return this.#day.format(ms);
  }

  /** `03:10:00.250` */
  clock(ms: number): string {
    return this.#clock.format(ms);
  }

  /** `03:10` */
  minute(ms: number): string {
    return this.#minute.format(ms);
  }

  /** `2026-01-31 03:10:00.250`, without the milliseconds if there are none. */
  moment(ms: number): string {
    return `${this.day(ms)} ${this.clock(ms).replace(/\.000$/, '')}`;
  }

  /** `2026-01-31 03:10:00 to 03:20:00`; the second date only if it is another one. */
  range(fromMs: number, toMs: number): string {
    const isSameDay = this.day(fromMs) === this.day(toMs);
    const to = this.moment(toMs);
    return `${this.moment(fromMs)} to ${isSameDay ? to.slice(to.indexOf(' ') + 1) : to}`;
  }
}
