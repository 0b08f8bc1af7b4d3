import { type Clock, timeLeft } from '../../../core/clock.ts';
import { KeyForeignError, StoreRefusedError } from '../../../core/errors.ts';
import type { BaseRuntime } from '../../../core/runtime.ts';
import type { Call } from '../../port/store.ts';
import type { HeldReply } from '../../port/stream-store.ts';
import type { Keys } from '../keys.ts';
import { type Script, scripts } from '../scripts.ts';
import type { Servers } from '../topology/servers.ts';

/** What one request does at most: what a script does at once keeps Redis from everybody else. */
export const CHUNK = 200;

/** How many entries are given out by one request at most. */
export const TAKE_MOST = 1_000;

/** What ids of entries of a Redis Stream look like. Of others Redis need not hear. */
const STREAM_ID = /^\d{1,15}-\d{1,16}$/;

export function isStreamId(id: string): boolean {
  return STREAM_ID.test(id);
}

export type StreamRow = [id: string, fields: string[]];

/**
 * Where streams, workflows and intents live. All of it has one hash tag, so each verb is one
 * script, on a Cluster too; there it stands still while its slot moves to another server, because a
 * script that names keys by itself must find all of them or none.
 */
export class WorkKeyspace {
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
    // Declares a key that never is: Redis then says TRYAGAIN while only some of the keys of the
    // slot have arrived.
    const work = { script, keys, perKey, withFences: true };
    try {
      const [part] = await this.#servers.run(work, timeoutMs);
      if (part?.kind === 'failed') throw part.error;
      return part?.kind === 'reply' ? part.reply : null;
    } catch (error) {
      // A script says in the words of Lua that it has met a key of another type, and not which.
      throw asForeign(error, this.keys.hubKeys);
    }
  }

  /** A verb for many things, some at a time; one reply for each. */
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

  /** What is left of a call, for what takes several requests. */
  within({ timeoutMs }: Call): () => Call {
    const leftMs = timeLeft(this.#clock, timeoutMs);
    return () => ({ timeoutMs: leftMs() });
  }

  /** The same, for what somebody has in hands. */
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

  /** One page of a Redis Stream; what is no position of it begins at the beginning. */
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

/** How many at most: no fewer than one, no more than a page or a request has. */
export function atMost(most: number | undefined, limit: number): number {
  return Math.min(Math.max(1, Math.floor(most ?? limit)), limit);
}

export function asJson(value: unknown, what: string): string {
  const json: string | undefined = JSON.stringify(value);
  if (json === undefined) throw new TypeError(`${what} is ${typeof value}, not JSON`);
  return json;
}

/** A refusal because of a key of another type is somebody else's doing. */
function asForeign(error: unknown, key: string): unknown {
  const isForeign = error instanceof StoreRefusedError && /\bWRONGTYPE\b/.test(error.reply);
  return isForeign ? new KeyForeignError({ key, found: 'a value of another type' }) : error;
}

/** What was put there as JSON; what is none, as the text that it is. */
export function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** What was put there as JSON; somebody else's doing where it is none. */
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
