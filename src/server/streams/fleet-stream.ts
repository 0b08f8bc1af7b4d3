/**
 * Streams the fleet to all clients of this process. `Fleet.watch` reads the store once for all of
 * them, and each picture is encoded once: ten thousand targets take some ten milliseconds.
 */
import type { Clock } from '../../core/clock.ts';
import type { Fleet, FleetSighting } from '../../fleet/watch/fleet.ts';
import type { Caller } from '../http/route.ts';
import { changeJson, pictureJson } from '../routes/json/fleet-json.ts';
import { ClientSet, type StreamOptions } from './client-set.ts';
import { dataFrame } from './sse-frames.ts';
import { StreamClient } from './stream-client.ts';

type Updates = AsyncGenerator<FleetSighting, void, undefined>;

export class FleetStream {
  readonly #fleet: Pick<Fleet, 'watch'>;
  readonly #clock: Clock;
  readonly #clients: ClientSet<StreamClient>;
  /** By picture or change, which all clients share. */
  readonly #encoded = new WeakMap<object, Uint8Array>();

  constructor(fleet: Pick<Fleet, 'watch'>, clock: Clock, options: StreamOptions = {}) {
    this.#fleet = fleet;
    this.#clock = clock;
    this.#clients = new ClientSet(clock, options, 'the fleet');
  }

  /** The number of clients. */
  get size(): number {
    return this.#clients.size;
  }

  /**
   * The stream for a new client, after the first picture is known. Throws a problem where there are
   * too many clients, and the store's error where it does not answer.
   */
  async watch(caller: Caller, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    this.#clients.enter(caller.tokenId);
    const over = new AbortController();
    const onAbort = () => over.abort();
    signal.addEventListener('abort', onAbort, { once: true });
    const end = () => {
      signal.removeEventListener('abort', onAbort);
      over.abort();
      this.#clients.leave(caller.tokenId);
    };
    try {
      if (signal.aborted) onAbort();
      const updates = this.#fleet.watch({ signal: over.signal });
      const first = await updates.next();
      const bytes = first.done === true ? new Uint8Array() : this.#encode(first.value);
      const client = this.#addClient(caller, bytes, over.signal, end);
      this.#follow(client, updates).catch(() => client.end('failed'));
      return client.stream;
    } catch (error) {
      end();
      throw error;
    }
  }

  /** Ends all streams, and admits no more clients. */
  close(): void {
    this.#clients.close();
  }

  #addClient(
    caller: Caller,
    picture: Uint8Array,
    signal: AbortSignal,
    end: () => void,
  ): StreamClient {
    // The first picture does not count against the limit: the client had no time to read it yet.
    const maxQueuedBytes = this.#clients.queuedBytes + picture.byteLength;
    const onAbort = () => client.end('closing');
    const onEnd = () => {
      signal.removeEventListener('abort', onAbort);
      this.#clients.remove(client);
      end();
    };
    const client = new StreamClient(this.#clock, { caller, maxQueuedBytes, onEnd });
    this.#clients.add(client);
    client.start();
    client.send(picture);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    return client;
  }

  async #follow(client: StreamClient, updates: Updates): Promise<void> {
    for await (const update of updates) {
      if (client.isEnded) return;
      client.send(this.#encode(update));
    }
    client.end('closing');
  }

  #encode(update: FleetSighting): Uint8Array {
    switch (update.kind) {
      case 'picture':
        return this.#encodeOnce(update.picture, () =>
          dataFrame('picture', pictureJson(update.picture)),
        );
      case 'change':
        return this.#encodeOnce(update.change, () =>
          dataFrame('change', changeJson(update.change)),
        );
      default:
        return encoder.encode(dataFrame(update.kind, {}));
    }
  }

  #encodeOnce(shared: object, text: () => string): Uint8Array {
    const known = this.#encoded.get(shared);
    if (known !== undefined) return known;
    const bytes = encoder.encode(text());
    this.#encoded.set(shared, bytes);
    return bytes;
  }
}

const encoder = new TextEncoder();
