/**
 * The Holdfast behind a client. All `Redlock`s of one client object with the same options share it:
 * a hundred of them cost the connections of one. It lives as long as the client does.
 *
 * **Closed.** In: made; the client has ended; `close` was called; it could not be opened. Out: a
 * caller asks for a lock → open.
 *
 * **Open.** A lock was asked for. Out: the client has ended → closed; `close` was called → closed.
 *
 * A client that has ended grants no lock until it is ready again: a connection that is opened for
 * it would keep the process alive.
 */
import { Holdfast, type OpenOptions, open } from '../holdfast.ts';
import { prefixOf, type RedlockClient } from './client.ts';

/** What ioredis says, and programs for redlock compare with. */
export const CLIENT_ENDED = 'Connection is closed.';

/**
 * How many sets of options are remembered for a client. A program that passes other ones with each
 * `new Redlock` gets a Holdfast of its own for each beyond.
 */
const MAX_SHARED = 8;

/** A running routine of `using`. */
export interface RunningRoutine {
  readonly key: string;
  extensions: number;
}

export class SharedHoldfast {
  /** By the value of their lock. */
  readonly routines = new Map<string, RunningRoutine>();
  readonly #client: RedlockClient;
  readonly #options: OpenOptions;
  #opening: Promise<Holdfast> | null = null;
  #hasEnded = false;

  constructor(client: RedlockClient, options: OpenOptions) {
    this.#client = client;
    this.#options = options;
    listen(client, 'end', () => {
      this.#hasEnded = true;
      void this.close({ within: 0 });
    });
    listen(client, 'ready', () => {
      this.#hasEnded = false;
    });
  }

  /** Opened on first use. After a failure the next call tries again. */
  async open(): Promise<Holdfast> {
    if (this.#isOver) throw new Error(CLIENT_ENDED);
    const opening = this.#opening ?? this.#open();
    this.#opening = opening;
    try {
      return await opening;
    } catch (error) {
      if (this.#opening === opening) this.#opening = null;
      throw this.#isOver ? new Error(CLIENT_ENDED, { cause: error }) : error;
    }
  }

  /** Locks that are held expire. A `within` above 0 leaves time for routines to stop. */
  async close(options: { within?: number } = {}): Promise<void> {
    const client = this.#client;
    const opening = client instanceof Holdfast ? client : this.#opening?.catch(() => null);
    this.#opening = null;
    const holdfast = await opening;
    await holdfast?.close(options);
  }

  get #isOver(): boolean {
    return this.#hasEnded || hasEnded(this.#client);
  }

  async #open(): Promise<Holdfast> {
    const client = this.#client;
    const options = { ...prefixOf(client), ...this.#options };
    const holdfast = client instanceof Holdfast ? client : await open(client, options);
    holdfast.on('lease.extended', ({ key, holder }) => {
      const routine = this.routines.get(holder);
      if (routine?.key === key) routine.extensions++;
    });
    return holdfast;
  }
}

/** A Holdfast of its own for each address: only an object can be seen to end. */
export function sharedHoldfast(client: RedlockClient, options: OpenOptions): SharedHoldfast {
  if (typeof client === 'string') return new SharedHoldfast(client, options);
  const known = KNOWN.get(client) ?? [];
  const found = known.find((one) => isSame(one.options, options));
  if (found !== undefined) return found.shared;
  const shared = new SharedHoldfast(client, options);
  if (known.length < MAX_SHARED) KNOWN.set(client, [...known, { options: { ...options }, shared }]);
  return shared;
}

const KNOWN = new WeakMap<object, readonly { options: OpenOptions; shared: SharedHoldfast }[]>();

function isSame(one: object, other: object): boolean {
  const given = (options: object) =>
    Object.entries(options).filter(([, value]) => value !== undefined);
  const others = new Map<string, unknown>(given(other));
  const ones = given(one);
  return ones.length === others.size && ones.every(([name, value]) => others.get(name) === value);
}

/** Both node-redis and ioredis tell of these. */
function listen(client: RedlockClient, event: 'end' | 'ready', listener: () => void): void {
  if (typeof client !== 'object' || client instanceof Holdfast || !('on' in client)) return;
  const { on }: { on: unknown } = client;
  if (typeof on === 'function') on.call(client, event, listener);
}

/** Of a client that ended before it was passed here, only ioredis can tell. */
function hasEnded(client: RedlockClient): boolean {
  return typeof client === 'object' && 'status' in client && client.status === 'end';
}
