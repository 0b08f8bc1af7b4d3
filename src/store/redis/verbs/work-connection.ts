import { type Clock, timeLeft } from '../../../core/clock.ts';
import { KeyForeignError, StoreRefusedError } from '../../../core/errors.ts';
import type { BaseRuntime } from '../../../core/runtime.ts';
import type { Call } from '../../port/store.ts';
import type { HeldReply } from '../../port/stream-store.ts';
import type { Keys } from '../keys.ts';
import { type Script, scripts } from '../scripts.ts';
import { onlyReply, type Servers } from '../topology/servers.ts';

/** The most items of one request: while a script works on them, Redis serves no other request. */
export const CHUNK = 200;

/** The most entries that one request takes. */
export const TAKE_MOST = 1_000;

/** The form of the ids of a Redis Stream. Others are not sent to Redis. */
const STREAM_ID = /^\d{1,15}-\d{1,16}$/;

export function isStreamId(id: string): boolean {
  return STREAM_ID.test(id);
}

export type StreamRow = [id: string, fields: string[]];

/**
 * Sends the verbs of streams, workflows and intents. All of their keys have one hash tag, so each
 * verb is one script, even on a Cluster. There the verbs wait while the slot moves to another
 * server, because a script that names keys itself must find all of them or none.
 */
export class WorkConnection {
  readonly keys: Keys;
  readonly #servers: Servers;
  readonly #clock: Clock;

  constructor({ clock }: BaseRuntime, keys: Keys, servers: Servers) {
    this.keys = keys;
    this.#servers = servers;
    this.#clock = clock;
  }

  async run(script: Script, args: readonly string[], { timeoutMs }: Call): Promise<unknown> {
    const keys = [this.keys.bus];
    const perKey = [[this.keys.channel(''), ...args]];
    // Declares a key that never exists: then Redis answers TRYAGAIN while only some keys of the
    // slot have arrived.
    const work = { script, keys, perKey, withFences: true };
    try {
      return onlyReply(await this.#servers.run(work, timeoutMs));
    } catch (error) {
      // A script reports a key of another type as an error of Lua, which does not name the key.
      throw asForeign(error, this.keys.hubKeys);
    }
  }

  /** Runs a verb for many items, in chunks. Returns one reply for each item. */
  async runEach(
    script: Script,
    head: readonly string[],
    each: readonly (readonly string[])[],
    call: Call,
  ): Promise<unknown[]> {
    const left = this.within(call);
    const replies: unknown[] = [];
    for (let at = 0; at < each.length; at += CHUNK) {
      const args = [...head, ...each.slice(at, at + CHUNK).flat()];
      replies.push(...((await this.run(script, args, left())) as unknown[]));
    }
    return replies;
  }

  /** The rest of a call, for a verb that takes several requests. */
  within({ timeoutMs }: Call): () => Call {
    const leftMs = timeLeft(this.#clock, timeoutMs);
    return () => ({ timeoutMs: leftMs() });
  }

  /** As `runEach`, for entries that a consumer has. */
  async runHeld(
    script: Script,
    head: readonly string[],
    each: readonly (readonly string[])[],
    call: Call,
  ): Promise<HeldReply[]> {
    const replies = await this.runEach(script, head, each, call);
    return replies.map((reply) => (reply === 1 ? 'done' : 'gone'));
  }

  extend(
    stream: string,
    held: readonly { lane: string; fence: number }[],
    call: Call & { readonly claimMs: number },
  ): Promise<HeldReply[]> {
    const each = held.map(({ lane, fence }) => [lane, String(fence)]);
    return this.runHeld(scripts['stream/extend'], [stream, String(call.claimMs)], each, call);
  }

  /** One page of a Redis Stream. An invalid position begins at the beginning. */
  async page(
    operation: string,
    key: string,
    { after = '', size, timeoutMs }: { after?: string | undefined; size: number } & Call,
  ): Promise<{ rows: StreamRow[]; more: boolean }> {
    const from = isStreamId(after) ? `(${after}` : '-';
    const args = [from, '+', 'COUNT', String(size + 1)];
    const found = (await this.send(operation, ['XRANGE', key, ...args], {
      timeoutMs,
    })) as StreamRow[];
    return { rows: found.slice(0, size), more: found.length > size };
  }

  async send(
    operation: string,
    args: readonly [string, string, ...string[]],
    { timeoutMs }: Call,
  ): Promise<unknown> {
    try {
      return await this.#servers.send(operation, args[1], args, timeoutMs);
    } catch (error) {
      throw asForeign(error, args[1]);
    }
  }
}

/** The size of a page or a request: at least one, at most the limit. */
export function atMost(most: number | undefined, limit: number): number {
  return Math.min(Math.max(1, Math.floor(most ?? limit)), limit);
}

export function asJson(value: unknown, what: string): string {
  const json: string | undefined = JSON.stringify(value);
  if (json === undefined) throw new TypeError(`${what} is ${typeof value}, not JSON`);
  return json;
}

/** A key of another type was written by another program. */
function asForeign(error: unknown, key: string): unknown {
  const isForeign = error instanceof StoreRefusedError && /\bWRONGTYPE\b/.test(error.reply);
  return isForeign ? new KeyForeignError({ key, found: 'a value of another type' }) : error;
}

/** The value of a JSON text, or the text itself if it is not JSON. */
export function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The value of a JSON text. A text that is not JSON was written by another program. */
export function fromJson(json: string, key: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new KeyForeignError({ key, found: 'text that is no JSON' });
  }
}

/** When an entry of a Redis Stream was added. */
export function addedAtMs(id: string): number {
  return Number.parseInt(id, 10);
}
