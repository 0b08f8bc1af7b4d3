/** Passed on to the command: what a person, a terminal or a service manager tells us is meant for it. */
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
/** Before there is a command, these end us. */
const ENDING: readonly string[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];

/** The command, as far as signals go. `then` is called when the signal is on its way. */
type PassOn = (signal: NodeJS.Signals, then?: () => void) => void;

/** What becomes of the signals that this process gets. */
export class Signals {
  readonly #ending = new AbortController();
  readonly #listeners = new Map<NodeJS.Signals, () => void>();
  #passOn: PassOn | null = null;

  constructor() {
    for (const signal of PASSED_ON) this.#on(signal, () => this.#hear(signal));
    this.#on('SIGTSTP', () => this.#suspend());
  }

  /** Fires, with the signal as its reason, when we are told to end before there is a command. */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  /** The signal that it fired for. */
  get endedBy(): NodeJS.Signals {
    return this.ending.reason as NodeJS.Signals;
  }

  /** From now on there is a command to pass signals on to. */
  passOnTo(command: PassOn): void {
    this.#passOn = command;
  }

  /** Signals do again what they do by default. */
  close(): void {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener);
    this.#listeners.clear();
  }

  #on(signal: NodeJS.Signals, listener: () => void): void {
    this.#listeners.set(signal, listener);
    process.on(signal, listener);
  }

  #hear(signal: NodeJS.Signals): void {
    if (this.#passOn !== null) this.#passOn(signal);
    else if (ENDING.includes(signal)) this.#ending.abort(signal);
  }

  /**
   * Ctrl-Z: the command stands still, then we do. It gets SIGSTOP, because a group whose parent is in another session
   * does not stop for SIGTSTP. SIGCONT wakes us, and is passed on.
   */
  #suspend(): void {
    const stopSelf = () => process.kill(process.pid, 'SIGSTOP');
    if (this.#passOn === null) stopSelf();
    else this.#passOn('SIGSTOP', stopSelf);
  }
}
