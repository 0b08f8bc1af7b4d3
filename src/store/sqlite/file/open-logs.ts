/**
 * The logs that this process has open, by the mark of their file. SQLite has one log per file and process: a connection
 * made after the log was removed would read the index of the removed log together with the content of the new one.
 */
export class OpenLogs {
  readonly #logs = new Map<string, { readonly log: string; users: number }>();

  /** Whether a file with this log may be opened. */
  fits(file: string, log: string): boolean {
    const known = this.#logs.get(file);
    return known === undefined || known.log === log;
  }

  enter(file: string, log: string): void {
    const known = this.#logs.get(file);
    if (known === undefined) this.#logs.set(file, { log, users: 1 });
    else known.users++;
  }

  leave(file: string): void {
    const known = this.#logs.get(file);
    if (known !== undefined && --known.users === 0) this.#logs.delete(file);
  }
}
