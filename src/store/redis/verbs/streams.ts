import { sized } from '../../port/limits.ts';
import { DEAD_PAGE, type DeadEntry, type StreamStore } from '../../port/stream-store.ts';
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

export function redisStreams(work: WorkConnection): StreamStore {
  return {
    async append(stream, entries, call) {
      if (entries.length === 0) return;
      const each = entries.map(({ lane, priority, value }) => {
        const json = sized('stream entry', lane, asJson(value, 'an entry of a stream'));
        return [lane, String(priority), json];
      });
      await work.run(scripts['stream/append'], [stream, ...each.flat()], call);
    },
    async consume(stream, call) {
      const most = String(atMost(call.most, TAKE_MOST));
      const args = [stream, call.consumer, most, String(call.claimMs)];
      const found = (await work.run(scripts['stream/consume'], args, call)) as ScriptDelivery[];
      return found.map(([lane, fence, tries, json]) => {
        return { lane, fence, tries, value: jsonOrText(json) };
      });
    },
    extend: (stream, held, call) => work.extend(stream, held, call),
    ack(stream, held, call) {
      const each = held.map(({ lane, fence }) => [lane, String(fence)]);
      return work.runHeld(scripts['stream/ack'], [stream], each, call);
    },
    retry(stream, held, call) {
      const each = held.map(({ lane, fence, afterMs }) => [lane, String(fence), String(afterMs)]);
      return work.runHeld(scripts['stream/retry'], [stream], each, call);
    },
    bury(stream, held, call) {
      const each = held.map(({ lane, fence, reason }) => [lane, String(fence), reason]);
      return work.runHeld(scripts['stream/bury'], [stream], each, call);
    },
    async dead(stream, { after, most, timeoutMs }) {
      const call = { after, size: atMost(most, DEAD_PAGE), timeoutMs };
      const { rows, more } = await work.page('dead', work.keys.deadOf(stream), call);
      return { entries: rows.map(deadOf), more };
    },
    async drop(stream, ids, call) {
      const own = ids.filter(isStreamId);
      if (own.length === 0) return 0;
      return (await work.send('drop', ['XDEL', work.keys.deadOf(stream), ...own], call)) as number;
    },
    async names(call) {
      return (await work.send('names', ['ZRANGE', work.keys.streams, '0', '-1'], call)) as string[];
    },
  };
}

/** A plain stream keeps the value as JSON; a stream of actions, the id and record of the action. */
function deadOf([id, fields]: StreamRow): DeadEntry {
  const [, lane = '', , tries = '', , reason = '', kind, found = '', , record = ''] = fields;
  const value: unknown = kind === 'a' ? actionOf(found, record) : jsonOrText(found);
  return { id, lane, value, tries: Number(tries), reason, atMs: addedAtMs(id) };
}
