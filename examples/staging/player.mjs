/** A process of an example: it says what it does over a channel, may be told something, and is killed, frozen, woken and stopped. */
import { fork } from 'node:child_process';
import { once } from 'node:events';

const LEASH = new URL('leash.mjs', import.meta.url).href;
const players = new Set();

/** Whoever is still there when the example ends. */
export function killAll() {
  for (const player of players) player.signal('SIGKILL');
}

export class Player {
  name;
  /** What it has said, the oldest first. */
  heard = [];
  #child;

  constructor(file, name, env = {}, options = {}) {
    this.name = name;
    this.#child = fork(file, [name], {
      env: { ...process.env, ...env },
      execArgv: ['--import', LEASH],
      // A group of its own: whoever it starts itself dies with it, and Ctrl-C is for who directs.
      detached: true,
      ...options,
    });
    this.#child.on('message', (message) => this.heard.push(message));
    players.add(this);
    this.#child.once('exit', () => players.delete(this));
  }

  get stdout() {
    return this.#child.stdout;
  }

  /** The last that it said about something. */
  last(said) {
    return this.heard.findLast((message) => message.said === said);
  }

  /** Tells it to do something. */
  send(message) {
    this.#child.send(message);
  }

  /** SIGSTOP, until SIGCONT. */
  freeze() {
    this.send({ act: 'freeze' });
  }

  /** With all that it has started. SIGKILL: dead at once. SIGCONT: no longer frozen. SIGTERM: asked to stop. */
  signal(signal) {
    try {
      process.kill(-this.#child.pid, signal);
    } catch (error) {
      if (error.code !== 'ESRCH') throw error;
    }
  }

  /** Its exit code, once it has ended; null if a signal ended it. */
  async ended() {
    if (this.#child.exitCode === null && this.#child.signalCode === null)
      await once(this.#child, 'exit');
    return this.#child.exitCode;
  }
}
