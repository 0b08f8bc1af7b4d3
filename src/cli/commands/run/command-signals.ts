/** Passes signals of a user, a terminal or a service manager on to the command. */
const PASSED_ON = [
  'SIGINT',
  'SIGTERM',
  'SIGHUP',
  'SIGQUIT',
  'SIGUSR1',
  'SIGUSR2',
  'SIGWINCH',
  'SIGCONT',
] as const;
/** Before the command runs, these end this process. */
const ENDING: readonly string[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];

/** Sends a signal to the command. `then` is called when it has been sent. */
type PassOn = (signal: NodeJS.Signals, then?: () => void) => void;

/** Handles the signals that this process gets. */
export class CommandSignals {
  readonly #ending = new AbortController();
  readonly #listeners = new Map<NodeJS.Signals, () => void>();
  #passOn: PassOn | null = null;

  constructor() {
    for (const signal of PASSED_ON) this.#on(signal, () => this.#handle(signal));
    this.#on('SIGTSTP', () => this.#suspend());
  }

  /**
   * Aborts when a signal asks this process to end before the command runs. The signal is the
   * reason.
   */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  /** The signal that aborted `ending`. */
  get endedBy(): NodeJS.Signals {
    return this.ending.reason as NodeJS.Signals;
  }

  /** From now on signals go to the command; null: it has ended, and they end this process. */
  passOnTo(command: PassOn | null): void {
    this.#passOn = command;
  }

  /** Restores the default effect of signals. */
  close(): void {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener);
    this.#listeners.clear();
  }

  #on(signal: NodeJS.Signals, listener: () => void): void {
    this.#listeners.set(signal, listener);
    process.on(signal, listener);
  }

  #handle(signal: NodeJS.Signals): void {
    if (this.#passOn !== null) this.#passOn(signal);
    else if (ENDING.includes(signal)) this.#ending.abort(signal);
  }

  /**
   * Ctrl-Z stops the command, then this process. The command gets SIGSTOP, because a group whose
   * parent is in another session ignores SIGTSTP. SIGCONT wakes this process, which passes it on to
   * the command.
   */
  #suspend(): void {
    const stopSelf = () => process.kill(process.pid, 'SIGSTOP');
    if (this.#passOn === null) stopSelf();
    else this.#passOn('SIGSTOP', stopSelf);
  }
}
