import { sized } from '../../port/limits.ts';
import type { Call } from '../../port/store.ts';
import {
  type Burial,
  type ConsumeCall,
  DEAD_PAGE,
  type DeadCall,
  type DeadEntry,
  type DeadPage,
  type Delivery,
  type ExtendCall,
  type Held,
  type HeldReply,
  type RetryLater,
  type StreamEntry,
  type StreamStore,
} from '../../port/stream-store.ts';
import { scripts } from '../scripts.ts';
import { actionOf } from './action-texts.ts';
import {
  addedAtMs,
  asJson,
  atMost,
  isStreamId,
  jsonOrText,
  type StreamRow,
  TAKE_MOST,
  type WorkConnection,
} from './work-connection.ts';

type ScriptDelivery = [lane: string, fence: number, tries: number, json: string];

export class RedisStreams implements StreamStore {
  readonly #work: WorkConnection;

  constructor(work: WorkConnection) {
    this.#work = work;
  }

  async append(stream: string, entries: readonly StreamEntry[], call: Call): Promise<void> {
    if (entries.length === 0) return;
    const each = entries.map(({ lane, priority, value }) => {
      const json = sized('stream entry', lane, asJson(value, 'an entry of a stream'));
      return [lane, String(priority), json];
    });
    await this.#work.run(scripts['stream/append'], [stream, ...each.flat()], call);
  }

  async consume(stream: string, call: ConsumeCall): Promise<Delivery[]> {
    const args = [
      stream,
      call.consumer,
      String(atMost(call.most, TAKE_MOST)),
      String(call.claimMs),
    ];
    const found = (await this.#work.run(scripts['stream/consume'], args, call)) as ScriptDelivery[];
    return found.map(([lane, fence, tries, json]) => {
      return { lane, fence, tries, value: jsonOrText(json) };
    });
  }

  extend(stream: string, held: readonly Held[], call: ExtendCall): Promise<HeldReply[]> {
    return this.#work.extend(stream, held, call);
  }

  ack(stream: string, held: readonly Held[], call: Call): Promise<HeldReply[]> {
    const each = held.map(({ lane, fence }) => [lane, String(fence)]);
    return this.#work.runHeld(scripts['stream/ack'], [stream], each, call);
  }

  retry(stream: string, held: readonly RetryLater[], call: Call): Promise<HeldReply[]> {
    const each = held.map(({ lane, fence, afterMs }) => [lane, String(fence), String(afterMs)]);
    return this.#work.runHeld(scripts['stream/retry'], [stream], each, call);
  }

  bury(stream: string, held: readonly Burial[], call: Call): Promise<HeldReply[]> {
    const each = held.map(({ lane, fence, reason }) => [lane, String(fence), reason]);
    return this.#work.runHeld(scripts['stream/bury'], [stream], each, call);
  }

  async dead(stream: string, { after, most, timeoutMs }: DeadCall): Promise<DeadPage> {
    const key = this.#work.keys.deadOf(stream);
    const call = { after, size: atMost(most, DEAD_PAGE), timeoutMs };
    const { rows, more } = await this.#work.page('dead', key, call);
    return { entries: rows.map(deadOf), more };
  }

  async drop(stream: string, ids: readonly string[], call: Call): Promise<number> {
    const own = ids.filter(isStreamId);
    if (own.length === 0) return 0;
    const args = ['XDEL', this.#work.keys.deadOf(stream), ...own] as const;
    return (await this.#work.send('drop', args, call)) as number;
  }

  async names(call: Call): Promise<string[]> {
    const args = ['ZRANGE', this.#work.keys.streams, '0', '-1'] as const;
    return (await this.#work.send('names', args, call)) as string[];
  }
}

/** A plain stream keeps the value as JSON; a stream of actions, the id and record of the action. */
function deadOf([id, fields]: StreamRow): DeadEntry {
  const [, lane = '', , tries = '', , reason = '', kind, found = '', , record = ''] = fields;
  const value: unknown = kind === 'a' ? actionOf(found, record) : jsonOrText(found);
  return { id, lane, value, tries: Number(tries), reason, atMs: addedAtMs(id) };
}
