import { sized } from '../../port/limits.ts';
import type { Call } from '../../port/store.ts';
import { DEAD_PAGE, type Held, type HeldReply, type StreamStore } from '../../port/stream-store.ts';
import { asJson, pageOf, positionOf } from '../../values.ts';
import type { FunctionConnection, ReturnedHint } from './function-connection.ts';

export function postgresStreams(functions: FunctionConnection): StreamStore {
  const each = async <H extends Held>(
    verb: string,
    stream: string,
    held: readonly H[],
    call: Call,
    more: (held: H) => string | number | null,
  ): Promise<HeldReply[]> => {
    if (held.length === 0) return [];
    const named = held.map((one) => [one.lane, one.fence, more(one)]);
    const request = { stream, verb, held: named };
    const replies = await functions.call<boolean[]>(verb, 'stream_held', request, call);
    return replies.map((isDone) => (isDone ? 'done' : 'gone'));
  };
  return {
    async append(stream, entries, call) {
      if (entries.length === 0) return;
      const added = entries.map(({ lane, priority, value }) => {
        return [lane, priority, sized('stream entry', lane, asJson(value))];
      });
      const request = { stream, entries: added };
      const operation = 'append to stream';
      const hints = await functions.call<ReturnedHint[]>(operation, 'stream_append', request, call);
      functions.send(hints);
    },
    async consume(stream, call) {
      type Row = [lane: string, fence: number, json: string, tries: number];
      const { consumer, most, claimMs: claim } = call;
      const request = { stream, consumer, most, claim };
      const rows = await functions.call<Row[]>('consume', 'stream_consume', request, call);
      return rows.map(([lane, fence, json, tries]) => {
        return { lane, fence, value: JSON.parse(json), tries };
      });
    },
    extend(stream, held, call) {
      return each('extend', stream, held, call, () => call.claimMs);
    },
    ack(stream, held, call) {
      return each('ack', stream, held, call, () => null);
    },
    retry(stream, held, call) {
      return each('retry', stream, held, call, ({ afterMs }) => afterMs);
    },
    bury(stream, held, call) {
      return each('bury', stream, held, call, ({ reason }) => JSON.stringify(reason));
    },
    async dead(stream, call) {
      type Row = [string, string, string, number, string, number];
      const size = Math.min(call.most ?? DEAD_PAGE, DEAD_PAGE);
      const request = { stream, after: positionOf(call.after), most: size };
      const rows = await functions.call<Row[]>('read the dead', 'stream_dead', request, call);
      const { page, more } = pageOf(rows, size);
      const entries = page.map(([id, lane, json, tries, reason, atMs]) => {
        return { id, lane, value: JSON.parse(json), tries, reason: JSON.parse(reason), atMs };
      });
      return { entries, more };
    },
    async drop(stream, ids, call) {
      const request = { stream, ids: ids.map(positionOf) };
      return functions.call('drop', 'stream_drop', request, call);
    },
    names(call) {
      return functions.call('name streams', 'stream_names', {}, call);
    },
  };
}
