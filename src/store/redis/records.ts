import type { Call, PutCall, PutReply, RecordStore, StoredRecord } from '../store.ts';
import type { Connection } from './connection.ts';
import type { Keys } from './keys.ts';
import { scripts } from './scripts.ts';

export class RedisRecords implements RecordStore {
  readonly #keys: Keys;
  readonly #connection: Connection;

  constructor(parts: { keys: Keys; connection: Connection }) {
    this.#keys = parts.keys;
    this.#connection = parts.connection;
  }

  async get(key: string, call: Call): Promise<StoredRecord | null> {
    const args = ['HMGET', this.#keys.record(key), 'value', 'revision', 'fence'];
    const reply = await this.#connection.send('get', args, call.timeoutMs);
    const [value, revision, fence] = reply as [string | null, string | null, string | null];
    if (value === null) return null;
    return { value: JSON.parse(value), revision: Number(revision), fence: Number(fence ?? 0) };
  }

  async put(key: string, value: unknown, call: PutCall): Promise<PutReply> {
    const args = [JSON.stringify(value), call.fence === undefined ? '' : String(call.fence)];
    const reply = await this.#connection.script(
      scripts.put,
      [this.#keys.record(key)],
      args,
      call.timeoutMs,
    );
    const [written, number] = reply as [0 | 1, number];
    return written === 1 ? { kind: 'written', revision: number } : { kind: 'stale', seen: number };
  }
}
