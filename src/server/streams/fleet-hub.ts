/**
 * Everybody who watches the fleet through this process. The core looks at the store once for all of them, and what it sees is put into bytes
 * once, too: a picture of ten thousand targets takes some ten milliseconds to write.
 */
import type { Clock, Timer } from '../../core/clock.ts';
import type { Fleet, FleetSighting } from '../../fleet/watch/fleet.ts';
import type { Caller } from '../http/route.ts';
import { changeJson, pictureJson } from '../routes/json/fleet-json.ts';
import { dataFrame } from './event-frames.ts';
import { type EventHubOptions, STREAM_LIMITS } from './event-hub.ts';
import { StreamClient } from './stream-client.ts';
import { StreamLimits } from './stream-limits.ts';

/** Proxies take a connection for dead after a minute or less without a byte. */
const BEAT_MS = 15_000;

export interface FleetHubParts {
  readonly fleet: Pick<Fleet, 'watch'>;
  readonly clock: Clock;
  readonly options?: EventHubOptions;
}

type Sightings = AsyncGenerator<FleetSighting, void, undefined>;

export class FleetHub {
  readonly #parts: FleetHubParts;
  readonly #limits: Required<EventHubOptions>;
  readonly #places: StreamLimits;
  readonly #clients = new Set<StreamClient>();
  /** By picture or change: the same one is seen by many. */
  readonly #encoded = new WeakMap<object, Uint8Array>();
  #beat: Timer | null = null;

  constructor(parts: FleetHubParts) {
    this.#parts = parts;
    this.#limits = { ...STREAM_LIMITS, ...parts.options };
    this.#places = new StreamLimits(this.#limits, 'the fleet');
  }

  /** How many watch. */
  get size(): number {
    return this.#clients.size;
  }

  /** The stream for a new client, once there is a first picture; a problem where there are too many, and an error where the store does not answer. */
  async watch(caller: Caller, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const { tokenId } = caller;
    this.#places.take(tokenId);
    const over = new AbortController();
    const onAbort = () => over.abort();
    signal.addEventListener('abort', onAbort, { once: true });
    const end = () => {
      signal.removeEventListener('abort', onAbort);
      over.abort();
      this.#places.leave(tokenId);
    };
    try {
      if (signal.aborted) onAbort();
      const sightings = this.#parts.fleet.watch({ signal: over.signal });
      const first = await sightings.next();
      const bytes = first.done === true ? new Uint8Array() : this.#bytesOf(first.value);
      return this.#begin({ caller, sightings, bytes, signal: over.signal, end });
    } catch (error) {
      end();
      throw error;
    }
  }

  /** Says good-bye to all, and takes no more. */
  close(): void {
    this.#places.close();
    for (const client of this.#clients) client.end('closing');
  }

  #begin(begun: {
    caller: Caller;
    sightings: Sightings;
    bytes: Uint8Array;
    signal: AbortSignal;
    end: () => void;
  }): ReadableStream<Uint8Array> {
    const { caller, sightings, bytes, signal, end } = begun;
    const { tokenId, expiresAtMs } = caller;
    const client = new StreamClient({
      clock: this.#parts.clock,
      tokenId,
      expiresAtMs,
      // The first picture is not to be held against who has not had the time to read it.
      mostQueuedBytes: this.#limits.queuedBytes + bytes.byteLength,
      onEnd: () => {
        signal.removeEventListener('abort', onAbort);
        this.#forget(client);
        end();
      },
    });
    const onAbort = () => client.end('closing');
    this.#clients.add(client);
    client.begin();
    client.send(bytes);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    this.#armBeat();
    this.#follow(client, sightings).catch(() => client.end('failed'));
    return client.stream;
  }

  async #follow(client: StreamClient, sightings: Sightings): Promise<void> {
    for await (const sighting of sightings) {
      if (client.isOver) return;
      client.send(this.#bytesOf(sighting));
    }
    client.end('closing');
  }

  #bytesOf(sighting: FleetSighting): Uint8Array {
    switch (sighting.kind) {
      case 'picture':
        return this.#once(sighting.picture, () =>
          dataFrame('picture', pictureJson(sighting.picture)),
        );
      case 'change':
        return this.#once(sighting.change, () => dataFrame('change', changeJson(sighting.change)));
      default:
        return encoder.encode(dataFrame(sighting.kind, {}));
    }
  }

  #once(seen: object, text: () => string): Uint8Array {
    const known = this.#encoded.get(seen);
    if (known !== undefined) return known;
    const bytes = encoder.encode(text());
    this.#encoded.set(seen, bytes);
    return bytes;
  }

  #forget(client: StreamClient): void {
    this.#clients.delete(client);
    if (this.#clients.size > 0) return;
    this.#beat?.cancel();
    this.#beat = null;
  }

  #armBeat(): void {
    this.#beat ??= this.#parts.clock.after(BEAT_MS, () => {
      this.#beat = null;
      for (const client of this.#clients) client.beat();
      if (this.#clients.size > 0) this.#armBeat();
    });
  }
}

const encoder = new TextEncoder();
