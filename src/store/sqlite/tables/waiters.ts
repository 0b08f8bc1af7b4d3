import { wakeHint } from '../../port/wake-hint.ts';
import type { Tx } from '../file/sqlite-connection.ts';
import type { SqliteSignals } from '../verbs/signals.ts';
import type { Names } from './names.ts';

/** Who waits for which key, in the order in which they began. */
export class Waiters {
  readonly #names: Names;
  readonly #signals: SqliteSignals;

  constructor(parts: { names: Names; signals: SqliteSignals }) {
    this.#names = parts.names;
    this.#signals = parts.signals;
  }

  /** Notes an inbox, which keeps the place it may already have. */
  join({ session, nowMs }: Tx, key: string, inbox: string, waitedMs: number, keptMs: number): void {
    session.run(
      'INSERT INTO lines VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET expires = max(expires, excluded.expires)',
      key,
      this.#names.of(inbox),
      nowMs - waitedMs,
      nowMs + keptMs,
    );
    this.#signals.expect(key);
  }

  leave({ session }: Tx, key: string, inbox: string): void {
    session.run('DELETE FROM lines WHERE key = ? AND inbox = ?', key, this.#names.of(inbox));
    this.#signals.expectNoMore(key);
  }

  /** Tells the first in line who still listen that the key may be free; says how many. Who does not listen is dropped. */
  wake(tx: Tx, key: string, { most, apartMs } = { most: 1, apartMs: 0 }): number {
    const { session, nowMs } = tx;
    const line = session.rows<[string, number]>(
      'SELECT inbox, expires FROM lines WHERE key = ? ORDER BY since',
      key,
    );
    let told = 0;
    for (const [inbox, expires] of line) {
      session.run('DELETE FROM lines WHERE key = ? AND inbox = ?', key, inbox);
      const hint = wakeHint({ key: this.#names.plain(key), inMs: told * apartMs });
      if (expires > nowMs && this.#signals.send(tx, inbox, hint)) told++;
      if (told === most) break;
    }
    return told;
  }
}
