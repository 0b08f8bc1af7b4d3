import { sized } from '../../port/limits.ts';
import type { Call } from '../../port/store.ts';
import {
  type Burial,
  type ConsumeCall,
  DEAD_PAGE,
  type DeadCall,
  type DeadPage,
  type Delivery,
  type ExtendCall,
  type Held,
  type HeldReply,
  type RetryLater,
  type StreamEntry,
  type StreamStore,
} from '../../port/stream-store.ts';
import { asJson, pageOf, positionOf } from '../../values.ts';
import type { FunctionConnection, ReturnedHint } from './function-connection.ts';

export class PostgresStreams implements StreamStore {
  readonly #functions: FunctionConnection;

  constructor(functions: FunctionConnection) {
    this.#functions = functions;
  }

  async append(stream: string, entries: readonly StreamEntry[], call: Call): Promise<void> {
    if (entries.length === 0) return;
    const added = entries.map(({ lane, priority, value }) => {
      return [lane, priority, sized('stream entry', lane, asJson(value))];
    });
    const request = { stream, entries: added };
    const operation = 'append to stream';
    const hints = await this.#functions.call<ReturnedHint[]>(
      operation,
      'stream_append',
      request,
      call,
    );
    this.#functions.send(hints);
  }

  async consume(stream: string, call: ConsumeCall): Promise<Delivery[]> {
    type Row = [lane: string, fence: number, json: string, tries: number];
    const { consumer, most, claimMs: claim } = call;
    const request = { stream, consumer, most, claim };
    const rows = await this.#functions.call<Row[]>('consume', 'stream_consume', request, call);
    return rows.map(([lane, fence, json, tries]) => {
      return { lane, fence, value: JSON.parse(json), tries };
    });
  }

  extend(stream: string, held: readonly Held[], call: ExtendCall): Promise<HeldReply[]> {
    return this.#each('extend', stream, held, call, () => call.claimMs);
  }

  ack(stream: string, held: readonly Held[], call: Call): Promise<HeldReply[]> {
    return this.#each('ack', stream, held, call, () => null);
  }

  retry(stream: string, held: readonly RetryLater[], call: Call): Promise<HeldReply[]> {
    return this.#each('retry', stream, held, call, ({ afterMs }) => afterMs);
  }

  bury(stream: string, held: readonly Burial[], call: Call): Promise<HeldReply[]> {
    return this.#each('bury', stream, held, call, ({ reason }) => JSON.stringify(reason));
  }

  async dead(stream: string, call: DeadCall): Promise<DeadPage> {
    type Row = [string, string, string, number, string, number];
    const size = Math.min(call.most ?? DEAD_PAGE, DEAD_PAGE);
    const request = { stream, after: positionOf(call.after), most: size };
    const rows = await this.#functions.call<Row[]>('read the dead', 'stream_dead', request, call);
    const { page, more } = pageOf(rows, size);
    const entries = page.map(([id, lane, json, tries, reason, atMs]) => {
      return { id, lane, value: JSON.parse(json), tries, reason: JSON.parse(reason), atMs };
    });
    return { entries, more };
  }

  async drop(stream: string, ids: readonly string[], call: Call): Promise<number> {
    const request = { stream, ids: ids.map(positionOf) };
    return this.#functions.call('drop', 'stream_drop', request, call);
  }

  names(call: Call): Promise<string[]> {
    return this.#functions.call('name streams', 'stream_names', {}, call);
  }

  async #each<H extends Held>(
    verb: string,
    stream: string,
    held: readonly H[],
    call: Call,
    more: (held: H) => string | number | null,
  ): Promise<HeldReply[]> {
    if (held.length === 0) return [];
    const named = held.map((one) => [one.lane, one.fence, more(one)]);
    const request = { stream, verb, held: named };
    const replies = await this.#functions.call<boolean[]>(verb, 'stream_held', request, call);
    return replies.map((isDone) => (isDone ? 'done' : 'gone'));
  }
}
